"""Runs a program by subprocess with NO SANDBOX: for programs of our own that we trust, only.

It behaves as the sandbox promises (`RunCode`): the program is `__main__`, file descriptors 0 and 1
are real files, the prelude's names are found after the built-in ones, numpy can be imported.
"""

import math
import resource
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from qualeval.graders.code.function_harness import PRELUDE
from qualeval.sandbox.values import Limits, Ran, RunStatus

START = f"""
def start():
    import builtins, resource, signal, sys
    path, packages, cpu, memory, output = sys.argv[1:6]
    names = {{}}
    exec({PRELUDE!r}, names)
    for name, value in names.items():
        if not hasattr(builtins, name):
            setattr(builtins, name, value)
    builtins.exit = builtins.quit = sys.exit
    sys.argv[:] = [path]
    sys.path.append(packages)
    sys.setrecursionlimit(50_000)
    sys.set_int_max_str_digits(0)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    for limit, most in (("CPU", cpu), ("AS", memory), ("FSIZE", output)):
        resource.setrlimit(getattr(resource, "RLIMIT_" + limit), (int(most), int(most) + 1))
    with open(path, encoding="utf-8", newline="") as file:
        return compile(file.read(), path, "exec", dont_inherit=True)
exec(start())
"""

ENDED_BY: dict[int, RunStatus] = {signal.SIGXCPU: "cpu_limit", signal.SIGXFSZ: "output_limit"}


def run_plainly(code: str, stdin: bytes, limits: Limits) -> Ran:
    """Run one trusted program."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(code, encoding="utf-8", newline="")
        Path(folder, "in").write_bytes(stdin)
        most = (math.ceil(limits.cpu_seconds), limits.memory_bytes, limits.output_bytes)
        arguments = [str(program), sysconfig.get_path("purelib"), *map(str, most)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.monotonic()
        with (
            Path(folder, "in").open("rb") as source,
            Path(folder, "out").open("wb") as out,
            Path(folder, "err").open("wb") as err,
        ):
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", START, *arguments],
                stdin=source,
                stdout=out,
                stderr=err,
                cwd=folder,
                env={"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "LANG": "C.UTF-8"},
            )
            late = False
            try:
                process.wait(limits.wall_seconds)
            except subprocess.TimeoutExpired:
                late = True
                process.kill()
                process.wait()
        wall = time.monotonic() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended_by = -process.returncode if process.returncode < 0 else None
        status: RunStatus = "exited"
        if late:
            status = "wall_limit"
        elif ended_by is not None:
            status = ENDED_BY.get(ended_by, "signaled")
        return Ran(
            status=status,
            exit_code=None if ended_by else process.returncode,
            signal=ended_by,
            stdout=b"" if status == "output_limit" else Path(folder, "out").read_bytes(),
            stderr=Path(folder, "err").read_bytes()[-4096:],
            cpu_seconds=after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
            wall_seconds=wall,
            max_rss_bytes=after.ru_maxrss * 1024,
        )
