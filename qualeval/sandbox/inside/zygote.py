"""A warm interpreter that runs one program after another, each in a process of its own.

Reads orders from a socket, a JSON message with the four files of a run (code, stdin, stdout,
stderr), and answers with a JSON message: how the program ended and what it used. It never learns
what a program should print, and reads neither code nor input itself.

    qualeval <- socket -> zygote -> init of a new process namespace -> the program
"""

import _sitebuiltins
import atexit
import builtins
import contextlib
import gc
import importlib
import json
import math
import os
import resource
import select
import signal
import socket
import struct
import sys
import threading
import types
from typing import Any, NoReturn

import kernel
import landlock
import prelude
import seccomp

OPEN_FILES = 64
PENDING_SIGNALS = 1024
"""Of all programs together; timers count, and are memory of the kernel."""
ROOM_IN_TMP = 64 * 1024**2
THREAD_STACK_BYTES = 64 * 1024**2
"""Else every thread reserves as much as the main thread may have, and 16 fill the address space."""
RECURSION_LIMIT = 50_000
"""That of the LiveCodeBench grader."""

NAMESPACES = ("bubblewrap", "namespaces")
"""Rungs on which every program has processes, mounts and network to itself."""

ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}

OURS = ("kernel", "landlock", "prelude", "seccomp", "launch", "zygote")
END = struct.Struct("ii")
"""Exit code, or -1; signal, or 0."""

Order = dict[str, Any]


def main(settings: Order) -> None:
    """Serve until the socket is closed. `settings` has `rung`, `socket`, `readable`, `site`."""
    control = socket.socket(fileno=settings["socket"])
    sys.path += settings["site"]
    for module in prelude.LOADED:
        importlib.import_module(module)
    # What `site` would define, which is not loaded here.
    vars(builtins)["exit"] = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    vars(builtins)["quit"] = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
    vars(builtins).update(prelude.names())
    os.environ.clear()
    os.environ.update(ENVIRONMENT)
    sys.setrecursionlimit(RECURSION_LIMIT)
    sys.set_int_max_str_digits(0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # so that nobody inside can interrupt an init
    for module in OURS:
        sys.modules.pop(module, None)
    sys.argv[:], sys.orig_argv[:] = ["solution.py"], ["python3", "solution.py"]
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    if settings["rung"] in NAMESPACES:
        kernel.drop_bounding_set()
    else:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    settings["filter"] = seccomp.packed(seccomp.program(kernel.MACHINE))
    unhidden = seccomp.program(kernel.MACHINE, hidden=False)
    settings["filter_of_files"] = seccomp.packed(unhidden)
    threading.stack_size(THREAD_STACK_BYTES)
    control.send(b"ready")
    while True:
        message, files, _, _ = socket.recv_fds(control, 1 << 16, 4)
        if not message:
            return
        if message == b"kill":
            continue  # it meant a program that has just ended by itself
        order = json.loads(message) | settings
        for package in order["packages"]:
            with contextlib.suppress(Exception):  # a processor too old for numpy, say
                importlib.import_module(package)
        gc.freeze()
        answer = run(control, order, files)
        for file in files:
            os.close(file)
        control.send(json.dumps(answer).encode())


def run(control: socket.socket, order: Order, files: list[int]) -> Order:
    """Run one program until it ends, the socket says `kill`, or is closed, or time is long over."""
    told, tell = os.pipe()
    init = start(order, files, tell)
    os.close(tell)
    ended = os.pidfd_open(init)
    poll = select.poll()
    poll.register(ended, select.POLLIN)
    poll.register(control.fileno(), select.POLLIN)
    happened = [number for number, _ in poll.poll(order["last_resort"] * 1000)]
    if ended not in happened:
        signal.pidfd_send_signal(ended, signal.SIGKILL)
        if control.fileno() in happened and not control.recv(1 << 16):
            os.waitpid(init, 0)
            if order["rung"] not in NAMESPACES:
                end_descendants()
            sys.exit(0)
    _, _, usage = os.wait4(init, 0)
    os.close(ended)
    if order["rung"] not in NAMESPACES:
        end_descendants()
    end = os.read(told, END.size)
    os.close(told)
    code, by_signal = END.unpack(end) if len(end) == END.size else (None, None)
    return {
        "code": code,
        "signal": by_signal,
        "cpu": usage.ru_utime + usage.ru_stime,
        "rss": usage.ru_maxrss * 1024,
    }


def start(order: Order, files: list[int], tell: int) -> int:
    """Start a program below an init of its own: the process id of that init."""
    alone = order["rung"] in NAMESPACES
    init = kernel.fork_into(kernel.CLONE_NEWPID | kernel.CLONE_NEWNS) if alone else os.fork()
    if init:
        return init
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()
        if alone:
            flags = kernel.MS_NOSUID | kernel.MS_NODEV
            room = ROOM_IN_TMP + os.fstat(files[1]).st_size  # of which its copy is a part
            kernel.mount("tmpfs", "/tmp", "tmpfs", flags, f"size={room},nr_inodes=4096,mode=777")
            copy_of_stdin(files[1])
            os.chdir("/tmp")
        begun, begin = os.pipe()
        program = os.fork()
        if program == 0:
            become(order, files, begin)
        os.close(begin)
        for file in files:
            os.close(file)
        kernel.drop_capabilities()
        pid, status = 0, 0
        while pid != program:
            pid, status = os.wait()
        if not os.read(begun, 1):
            return 0  # ours failed, not the program: without a word of how it ended, a SandboxError
        by_signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        os.write(tell, END.pack(-1 if by_signal else os.WEXITSTATUS(status), by_signal))
    finally:
        os._exit(0)


def copy_of_stdin(stdin: int) -> None:
    """What `open("/dev/stdin")` finds: a file, read from its start, as with `python a.py < file`.

    The usual link to it leads through /proc, which is not here.
    """
    copy = os.open("/tmp/stdin", os.O_WRONLY | os.O_CREAT, 0o444)
    offset, size = 0, os.fstat(stdin).st_size
    while offset < size:
        offset += os.sendfile(copy, stdin, offset, size - offset)
    os.close(copy)


def become(order: Order, files: list[int], begin: int) -> NoReturn:
    """Give up everything, say so to `begin`, then be the program."""
    code = 1
    try:
        source = os.pread(files[0], os.fstat(files[0]).st_size, 0)
        for number, file in enumerate(files[1:]):
            os.dup2(file, number)
        os.dup2(begin, 3)
        os.closerange(4, 1 << 16)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        limit(order)
        signals_stay = order["rung"] in NAMESPACES
        if order["rung"] == "landlock":
            kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # or nobody outside sees what it shares
            devices = [f"/dev/{name}" for name in ("zero", "full", "random", "urandom")]
            known = landlock.restrict([*order["readable"], *devices], ["/dev/null"])
            signals_stay = known >= landlock.SIGNALS_SINCE
        kernel.drop_capabilities()
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        if signals_stay:
            hidden = order["rung"] != "landlock"
            seccomp.install(order["filter"] if hidden else order["filter_of_files"])
        elif order["rung"] == "landlock":
            alone = seccomp.program(kernel.MACHINE, only_signal=os.getpid(), hidden=False)
            seccomp.install(seccomp.packed(alone))
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
            errors = "backslashreplace" if name == "stderr" else "strict"
            stream = open(  # noqa: SIM115 - as the interpreter opens them on Linux
                number, mode, encoding="utf-8", errors=errors, newline="\n", closefd=False
            )
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        os.write(3, b"x")
        os.close(3)
        code = as_main(source)
    finally:
        os._exit(code)


def limit(order: Order) -> None:
    """The kernel's own limits, behind those that are watched from outside."""
    cpu = math.ceil(order["cpu_seconds"]) + 1
    for what, most in (
        # 1 and not 0: a core that is piped to a program of the machine is stopped by 1 alone.
        (resource.RLIMIT_CORE, 1),
        (resource.RLIMIT_NICE, 0),
        (resource.RLIMIT_RTPRIO, 0),
        (resource.RLIMIT_AS, order["address_space"]),
        (resource.RLIMIT_FSIZE, order["output_bytes"]),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_NPROC, order["tasks"]),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_SIGPENDING, PENDING_SIGNALS),
    ):
        most = at_most(what, most)
        resource.setrlimit(what, (most, most))
    most = at_most(resource.RLIMIT_CPU, cpu + 1)
    resource.setrlimit(resource.RLIMIT_CPU, (min(cpu, most), most))


def at_most(what: int, wanted: int) -> int:
    """A limit, or the lower one that qualeval itself was started under."""
    _, hard = resource.getrlimit(what)
    return wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)


def as_main(source: bytes) -> int:
    """Run a program as the interpreter runs a script, to its exit code."""
    main_module = types.ModuleType("__main__")
    main_module.__file__ = "solution.py"
    sys.modules["__main__"] = main_module
    code = 0
    try:
        exec(compile(source, "solution.py", "exec", dont_inherit=True), vars(main_module))
    except SystemExit as ended:
        code = exit_code(ended.code)
    except BaseException as error:
        code = 1
        with contextlib.suppress(BaseException):
            own = error.__traceback__.tb_next if error.__traceback__ else None
            sys.excepthook(type(error), error.with_traceback(own), own)
        del error
    return finish(main_module, code)


def exit_code(given: object) -> int:
    """The exit code that a SystemExit stands for."""
    if given is None:
        return 0
    if isinstance(given, int):
        return given & 0xFF
    with contextlib.suppress(Exception):
        print(given, file=sys.stderr)
    return 1


def finish(main_module: types.ModuleType, code: int) -> int:
    """What the interpreter does at its end: wait for threads, run exit functions, write what is
    still in buffers, be they of files that the program left open.
    """
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        stdout, stderr = sys.stdout, sys.stderr
        for stream in (stdout, stderr):
            if stream is not None and not getattr(stream, "closed", False):
                stream.flush()
        vars(main_module).clear()
        gc.collect()
        for stream in (sys.__stdout__, sys.__stderr__):
            if stream is not None and not stream.closed:
                stream.flush()
    except SystemExit as ended:
        return exit_code(ended.code)
    except BaseException:
        return code or 120  # as the interpreter: its last words could not be written
    return code


def own_children() -> list[int]:
    """The processes whose parent we are."""
    listed = f"/proc/self/task/{threading.get_native_id()}/children"
    with contextlib.suppress(FileNotFoundError), open(listed) as file:
        return [int(word) for word in file.read().split()]
    found = []  # a kernel that does not list them
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
            if int(file.read().rpartition(")")[2].split()[1]) == os.getpid():
                found.append(int(name))
    return found


def end_descendants() -> None:
    """Where no namespace ends them: every process that a program left behind.

    They have become our children, since we are their nearest subreaper.
    """
    for _ in range(10_000):
        children = own_children()
        if not children:
            return
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        for child in children:
            os.waitpid(child, 0)
    sys.exit("processes were left that cannot be ended")
