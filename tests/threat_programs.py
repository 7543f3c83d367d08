"""Programs that try to break out of a sandbox or to forge a verdict, and ordinary ones that work.

Data only: importing this module runs nothing. A hostile program prints one line `escaped: ...` for
every attempt that succeeded, and `contained` as its last line when it got to its end. `fault_of`
reads that, together with how the program ended.

Every bomb is bounded (`BOMB_MIB`, `BOMB_PROCESSES`), and what is opened for writing is not written
to, so that a hole is reported rather than suffered. All the same these programs run only inside a
sandbox whose self-test passed, never as user 0, and the ones with `outer_namespace` only where an
outer PID namespace holds them if the sandbox does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import dedent

from qualeval.sandbox.values import Ran, RunStatus

SECRET = "tulip-4417-expected-output"
"""Text that tests put where the trusted side keeps expected outputs; no program may find it."""

BOMB_MIB = 3072
"""What a memory bomb takes at most: more than the default limit of 2 GiB."""

BOMB_PROCESSES = 200
TOO_MANY_PROCESSES = 64
"""A bomb that has more processes than this at once has escaped (the default limit is 32)."""

EXITED: frozenset[RunStatus] = frozenset({"exited"})
TIME: frozenset[RunStatus] = frozenset({"cpu_limit", "wall_limit"})


@dataclass(frozen=True, slots=True)
class Threat:
    """A hostile program: what it tries, and how one sees that it failed.

    `expect` are the statuses that it may end with. When it exits by itself its exit code is
    `exit_code` (None: any), and if `says_contained` its last line is `contained`.
    """

    name: str
    what: str
    code: str
    stdin: bytes = b""
    expect: frozenset[RunStatus] = EXITED
    exit_code: int | None = 0
    says_contained: bool = True
    outer_namespace: bool = False


@dataclass(frozen=True, slots=True)
class Poison:
    """A program that leaves something behind, and the next one, which looks for it."""

    name: str
    first: Threat
    second: Threat


@dataclass(frozen=True, slots=True)
class Forgery:
    """An answer that claims to be right: judged on a test whose output is `SECRET`, it is not.

    `function` is the name to call with any one argument, None for a script.
    """

    name: str
    what: str
    code: str
    function: str | None
    verdict: str = "wrong_answer"


@dataclass(frozen=True, slots=True)
class Ordinary:
    """A program as people write them: it has to exit with 0 and print exactly `stdout`."""

    name: str
    code: str
    stdout: bytes
    stdin: bytes = b""


def escapes(stdout: bytes) -> tuple[str, ...]:
    """The attempts that succeeded, as the program tells them."""
    lines = stdout.decode("utf-8", "backslashreplace").splitlines()
    return tuple(line for line in lines if line.startswith("escaped"))


def fault_of(threat: Threat, ran: Ran) -> str | None:
    """What went wrong, or None when the sandbox held."""
    if escaped := escapes(ran.stdout):
        return "; ".join(escaped)
    if ran.status not in threat.expect:
        return f"ended by {ran.status}, not by {' or '.join(sorted(threat.expect))}"
    if ran.status != "exited":
        return None
    if threat.exit_code is not None and ran.exit_code != threat.exit_code:
        return f"exit code {ran.exit_code}, not {threat.exit_code}: {ran.stderr[-500:]!r}"
    if threat.says_contained and ran.stdout.split()[-1:] != [b"contained"]:
        return f"did not come to its end: {ran.stderr[-500:]!r}"
    return None


ATTEMPT = """
import os, sys, time
def attempt(word, action):
    try:
        done = action()
    except BaseException:
        return
    if done:
        print("escaped:", word, flush=True)
"""

# x86_64, aarch64: Linux 6.1, arch/x86/entry/syscalls/syscall_64.tbl and asm-generic/unistd.h.
_NUMBERS = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "capget": (125, 90),
    "capset": (126, 91),
    "chroot": (161, 51),
    "clone": (56, 220),
    "clone3": (435, 435),
    "fanotify_init": (300, 262),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchownat": (260, 54),
    "finit_module": (313, 273),
    "fsopen": (430, 430),
    "getpid": (39, 172),
    "init_module": (175, 105),
    "inotify_init1": (294, 26),
    "io_uring_setup": (425, 425),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "request_key": (249, 218),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "semget": (64, 190),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "shmget": (29, 194),
    "sync": (162, 81),
    "syncfs": (306, 267),
    "syslog": (103, 116),
    "truncate": (76, 45),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "utimensat": (280, 88),
    "vhangup": (153, 58),
}

SYSTEM_CALL = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NUMBERS = {_NUMBERS!r}
def system_call(name, *values):
    number = NUMBERS[name][os.uname().machine != "x86_64"]
    longs = [ctypes.c_long(v) if isinstance(v, int) else v for v in values]
    return libc.syscall(ctypes.c_long(number), *longs)
"""


def _threat(
    name: str,
    what: str,
    code: str,
    *,
    stdin: bytes = b"",
    expect: frozenset[RunStatus] = EXITED,
    exit_code: int | None = 0,
    says_contained: bool = True,
    outer_namespace: bool = False,
) -> Threat:
    """The program with the helpers that it uses put before it and its last word behind it."""
    text = dedent(code).strip("\n") + "\n"
    text = text.replace("BOMB_MIB", str(BOMB_MIB)).replace("BOMB_PROCESSES", str(BOMB_PROCESSES))
    text = text.replace("TOO_MANY", str(TOO_MANY_PROCESSES))
    # The text itself must not hold the secret, or the program would find its own copy.
    text = text.replace("SECRET_REVERSED", repr(SECRET[::-1]))
    helpers = ATTEMPT + SYSTEM_CALL if "system_call(" in text or "libc." in text else ATTEMPT
    # Some programs say it themselves, before they break what they would say it with.
    says_it_itself = "contained" in text
    end = "print('contained', flush=True)\n" if says_contained and not says_it_itself else ""
    return Threat(
        name=name,
        what=what,
        code=helpers + text + end,
        stdin=stdin,
        expect=expect,
        exit_code=exit_code,
        says_contained=says_contained,
        outer_namespace=outer_namespace,
    )


_ENDS_ANYHOW: frozenset[RunStatus] = EXITED | TIME | {"signaled", "memory_limit"}

PROCESSES = (
    _threat(
        "fork_bomb",
        "200 children of os.fork that stay alive: stopped by the process limit",
        """
        import signal
        children = []
        try:
            for _ in range(BOMB_PROCESSES):
                child = os.fork()
                if child == 0:
                    time.sleep(20)
                    os._exit(0)
                children.append(child)
        except BaseException:
            pass
        attempt(f"{len(children)} processes at once", lambda: len(children) > TOO_MANY)
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        """,
        expect=EXITED | TIME,
        outer_namespace=True,
    ),
    _threat(
        "fork_bomb_doubling",
        "every process forks: 2 ** 8 processes that tell a pipe that they live",
        """
        read, write = os.pipe()
        first = os.getpid()
        for _ in range(8):
            try:
                os.fork()
            except BaseException:
                pass
        if os.getpid() != first:
            os.write(write, b"x")
            time.sleep(2)
            os._exit(0)
        time.sleep(1)
        os.write(write, b"x")
        living = len(os.read(read, 1000))
        attempt(f"{living} processes at once", lambda: living > TOO_MANY)
        """,
        expect=EXITED | TIME,
        outer_namespace=True,
    ),
    _threat(
        "fork_bomb_by_libc",
        "libc.fork by ctypes, past anything that Python's os module was changed to",
        """
        children = []
        try:
            for _ in range(BOMB_PROCESSES):
                child = libc.fork()
                if child == 0:
                    time.sleep(20)
                    os._exit(0)
                if child < 0:
                    break
                children.append(child)
        except BaseException:
            pass
        attempt(f"{len(children)} processes at once", lambda: len(children) > TOO_MANY)
        for child in children:
            os.kill(child, 9)
        """,
        expect=EXITED | TIME,
        outer_namespace=True,
    ),
    _threat(
        "fork_bomb_by_clone",
        "the raw clone system call",
        """
        children = []
        try:
            for _ in range(BOMB_PROCESSES):
                child = system_call("clone", 17, 0, 0, 0, 0)
                if child == 0:
                    time.sleep(20)
                    os._exit(0)
                if child < 0:
                    break
                children.append(child)
        except BaseException:
            pass
        attempt(f"{len(children)} processes at once", lambda: len(children) > TOO_MANY)
        for child in children:
            os.kill(child, 9)
        """,
        expect=EXITED | TIME,
        outer_namespace=True,
    ),
    _threat(
        "fork_bomb_by_posix_spawn",
        "200 interpreters by os.posix_spawn",
        """
        children = []
        arguments = [sys.executable or "python3", "-I", "-S", "-c", "import time; time.sleep(20)"]
        try:
            for _ in range(BOMB_PROCESSES):
                children.append(os.posix_spawn(arguments[0], arguments, {}))
        except BaseException:
            pass
        attempt(f"{len(children)} processes at once", lambda: len(children) > TOO_MANY)
        for child in children:
            os.kill(child, 9)
        """,
        expect=EXITED | TIME | {"memory_limit"},
        outer_namespace=True,
    ),
    _threat(
        "fork_bomb_by_subprocess",
        "200 interpreters by subprocess, which uses its own fork in C",
        """
        import subprocess
        children = []
        arguments = [sys.executable or "python3", "-I", "-S", "-c", "import time; time.sleep(20)"]
        try:
            for _ in range(BOMB_PROCESSES):
                children.append(subprocess.Popen(arguments))
        except BaseException:
            pass
        attempt(f"{len(children)} processes at once", lambda: len(children) > TOO_MANY)
        for child in children:
            child.kill()
        """,
        expect=EXITED | TIME | {"memory_limit"},
        outer_namespace=True,
    ),
    _threat(
        "thread_bomb",
        "200 threads: they count as processes",
        """
        import threading
        end = threading.Event()
        started = 0
        try:
            for _ in range(BOMB_PROCESSES):
                threading.Thread(target=end.wait, daemon=True).start()
                started += 1
        except BaseException:
            pass
        attempt(f"{started} threads at once", lambda: started > TOO_MANY)
        end.set()
        """,
        outer_namespace=True,
    ),
    _threat(
        "daemon_left_behind",
        "a double-forked daemon in a session of its own prints after the program has ended",
        """
        def daemon():
            if os.fork() == 0:
                attempt("", lambda: os.setsid() and None)
                attempt("", lambda: os.setpgid(0, 0))
                if os.fork() == 0:
                    time.sleep(1)
                    os.write(1, b"escaped: daemon outlived the program\\n")
                    time.sleep(30)
                os._exit(0)
        attempt("daemon: not started by itself", lambda: daemon())
        """,
    ),
    _threat(
        "thread_left_behind",
        "a thread that is no daemon keeps the interpreter from ending",
        """
        import threading
        threading.Thread(target=time.sleep, args=(60,)).start()
        """,
        expect=EXITED | TIME,
    ),
)

MEMORY = (
    _threat(
        "memory_by_bytes",
        "3 GiB of bytes, all written",
        """
        held = []
        try:
            for _ in range(BOMB_MIB // 64):
                held.append(b"x" * (64 << 20))
        except MemoryError:
            pass
        attempt(f"{len(held) * 64} MiB", lambda: len(held) * 64 >= BOMB_MIB)
        """,
        expect=EXITED | {"memory_limit"},
        outer_namespace=True,
    ),
    _threat(
        "memory_by_mapping",
        "3 GiB of anonymous private mappings, all written",
        """
        import mmap
        held = []
        block = b"x" * (1 << 20)
        try:
            for _ in range(BOMB_MIB // 64):
                held.append(mmap.mmap(-1, 64 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
                for _ in range(64):
                    held[-1].write(block)
        except (OSError, MemoryError, ValueError):
            held = held[:-1]
        attempt(f"{len(held) * 64} MiB", lambda: len(held) * 64 >= BOMB_MIB)
        """,
        expect=EXITED | {"memory_limit"},
        outer_namespace=True,
    ),
    _threat(
        "memory_hidden_from_rss",
        "shared pages that are dropped from the process after writing: they stay in memory",
        """
        import mmap
        written = 0
        block = b"x" * (1 << 20)
        try:
            shared = mmap.mmap(-1, BOMB_MIB << 20, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
            for written in range(1, BOMB_MIB + 1):
                shared.write(block)
                shared.madvise(mmap.MADV_DONTNEED, (written - 1) << 20, 1 << 20)
        except (OSError, MemoryError, ValueError):
            pass
        attempt(f"{written} MiB of shared pages", lambda: written >= BOMB_MIB)
        """,
        expect=EXITED | {"memory_limit"},
        outer_namespace=True,
    ),
    _threat(
        "memory_hidden_in_dev_zero",
        "the same by /dev/zero: mapped shared it is memory of no process, and no flag tells so",
        """
        import mmap
        written = 0
        block = b"x" * (1 << 20)
        try:
            zero = os.open("/dev/zero", os.O_RDWR)
            # Below the address-space limit of one process: many could do the same.
            shared = mmap.mmap(zero, 640 << 20, flags=mmap.MAP_SHARED)
            for written in range(1, 641):
                shared.write(block)
                shared.madvise(mmap.MADV_DONTNEED, (written - 1) << 20, 1 << 20)
        except (OSError, MemoryError, ValueError):
            pass
        attempt(f"{written} MiB of shared pages", lambda: written >= 640)
        """,
        expect=EXITED | {"memory_limit"},
        outer_namespace=True,
    ),
    _threat(
        "memory_by_memfd",
        "3 GiB in a memory file, which no address-space limit sees",
        """
        written = 0
        block = b"x" * (1 << 20)
        try:
            files = []
            for number in range(BOMB_MIB):
                if number % 16 == 0:
                    files.append(system_call("memfd_create", ctypes.c_char_p(b"bomb"), 0))
                written += os.write(files[-1], block)
        except BaseException:
            pass
        attempt(f"{written >> 20} MiB in memory files", lambda: written >= 64 << 20)
        """,
        expect=EXITED | {"memory_limit"},
        outer_namespace=True,
    ),
    _threat(
        "memory_by_children",
        "16 children that hold 256 MiB each, every one of them below the limit",
        """
        read, write = os.pipe()
        children = []
        try:
            for _ in range(16):
                child = os.fork()
                if child == 0:
                    try:
                        held = b"x" * (256 << 20)
                        os.write(write, b"x")
                        time.sleep(5)
                    finally:
                        os._exit(0)
                children.append(child)
        except BaseException:
            pass
        time.sleep(4)
        os.write(write, b"x")
        holding = len(os.read(read, 100)) - 1
        attempt(f"{holding * 256} MiB in {holding} children", lambda: holding * 256 >= BOMB_MIB)
        """,
        expect=EXITED | TIME | {"memory_limit"},
        outer_namespace=True,
    ),
    *(
        _threat(
            f"memory_by_files_in{folder.replace('/', '_')}",
            f"1 GiB in small files below {folder}",
            f"""
            written, names = 0, []
            block = b"x" * (1 << 20)
            try:
                for number in range(1024):
                    if number % 16 == 0:
                        names.append(f"{folder}/bomb-{{number}}")
                        file = open(names[-1], "wb", buffering=0)
                    written += file.write(block)
            except BaseException:
                pass
            attempt(f"{{written >> 20}} MiB in {folder}", lambda: written >= 1 << 30)
            for name in names:
                try:
                    os.remove(name)
                except OSError:
                    pass
            """,
            expect=EXITED | {"memory_limit", "output_limit"},
            outer_namespace=True,
        )
        for folder in ("/tmp", "/dev/shm", "/var/tmp")
    ),
    _threat(
        "file_names_bomb",
        "50,000 empty files in /tmp, to be gone with the test",
        """
        try:
            for number in range(50_000):
                os.close(os.open(f"/tmp/{number}", os.O_CREAT | os.O_WRONLY))
        except BaseException:
            pass
        """,
        expect=EXITED | TIME | {"memory_limit"},
    ),
    _threat(
        "tmp_that_resists_removal",
        "a deep tree, names that are no text, folders without permissions",
        """
        def build():
            os.chdir("/tmp")
            os.close(os.open(b"\\xff\\n-rf *", os.O_CREAT))
            os.mkdir("locked")
            os.close(os.open("locked/file", os.O_CREAT))
            os.chmod("locked", 0)
            for _ in range(1500):
                os.mkdir("d" * 100)
                os.chdir("d" * 100)
        attempt("", lambda: build())
        """,
    ),
)

OUTPUT = (
    _threat(
        "endless_stdout",
        "prints for ever (lcb-21)",
        """
        while True:
            print("x" * 1000)
        """,
        expect=frozenset({"output_limit"}),
        says_contained=False,
    ),
    _threat(
        "endless_stdout_errors_ignored",
        "prints for ever and ignores every error",
        """
        while True:
            try:
                os.write(1, b"x" * 65536)
            except BaseException:
                pass
        """,
        expect=TIME | {"output_limit"},
        says_contained=False,
    ),
    _threat(
        "endless_stderr",
        "the same on stderr",
        """
        while True:
            os.write(2, b"x" * 65536)
        """,
        expect=frozenset({"output_limit"}),
        says_contained=False,
    ),
    _threat(
        "endless_file",
        "one file in /tmp that grows to 1 GiB",
        """
        written = 0
        try:
            with open("/tmp/endless", "wb", buffering=0) as file:
                while written < 1 << 30:
                    written += file.write(b"x" * (1 << 20))
        except BaseException:
            pass
        attempt(f"a file of {written >> 20} MiB", lambda: written >= 1 << 30)
        """,
        expect=EXITED | {"output_limit", "memory_limit", "signaled"},
    ),
    _threat(
        "huge_sparse_stdout",
        "stdout made 1 TiB long without writing: whoever reads it must not believe it",
        """
        def grow():
            os.ftruncate(1, 1 << 40)
            return os.fstat(1).st_size >= 1 << 40
        attempt("stdout is 1 TiB long", grow)
        """,
        expect=EXITED | {"output_limit", "signaled"},
    ),
    _threat(
        "bytes_that_are_no_text",
        "NUL, every byte, half of a surrogate pair",
        """
        sys.stdout.buffer.write(bytes(range(256)) + b"\\xed\\xa0\\x80 \\x00\\n")
        sys.stdout.buffer.flush()
        attempt("", lambda: print("\\udcff"))
        print()
        """,
    ),
    _threat(
        "terminal_escapes_on_stderr",
        "sequences that would clear a terminal, set its title or type into it",
        """
        sys.stderr.write("\\x1b]0;owned\\x07\\x1b[2J\\x1b[6n\\x1b]52;c;b3du\\x07\\u202e" * 50)
        """,
    ),
    _threat(
        "closed_stdout",
        "closes fd 1 and prints: an error of its own, not one of the sandbox",
        """
        os.close(1)
        print("into nothing")
        """,
        exit_code=None,
        says_contained=False,
    ),
    _threat(
        "all_files_closed",
        "closes everything from 0 to 1023, whatever the sandbox may have left open",
        """
        print("contained", flush=True)
        os.closerange(0, 1024)
        """,
        exit_code=None,
    ),
)

TIME_THREATS = (
    _threat(
        "sleep",
        "sleeps, using no CPU",
        """
        time.sleep(600)
        """,
        expect=frozenset({"wall_limit"}),
        says_contained=False,
    ),
    _threat(
        "busy_loop",
        "uses CPU for ever",
        """
        while True:
            pass
        """,
        expect=frozenset({"cpu_limit"}),
        says_contained=False,
    ),
    _threat(
        "busy_threads",
        "four threads in C code that releases the lock",
        """
        import hashlib, threading
        def work():
            while True:
                hashlib.sha256(b"x" * (1 << 20))
        for _ in range(4):
            threading.Thread(target=work).start()
        """,
        expect=TIME,
        says_contained=False,
    ),
    _threat(
        "busy_children",
        "four children share the work, so that none reaches a limit of its own",
        """
        for _ in range(3):
            if os.fork() == 0:
                break
        while True:
            pass
        """,
        expect=TIME,
        says_contained=False,
    ),
    _threat(
        "short_lived_children",
        "works in children of 0.2 s that are never waited for: their CPU is in no sum",
        """
        import signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            if os.fork() == 0:
                while time.process_time() < 0.2:
                    pass
                os._exit(0)
            try:
                os.wait()
            except ChildProcessError:
                pass
        """,
        expect=TIME,
        says_contained=False,
    ),
    _threat(
        "signals_ignored",
        "ignores every signal that can be ignored, and uses CPU",
        """
        import signal
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except BaseException:
                pass
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
        while True:
            pass
        """,
        expect=TIME,
        says_contained=False,
    ),
    _threat(
        "alarm_switched_off",
        "switches timers off and sleeps (lcb-19)",
        """
        import signal
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        time.sleep(600)
        """,
        expect=frozenset({"wall_limit"}),
        says_contained=False,
    ),
    _threat(
        "exceptions_swallowed",
        "swallows every exception, as alarms in the same interpreter are (lcb-19)",
        """
        while True:
            try:
                time.sleep(0.2)
            except BaseException:
                pass
        """,
        expect=TIME,
        says_contained=False,
    ),
    _threat(
        "stops_itself",
        "SIGSTOP to itself: neither runs nor ends",
        """
        import signal
        os.kill(os.getpid(), signal.SIGSTOP)
        """,
        expect=EXITED | {"wall_limit"},
    ),
    _threat(
        "hostile_exception",
        "an exception whose text is computed for ever",
        """
        class Endless(Exception):
            def __str__(self):
                while True:
                    pass
            __repr__ = __str__
        raise Endless
        """,
        expect=TIME,
        says_contained=False,
    ),
    _threat(
        "huge_integer",
        "a power that takes minutes inside one operation",
        """
        print(len(str(7 ** 10 ** 9)))
        """,
        expect=EXITED | TIME | {"memory_limit"},
        exit_code=None,
        says_contained=False,
    ),
)

SIGNALS = (
    _threat(
        "kill_parent",
        "kills its parent, when it can see one",
        """
        # Process 1 is the init of our own namespace, on which such a signal has no effect.
        parent = os.getppid()
        attempt("killed the parent", lambda: os.kill(parent, 9) is None and parent > 1)
        attempt("stopped the parent", lambda: os.kill(parent, 19) is None and parent > 1)
        time.sleep(0.2)
        """,
        outer_namespace=True,
    ),
    _threat(
        "kill_first_process",
        "SIGKILL to process 1: nothing may come of it",
        """
        if os.getpid() != 1:
            attempt("", lambda: os.kill(1, 9))
        time.sleep(0.2)
        """,
        outer_namespace=True,
    ),
    _threat(
        "kill_everything",
        "kill(-1, SIGKILL): all that this user runs",
        """
        attempt("", lambda: os.kill(-1, 9))
        time.sleep(0.2)
        """,
        outer_namespace=True,
    ),
    _threat(
        "see_processes",
        "signal 0 to the first 5,000 numbers, by kill, pidfd and sigqueue",
        """
        for other in range(2, 5000):
            if other != os.getpid():
                attempt(f"process {other} gets signals", lambda: os.kill(other, 0) is None)
                attempt(f"process {other} opened", lambda: os.pidfd_open(other) > 0)
        parent = os.getppid()
        attempt(
            "parent gets queued signals",
            lambda: parent > 0 and system_call("rt_sigqueueinfo", parent, 0, bytes(128)) == 0,
        )
        """,
    ),
    _threat(
        "trace_processes",
        "ptrace, process_vm_readv and kcmp on the parent and on process 1",
        """
        class Vector(ctypes.Structure):
            _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
        memory = ctypes.create_string_buffer(16)
        here = Vector(ctypes.addressof(memory), 16)
        for other in {os.getppid(), 1} - {0, os.getpid()}:
            attempt(f"attached to {other}", lambda: system_call("ptrace", 16, other, 0, 0) == 0)
            attempt(f"seized {other}", lambda: system_call("ptrace", 0x4206, other, 0, 0) == 0)
            attempt(f"compared {other}", lambda: system_call(
                "kcmp", other, os.getpid(), 0, 0, 0) >= 0)
            for call in ("process_vm_readv", "process_vm_writev"):
                attempt(f"{call} {other}", lambda: system_call(
                    call, other, ctypes.byref(here), 1, ctypes.byref(here), 1, 0) > 0)
            attempt(f"took a file of {other}", lambda: system_call(
                "pidfd_getfd", system_call("pidfd_open", other, 0), 0, 0) >= 0)
        attempt("asked to be traced", lambda: system_call("ptrace", 0, 0, 0, 0) == 0)
        """,
    ),
)

READING = (
    _threat(
        "read_accounts",
        "files that name users, hosts and keys",
        """
        import glob
        for name in [
            "/etc/passwd", "/etc/shadow", "/etc/group", "/etc/hosts", "/etc/hostname",
            "/etc/resolv.conf", "/etc/machine-id", "/etc/ssh/ssh_host_rsa_key", "/etc/fstab",
            "/tmp/../etc/passwd", "/dev/../etc/shadow",
        ]:
            attempt("read " + name, lambda: open(name, "rb").read(1))
        home = os.path.expanduser("~")
        for place in {home, "/root", *glob.glob("/home/*")}:
            for name in [
                ".ssh/id_rsa", ".ssh/id_ed25519", ".ssh/known_hosts", ".netrc", ".gitconfig",
                ".bash_history", ".bashrc", ".profile", ".aws/credentials", ".kube/config",
                ".cache/huggingface/token", ".docker/config.json", ".pypirc",
            ]:
                path = os.path.join(place, name)
                attempt("read " + path, lambda: open(path, "rb").read(1))
                attempt("there is " + path, lambda: os.stat(path))
        """,
    ),
    _threat(
        "list_folders",
        "looks into folders outside the interpreter's own",
        """
        own = [os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, *sys.path) if p]
        own += [p for p in (sys.prefix, sys.base_prefix, *sys.path) if p]
        def foreign(folder):
            def is_own(name):
                path = os.path.join(folder, name) + "/"
                return any((p + "/").startswith(path) or path.startswith(p + "/") for p in own)
            return [name for name in os.listdir(folder) if not is_own(name)]
        for folder in [
            "/root", "/home", "/work", "/opt", "/srv", "/mnt", "/media", "/var", "/var/log", "/run",
            "/boot", "/sys", "/proc", "/sys/fs/cgroup", "/data", "/workspace", "/Users",
        ]:
            attempt(f"listed {folder}", lambda: foreign(folder))
        """,
    ),
    _threat(
        "read_everything_else",
        "walks the tree for readable files that no interpreter needs",
        """
        needed = ("/usr/", "/lib", "/bin/", "/sbin/", "/tmp/", "/dev/", "/etc/ld.so", "/etc/alter")
        own = tuple({os.path.realpath(p) + "/" for p in (sys.prefix, sys.base_prefix, *sys.path)
                     if p and p != "/"})
        own += tuple(p + "/" for p in (sys.prefix, sys.base_prefix, *sys.path) if p and p != "/")
        seen, found = 0, []
        for folder, folders, names in os.walk("/"):
            here = folder.rstrip("/") + "/"
            if here.startswith((*needed, *own)):
                folders.clear()
                continue
            for name in names:
                seen += 1
                path = here + name
                if path.startswith((*needed, *own)) or path in ("/etc/localtime", "/etc/timezone"):
                    continue
                def read():
                    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
                        return file.read(1)
                if len(found) < 20:
                    attempt("read " + ascii(path), lambda: read() and [found.append(path)])
            if seen > 20_000:
                break
        """,
    ),
    _threat(
        "read_proc",
        "environment, memory, open files and mounts of other processes",
        """
        numbers = ["1", "self", str(os.getppid()), "thread-self"]
        for number in numbers + [str(n) for n in range(2, 400)]:
            for name in ("environ", "cmdline", "maps", "status", "mountinfo", "root/etc/passwd"):
                path = f"/proc/{number}/{name}"
                attempt("read " + path, lambda: open(path, "rb").read(1))
            path = f"/proc/{number}/mem"
            attempt("opened " + path, lambda: open(path, "rb"))
        for name in ("cpuinfo", "mounts", "net/tcp", "kcore", "kallsyms", "config.gz", "version"):
            attempt("read /proc/" + name, lambda: open("/proc/" + name, "rb").read(1))
        """,
    ),
    _threat(
        "environment",
        "environment variables other than the few that a sandbox sets",
        """
        allowed = {
            "PATH", "LANG", "LC_ALL", "LC_CTYPE", "HOME", "TMPDIR", "TZ", "PWD", "SHLVL", "_",
            "PYTHONHASHSEED", "PYTHONINTMAXSTRDIGITS", "PYTHONIOENCODING", "PYTHONUTF8",
            "PYTHONDONTWRITEBYTECODE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS",
            "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS",
        }
        for name in set(os.environ) - allowed:
            attempt("variable " + ascii(name), lambda: True)
        """,
    ),
    _threat(
        "own_package",
        "the project's own code, its working folder and the other packages of its environment",
        """
        import importlib
        for name in ("qualeval", "qualeval.graders.code", "pydantic", "httpx", "pytest", "pip"):
            attempt("imported " + name, lambda: importlib.import_module(name))
        attempt("qualeval in sys.modules", lambda: [m for m in sys.modules if "qualeval" in m])
        for name in ("pyproject.toml", ".git", "runs", "cards", "card.json", "tests"):
            attempt("working folder has " + name, lambda: os.path.exists(name))
        """,
    ),
    _threat(
        "expected_output_in_frames",
        "walks the callers' frames for the expected output (lcb-15)",
        """
        import inspect
        needle = SECRET_REVERSED
        frame = inspect.currentframe()
        while frame:
            for space in (frame.f_locals, frame.f_globals):
                for name, value in list(space.items()):
                    attempt(f"name {name}", lambda: name == "gt_out")
                    attempt(f"in {name}", lambda: needle in repr(value)[::-1] and value != needle)
            frame = frame.f_back
        """,
    ),
    _threat(
        "expected_output_in_memory",
        "looks for the expected output in all objects, modules and arguments",
        """
        import gc
        needle = SECRET_REVERSED
        def holds(value):
            if isinstance(value, str):
                return needle in value[::-1]
            return isinstance(value, (bytes, bytearray)) and needle.encode() in bytes(value)[::-1]
        def search():
            for thing in gc.get_objects():
                if any(holds(part) for part in gc.get_referents(thing)):
                    return True
        attempt("found in an object", search)
        attempt("found in arguments", lambda: any(map(holds, sys.argv + sys.orig_argv)))
        attempt("found in environment", lambda: any(map(holds, os.environ.values())))
        attempt("found in modules", lambda: any(
            holds(value) for m in list(sys.modules.values()) for value in vars(m).values()))
        """,
    ),
    _threat(
        "expected_output_in_files",
        "looks for the expected output in files that it can read below /tmp and here",
        """
        needle = SECRET_REVERSED
        for top in ("/tmp", "/dev/shm", "/var/tmp", "/run", os.getcwd()):
            if top == "/":
                continue
            for folder, _, names in os.walk(top):
                for name in names[:100]:
                    path = os.path.join(folder, name)
                    attempt("found in " + ascii(path), lambda: needle.encode() in open(
                        os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb").read(1 << 20)[::-1])
        for fd in range(3):
            attempt(f"found in fd {fd}", lambda: needle.encode() in os.pread(fd, 1 << 20, 0)[::-1])
        """,
    ),
    _threat(
        "harness_objects",
        "sockets and files of the sandbox that are still Python objects",
        """
        import gc, io
        for thing in gc.get_objects():
            kind = type(thing).__name__
            if kind in ("socket", "Connection", "SocketIO", "FileIO", "memfd"):
                def number():
                    return thing.fileno() > 2 and os.fstat(thing.fileno())
                attempt(f"a {kind} is open", number)
        """,
    ),
    _threat(
        "open_files",
        "file descriptors from 3 on: what is there, and what can be read or written",
        """
        import fcntl, stat
        for fd in range(3, 256):
            try:
                kind = stat.filemode(os.fstat(fd).st_mode)
            except OSError:
                continue
            attempt(f"fd {fd} is open: {kind}", lambda: True)
            attempt(f"fd {fd} set", lambda: fcntl.fcntl(fd, fcntl.F_SETFL, os.O_NONBLOCK) == 0)
            attempt(f"fd {fd} read", lambda: os.read(fd, 100))
            attempt(f"fd {fd} written", lambda: os.write(fd, b"{}" * 50))
        """,
    ),
)

WRITING = (
    _threat(
        "write_outside_tmp",
        "makes a file in every place but /tmp",
        """
        import sysconfig
        here = os.getcwd()
        places = {
            "/", "/usr", "/usr/lib", "/usr/bin", "/usr/local", "/bin", "/lib", "/etc", "/var",
            "/var/tmp", "/var/lib", "/run", "/dev", "/dev/shm", "/dev/pts", "/home", "/root",
            "/opt", "/srv", "/mnt", "/proc", "/proc/self", "/sys", "/sys/fs/cgroup", "/work",
            sys.prefix, sys.base_prefix, os.path.dirname(os.__file__),
            *sysconfig.get_paths().values(), *filter(None, sys.path),
            os.path.dirname(sys.executable or "/usr/bin/python3"), os.path.expanduser("~"), here,
        }
        for place in places:
            if place == "/tmp" or place.startswith("/tmp/") or not place.startswith("/"):
                continue
            path = os.path.join(place, "written-by-a-test")
            def write():
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
                os.remove(path)
                return True
            attempt("file in " + place, write)
            attempt("folder in " + place, lambda: os.mkdir(path) is None and (os.rmdir(path), 1))
        """,
    ),
    _threat(
        "change_installed_files",
        "opens the interpreter and its library for writing, changes their times and modes",
        """
        names = [os.__file__, sys.executable, os.path.dirname(os.__file__)]
        try:
            import numpy
            names.append(numpy.__file__)
        except ImportError:
            pass
        for name in filter(None, names):
            attempt("can write " + name, lambda: open(name, "r+b"))
            attempt("can touch " + name, lambda: os.utime(name) is None)
            mode = os.stat(name).st_mode & 0o7777
            attempt("can set the mode of " + name, lambda: os.chmod(name, mode) is None)
            attempt("may write " + name, lambda: os.access(name, os.W_OK))
        """,
    ),
    _threat(
        "devices",
        "opens devices other than null, zero, full, random, urandom and the terminal multiplexer",
        """
        import glob
        harmless = {"null", "zero", "full", "random", "urandom", "ptmx", "stdin", "stdout",
                    "stderr", "fd", "pts", "shm", "core"}
        names = {os.path.join("/dev", name) for name in (
            "mem", "kmem", "port", "kmsg", "sda", "vda", "nvme0n1", "kvm", "fuse", "net/tun",
            "console", "tty", "tty0", "loop0", "loop-control", "nvidia0", "nvidiactl", "dri/card0",
            "mapper/control", "vhost-net", "userfaultfd", "cpu_dma_latency", "input/event0")}
        names |= {n for n in glob.glob("/dev/*") if os.path.basename(n) not in harmless}
        for name in names:
            if os.path.isdir(name):
                continue
            for flags in (os.O_RDONLY, os.O_WRONLY):
                attempt("opened " + name, lambda: os.open(name, flags | os.O_NONBLOCK) >= 0)
        """,
    ),
    _threat(
        "links",
        "symbolic and hard links in /tmp that point outside, and devices made there",
        """
        import stat
        def through(kind, target):
            path = f"/tmp/{kind}-{abs(hash(target))}"
            getattr(os, kind)(target, path)
            if os.path.isdir(path):
                return os.listdir(path)
            return open(path, "rb").read(1)
        for target in ("/etc/passwd", "/etc/shadow", "/var/log", "/proc", "/proc/1/environ",
                       "/proc/self/root/etc/passwd", "../etc/passwd", "../sys"):
            attempt("symlink to " + target, lambda: through("symlink", target))
            attempt("hard link to " + target, lambda: through("link", target))
        def device(kind, major, minor):
            path = f"/tmp/device-{major}-{minor}"
            os.mknod(path, kind | 0o666, os.makedev(major, minor))
            return os.open(path, os.O_RDONLY | os.O_NONBLOCK) >= 0
        attempt("memory device", lambda: device(stat.S_IFCHR, 1, 1))
        attempt("disk device", lambda: device(stat.S_IFBLK, 8, 0))
        attempt("", lambda: os.mkfifo("/tmp/fifo"))
        attempt("", lambda: os.symlink("/tmp/loop", "/tmp/loop"))
        """,
    ),
    _threat(
        "terminal_input",
        "types into a terminal by ioctl on the standard files and /dev/tty",
        """
        import fcntl
        for fd in range(3):
            attempt(f"typed into fd {fd}", lambda: fcntl.ioctl(fd, 0x5412, b"x") == 0)
            attempt(f"fd {fd} is a terminal", lambda: os.isatty(fd))
        attempt("there is a terminal", lambda: os.open("/dev/tty", os.O_RDWR) >= 0)
        """,
    ),
)

NETWORK = (
    _threat(
        "network",
        "TCP, UDP, names, raw and other sockets; a test may give a listening port on stdin",
        """
        import socket
        text = sys.stdin.readline()
        ports = [int(text)] if text.strip() else [22, 80, 443, 8000]
        def connect(family, address):
            with socket.socket(family, socket.SOCK_STREAM) as one:
                one.settimeout(1)
                one.connect(address)
                return True
        def send(family, address):
            with socket.socket(family, socket.SOCK_DGRAM) as one:
                one.settimeout(1)
                return one.sendto(b"x", address)
        for port in ports:
            for host in ("127.0.0.1", "192.0.2.1"):
                attempt(f"TCP {host}:{port}", lambda: connect(socket.AF_INET, (host, port)))
                attempt(f"UDP {host}:{port}", lambda: send(socket.AF_INET, (host, port)))
            attempt(f"TCP [::1]:{port}", lambda: connect(socket.AF_INET6, ("::1", port)))
            attempt(f"UDP [::1]:{port}", lambda: send(socket.AF_INET6, ("::1", port)))
        def listen():
            with socket.socket() as one:
                one.bind(("0.0.0.0", 0))
                one.listen()
                return True
        attempt("listens", listen)
        attempt("name resolved", lambda: socket.getaddrinfo("example.com", 80))
        for name, family, kind in [
            ("raw", "AF_INET", "SOCK_RAW"), ("packet", "AF_PACKET", "SOCK_RAW"),
            ("netlink", "AF_NETLINK", "SOCK_RAW"), ("vsock", "AF_VSOCK", "SOCK_STREAM"),
            ("alg", "AF_ALG", "SOCK_SEQPACKET"), ("bluetooth", "AF_BLUETOOTH", "SOCK_RAW"),
            ("tipc", "AF_TIPC", "SOCK_RDM"), ("can", "AF_CAN", "SOCK_RAW"),
        ]:
            attempt(f"{name} socket", lambda: socket.socket(
                getattr(socket, family), getattr(socket, kind)))
        """,
        expect=EXITED | {"wall_limit"},
    ),
    _threat(
        "local_sockets",
        "sockets in the file system and in the abstract name space",
        """
        import socket
        def connect(address):
            with socket.socket(socket.AF_UNIX) as one:
                one.settimeout(1)
                one.connect(address)
                return True
        for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket",
                     "/run/systemd/private", "/run/user/1000/bus", "/tmp/.X11-unix/X0",
                     "/dev/log", "/run/containerd/containerd.sock"):
            attempt("connected to " + path, lambda: connect(path))
        for name in ("/tmp/.X11-unix/X0", "/tmp/dbus-session", "qualeval", "sandbox"):
            attempt(f"connected to abstract {name}", lambda: connect("\\0" + name))
        def bind():
            with socket.socket(socket.AF_UNIX) as one:
                one.bind("\\0written-by-a-test")
                one.listen()
                return True
        attempt("abstract name bound", bind)
        """,
    ),
)

PRIVILEGES = (
    _threat(
        "become_somebody_else",
        "sets user and group to 0 and to others",
        """
        attempt("runs as user 0", lambda: os.getuid() == 0 or os.geteuid() == 0)
        for number in (0, 1000, 12345):
            if number in (os.getuid(), os.getgid()):
                continue
            attempt(f"group {number}", lambda: os.setgid(number) is None)
            attempt(f"groups {number}", lambda: os.setgroups([number]) is None)
            attempt(f"user {number}", lambda: os.setuid(number) is None)
            attempt(f"real user {number}", lambda: os.setresuid(number, number, number) is None)
        """,
    ),
    _threat(
        "capabilities",
        "holds, takes or inherits capabilities; new privileges; no filter of system calls",
        """
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        data = (ctypes.c_uint32 * 6)()
        if system_call("capget", header, data) == 0:
            attempt(f"holds capabilities {[hex(part) for part in data]}", lambda: any(data))
        everything = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
        attempt("took all capabilities", lambda: system_call("capset", header, everything) == 0)
        one = (ctypes.c_uint32 * 6)(1 << 21, 1 << 21, 0, 0, 0, 0)
        attempt("took one capability", lambda: system_call("capset", header, one) == 0)
        attempt("ambient capability", lambda: libc.prctl(47, 2, 21, 0, 0) == 0)
        attempt("new privileges are possible", lambda: libc.prctl(39, 0, 0, 0, 0) == 0)
        attempt("system calls are not filtered", lambda: libc.prctl(21, 0, 0, 0, 0) == 0)
        """,
        expect=EXITED | {"signaled"},
    ),
    *(
        _threat(
            f"unshare_{name}",
            f"a new {name} namespace, by unshare and by clone",
            f"""
            attempt("unshared {name}", lambda: system_call("unshare", {flag}) == 0)
            def clone():
                child = system_call("clone", {flag} | 17, 0, 0, 0, 0)
                if child == 0:
                    os._exit(0)
                return child > 0
            attempt("cloned {name}", clone)
            def clone3():
                values = (ctypes.c_uint64 * 11)({flag}, 0, 0, 0, 17)
                child = system_call("clone3", values, 88)
                if child == 0:
                    os._exit(0)
                return child > 0
            attempt("cloned {name} by clone3", clone3)
            """,
            expect=EXITED | {"signaled"},
        )
        for name, flag in (
            ("user", 0x10000000),
            ("mount", 0x00020000),
            ("pid", 0x20000000),
            ("net", 0x40000000),
            ("ipc", 0x08000000),
            ("uts", 0x04000000),
            ("cgroup", 0x02000000),
        )
    ),
    _threat(
        "mounts",
        "mount, umount, pivot_root, chroot and the newer calls of the same kind",
        """
        text = ctypes.c_char_p
        attempt("mounted", lambda: system_call(
            "mount", text(b"none"), text(b"/tmp"), text(b"tmpfs"), 0, 0) == 0)
        attempt("made / writable", lambda: system_call(
            "mount", 0, text(b"/"), 0, 32 | 4096, 0) == 0)
        attempt("mounted proc", lambda: system_call(
            "mount", text(b"proc"), text(b"/tmp"), text(b"proc"), 0, 0) == 0)
        attempt("unmounted", lambda: system_call("umount2", text(b"/tmp"), 2) == 0)
        attempt("pivoted", lambda: system_call("pivot_root", text(b"/tmp"), text(b"/tmp")) == 0)
        attempt("changed root", lambda: system_call("chroot", text(b"/tmp")) == 0)
        attempt("new file system", lambda: system_call("fsopen", text(b"tmpfs"), 0) >= 0)
        attempt("cloned a tree", lambda: system_call("open_tree", -100, text(b"/"), 1) >= 0)
        for number in {os.getppid(), 1} - {0, os.getpid()}:
            attempt(f"joined namespaces of {number}", lambda: system_call(
                "setns", system_call("pidfd_open", number, 0), 0x10000000) == 0)
        def by_handle():
            handle = (ctypes.c_uint32 * 34)(128)
            mount = ctypes.c_int()
            system_call("name_to_handle_at", -100, text(b"/"), handle, ctypes.byref(mount), 0)
            root = os.open("/", os.O_RDONLY)
            return system_call("open_by_handle_at", root, handle, 0) >= 0
        attempt("opened by handle", by_handle)
        """,
        expect=EXITED | {"signaled"},
    ),
    _threat(
        "raise_limits",
        "raises its own limits and those of its parent",
        """
        import resource
        names = ["CPU", "FSIZE", "CORE", "NPROC", "AS", "NOFILE", "STACK", "DATA", "MEMLOCK"]
        for name in names:
            which = getattr(resource, "RLIMIT_" + name)
            hard = resource.getrlimit(which)[1]
            endless = hard == resource.RLIM_INFINITY
            attempt(f"no limit of {name}", lambda: endless and name in names[:4])
            for new in (resource.RLIM_INFINITY, hard + 1):
                attempt(f"raised {name}", lambda: not endless and (
                    resource.setrlimit(which, (new, new)) is None))
            parent = os.getppid()
            attempt(f"set {name} of the parent", lambda: parent > 0 and resource.prlimit(
                parent, which, resource.prlimit(parent, which)) is not None)
        """,
    ),
    _threat(
        "core_dump",
        "allows a core dump and crashes",
        """
        import resource
        attempt("core dump allowed", lambda: resource.setrlimit(
            resource.RLIMIT_CORE, (1 << 20, 1 << 20)) is None)
        libc.strlen(ctypes.c_void_p(8))
        """,
        expect=frozenset({"signaled"}),
        says_contained=False,
    ),
    _threat(
        "priority",
        "more priority, real-time scheduling",
        """
        for name in ("SCHED_FIFO", "SCHED_RR"):
            attempt(name, lambda: os.sched_setscheduler(
                0, getattr(os, name), os.sched_param(1)) is None)
        before = os.getpriority(os.PRIO_PROCESS, 0)
        attempt("nicer", lambda: os.nice(-5) < before)
        attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, before - 1) is None)
        attempt("real-time disk", lambda: system_call("ioprio_set", 1, 0, 1 << 13) == 0)
        """,
        expect=EXITED | {"signaled"},
    ),
    _threat(
        "more_cores",
        "takes cores that it was not given",
        """
        before = os.sched_getaffinity(0)
        def widen():
            os.sched_setaffinity(0, range(1024))
            return os.sched_getaffinity(0) - before
        attempt("more cores", widen)
        """,
    ),
    _threat(
        "file_descriptors",
        "opens 4,096 files at once",
        """
        count = 0
        try:
            for count in range(4096):
                os.dup(0)
        except OSError:
            pass
        attempt(f"{count} open files", lambda: count > 2048)
        """,
    ),
)


def _call(name: str, call: str, prepare: str = "") -> Threat:
    """One system call that no program needs; it is denied, unknown, or ends the program."""
    return _threat(
        f"call_{name}",
        f"the system call {name}, with arguments that would work",
        f"{prepare}\nattempt({name!r}, lambda: {call})",
        expect=EXITED | {"signaled"},
    )


# Where a namespace hides the files of the machine, /tmp is the program's own and it may change what
# is there; where none does, these calls reach every file that the user owns. A path that does not
# exist tells them apart: "no such file" means that the kernel looked.
_OF_FILES = (
    ("truncate", "truncate", "path, 0"),
    ("fchmodat", "chmod", "-100, path, 0o777"),
    ("fchmodat2", "chmod without following links", "-100, path, 0o777, 0x100"),
    ("fchownat", "chown", "-100, path, -1, os.getgid(), 0"),
    ("utimensat", "utime", "-100, path, 0, 0"),
    ("setxattr", "setxattr", "path, ctypes.c_char_p(b'user.x'), path, 1, 0"),
    ("lsetxattr", "lsetxattr", "path, ctypes.c_char_p(b'user.x'), path, 1, 0"),
    ("removexattr", "removexattr", "path, ctypes.c_char_p(b'user.x')"),
    ("lremovexattr", "lremovexattr", "path, ctypes.c_char_p(b'user.x')"),
)

BESIDE_THE_WALLS = (
    *(
        _threat(
            f"files_changed_by_{name}",
            f"{what} on a file of the machine: Landlock has no right for it (landlock(7), BUGS)",
            f"""
            import errno
            path = ctypes.c_char_p(b"/tmp/there-is-no-such-file-4417")
            def looked():
                system_call({name!r}, {arguments})
                return ctypes.get_errno() == errno.ENOENT
            if os.stat("/tmp").st_uid != os.getuid():
                attempt({what!r}, looked)
            """,
        )
        for name, what, arguments in _OF_FILES
    ),
    _threat(
        "time_of_a_folder_of_the_machine",
        "the time of a folder that everybody may write to; and of an open file, its mode and owner",
        """
        for folder in ("/tmp", "/var/tmp", "/dev/shm"):
            if os.path.isdir(folder) and os.stat(folder).st_uid != os.getuid():
                attempt("time of " + folder, lambda: os.utime(folder) is None)
        if os.stat("/tmp").st_uid != os.getuid():
            file = os.open(os.__file__, os.O_RDONLY)
            attempt("mode of an open file", lambda: os.fchmod(file, 0o644) is None)
            attempt("time of an open file", lambda: os.utime(file) is None)
        """,
    ),
    _threat(
        "signals_by_queue",
        "sigqueue, which is neither kill nor tgkill: signal 0 to the init and to others",
        """
        info = (ctypes.c_int * 32)()
        info[2] = -1
        for target in {os.getppid() or 1, 1}:
            attempt(f"sigqueue to {target}", lambda: system_call(
                "rt_sigqueueinfo", target, 0, info) == 0)
            attempt(f"sigqueue to a thread of {target}", lambda: system_call(
                "rt_tgsigqueueinfo", target, target, 0, info) == 0)
        """,
    ),
    _threat(
        "signals_by_files",
        "makes another process the owner of a pipe, to which the kernel then sends any signal",
        """
        import fcntl, struct
        read, write = os.pipe()
        target = os.getppid() or 1
        attempt("F_SETOWN", lambda: fcntl.fcntl(read, 8, target) == 0)
        attempt("F_SETOWN_EX", lambda: fcntl.fcntl(read, 15, struct.pack("ii", 1, target)))
        attempt("F_SETSIG", lambda: fcntl.fcntl(read, 10, 9) == 0)
        attempt("FIOSETOWN", lambda: fcntl.ioctl(read, 0x8901, struct.pack("i", target)))
        """,
    ),
    _threat(
        "datagram_to_an_address",
        "one of a pair of local sockets sends to any other socket in the file system",
        """
        import errno, socket
        one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        def reached(address):
            try:
                return one.sendto(b"x", address)
            except OSError as error:
                return error.errno != errno.EPERM
        for address in ("/run/systemd/journal/socket", "/dev/log", "/tmp/no-such-socket-4417",
                        "\\0no-such-socket-4417"):
            attempt(f"looked for {address!r}", lambda: reached(address))
        if one.send(b"y") != 1 or other.recv(1) != b"y":
            raise SystemExit("asyncio needs pairs of sockets")
        """,
    ),
    _threat(
        "pairs_of_other_families",
        "socketpair of families that the kernel would load a module for",
        """
        import errno, socket
        def reached(family, kind):
            try:
                socket.socketpair(family, kind)
            except OSError as error:
                return error.errno != errno.EPERM
            return True
        for family in (10, 16, 21, 30, 38, 40):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                attempt(f"family {family}", lambda: reached(family, kind))
        """,
    ),
    _threat(
        "priority_of_the_user",
        "setpriority for every process of the user, or of the group, by the number 0",
        """
        attempt("of the user", lambda: os.setpriority(os.PRIO_USER, 0, 1) is None)
        attempt("of the group", lambda: os.setpriority(os.PRIO_PGRP, 0, 1) is None)
        attempt("of itself", lambda: os.setpriority(os.PRIO_PROCESS, 0, 1) is None)
        """,
    ),
    _threat(
        "waits_at_will",
        "asks for so small a share of the cores that it always waits, and for more as a session",
        """
        if os.fork() == 0:
            attempt("session", lambda: os.setsid() >= 0)
            for policy in (os.SCHED_IDLE, os.SCHED_BATCH, os.SCHED_OTHER):
                attempt("policy", lambda: os.sched_setscheduler(0, policy, os.sched_param(0)) or 1)
            attempt("parameters", lambda: os.sched_setparam(0, os.sched_param(0)) or 1)
            attempt("nice", lambda: os.nice(19) is not None)
            os._exit(0)
        os.wait()
        """,
    ),
    _threat(
        "reaped_by_the_kernel",
        "20 s of CPU in children of 0.1 s that nobody waits for, and then ends as if nothing was",
        """
        import signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        told, tell = os.pipe()
        os.set_blocking(told, False)
        used = 0.0
        while used < 20:
            try:
                if os.fork() == 0:
                    while time.process_time() < 0.1:
                        pass
                    os.write(tell, b"%08d" % int(time.process_time() * 1e6))
                    os._exit(0)
            except OSError:
                time.sleep(0.01)
            try:
                while True:
                    used += int(os.read(told, 8)) / 1e6
            except BlockingIOError:
                pass
        print("escaped: 20 s of CPU", flush=True)
        """,
        expect=frozenset({"cpu_limit"}),
        outer_namespace=True,
    ),
    _threat(
        "memory_of_threads_alone",
        "the first thread leaves, and with it what /proc tells of the memory of the others",
        """
        import ctypes, platform, threading
        leave = {"x86_64": 60, "aarch64": 93}[platform.machine()]
        for _ in range(5):
            if os.fork() == 0:
                break
        else:
            time.sleep(8)
            print("escaped: 3 GiB in five processes", flush=True)
            os._exit(0)
        def hold():
            held = []
            for _ in range(60):
                held.append(bytearray(10 << 20))
                held[-1][::4096] = b"x" * len(held[-1][::4096])
            time.sleep(8)
            os._exit(0)
        threading.Thread(target=hold).start()
        ctypes.CDLL(None).syscall(leave, 0)
        """,
        expect=frozenset({"memory_limit"}),
        outer_namespace=True,
    ),
    _threat(
        "large_buffers",
        "sockets and pipes with buffers that no limit counts",
        """
        import fcntl, socket
        one, other = socket.socketpair()
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            attempt("socket", lambda: one.setsockopt(socket.SOL_SOCKET, option, 1 << 23) or 1)
        told, tell = os.pipe()
        attempt("pipe", lambda: fcntl.fcntl(tell, 1031, 1 << 20))
        """,
    ),
    _threat(
        "few_for_the_machine",
        "takes asynchronous requests of which the machine has a number, and timers without end",
        """
        import ctypes, platform
        def contexts():
            context = ctypes.c_ulong(0)
            setup = {"x86_64": 206, "aarch64": 0}[platform.machine()]
            return ctypes.CDLL(None).syscall(setup, 60_000, ctypes.byref(context)) == 0
        attempt("contexts", contexts)
        create = {"x86_64": 222, "aarch64": 107}[platform.machine()]
        made = 0
        timer = ctypes.c_int()
        while made < 4096 and not ctypes.CDLL(None).syscall(create, 1, None, ctypes.byref(timer)):
            made += 1
        attempt(f"{made} timers", lambda: made >= 4096)
        """,
    ),
    _threat(
        "waits_for_every_disk",
        "sync writes what all programs of the machine have not written yet, and cannot be killed",
        """
        attempt("sync", lambda: system_call("sync") == 0)
        attempt("syncfs", lambda: system_call("syncfs", os.open("/", os.O_RDONLY)) == 0)
        """,
    ),
    _threat(
        "instances_of_inotify",
        "of which a user has 128, whatever namespace they are made in",
        """
        attempt("inotify", lambda: system_call("inotify_init1", 0) >= 0)
        """,
    ),
    _threat(
        "core_piped_to_a_handler",
        "a core limit of 0 does not keep a crash from starting the machine's crash handler; 1 does",
        """
        import resource
        limits = resource.getrlimit(resource.RLIMIT_CORE)
        attempt(f"core limit {limits}", lambda: limits != (1, 1))
        """,
    ),
    _threat(
        "limits_of_scheduling",
        "real-time priority that an audio setup may give to users",
        """
        import resource
        for name in ("RLIMIT_RTPRIO", "RLIMIT_NICE"):
            limits = resource.getrlimit(getattr(resource, name))
            attempt(f"{name} {limits}", lambda: limits != (0, 0))
        """,
    ),
)

SYSTEM_CALLS = (
    _call(
        "bpf",
        "system_call('bpf', 0, attributes, 72) >= 0",
        "attributes = (ctypes.c_uint32 * 18)(2, 4, 4, 1)",
    ),
    _call(
        "perf_event_open",
        "system_call('perf_event_open', attributes, 0, -1, -1, 0) >= 0",
        # Software event 0, only this process, without the kernel.
        "attributes = (ctypes.c_uint32 * 32)(1, 128)\nattributes[10] = 0b1100001",
    ),
    _call("userfaultfd", "system_call('userfaultfd', 1) >= 0"),
    _call("io_uring_setup", "system_call('io_uring_setup', 1, bytes(120)) >= 0"),
    _call("keyctl", "system_call('keyctl', 0, -2, 1) > 0"),
    _call(
        "add_key",
        "system_call('add_key', name(b'user'), name(b'k'), name(b'v'), 1, -2) > 0",
        "name = ctypes.c_char_p",
    ),
    _call(
        "request_key",
        "system_call('request_key', name(b'keyring'), name(b'_uid.0'), 0, 0) > 0",
        "name = ctypes.c_char_p",
    ),
    _call("memfd_create", "system_call('memfd_create', ctypes.c_char_p(b'x'), 0) >= 0"),
    _call("memfd_secret", "system_call('memfd_secret', 0) >= 0"),
    _call("fanotify_init", "system_call('fanotify_init', 0x200, 0) >= 0"),
    # Without the right to load modules the answer is EPERM, whatever is to be loaded.
    _call(
        "init_module",
        "system_call('init_module', bytes(64), 64, bytes(1)) == 0"
        " or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)",
        "import errno",
    ),
    _call(
        "finit_module",
        "system_call('finit_module', 0, bytes(1), 0) == 0"
        " or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS)",
        "import errno",
    ),
    _call("kexec_load", "system_call('kexec_load', 0, 0, 0, 0) == 0"),
    # Command 0 only turns the keys Ctrl-Alt-Del off.
    _call("reboot", "system_call('reboot', 0xFEE1DEAD, 672274793, 0, 0) == 0"),
    _call("acct", "system_call('acct', 0) == 0"),
    _call("settimeofday", "system_call('settimeofday', 0, 0) == 0"),
    _call("sethostname", "system_call('sethostname', b'escaped', 7) == 0"),
    _call("setdomainname", "system_call('setdomainname', b'escaped', 7) == 0"),
    _call("syslog", "system_call('syslog', 3, ctypes.create_string_buffer(4096), 4096) > 0"),
    _call("vhangup", "system_call('vhangup') == 0"),
    _call("personality", "system_call('personality', 0x0040000) >= 0"),
    _call("shmget", "system_call('shmget', 0, 4096, 0o1600) >= 0"),
    _call("semget", "system_call('semget', 0, 1, 0o1600) >= 0"),
    _call("msgget", "system_call('msgget', 0, 0o1600) >= 0"),
    _call("mq_open", "system_call('mq_open', ctypes.c_char_p(b'x'), 0o102, 0o600, 0) >= 0"),
    _threat(
        "call_x32",
        "getpid by the x32 table of system calls, which filters often forget",
        """
        if os.uname().machine == "x86_64":
            attempt("x32", lambda: libc.syscall(ctypes.c_long(0x40000000 + 39)) > 0)
        """,
        expect=EXITED | {"signaled"},
    ),
    _threat(
        "call_32_bit",
        "getpid by int 0x80: the 32-bit table, with machine code of its own",
        """
        import ctypes, mmap
        if os.uname().machine == "x86_64":
            private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
            anything = mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC
            page = mmap.mmap(-1, 4096, flags=private, prot=anything)
            # push rbx; mov eax, 20; int 0x80; pop rbx; ret
            page.write(bytes.fromhex("53 b8 14 00 00 00 cd 80 5b c3"))
            first = ctypes.c_char.from_buffer(page)
            function = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(first))
            attempt("32-bit system calls", lambda: function() > 0)
        """,
        expect=EXITED | {"signaled"},
    ),
)

INTERPRETER = (
    _threat(
        "exit_after_part_of_the_output",
        "os._exit(0) in the middle: what was written counts, and the status is that of an exit",
        """
        os.write(1, b"contained")
        os._exit(0)
        """,
    ),
    _threat(
        "exit_code",
        "sys.exit with a code",
        """
        sys.exit(7)
        """,
        exit_code=7,
        says_contained=False,
    ),
    _threat(
        "keyboard_interrupt",
        "ends by KeyboardInterrupt, which is no Exception",
        """
        raise KeyboardInterrupt
        """,
        expect=EXITED | {"signaled"},
        exit_code=None,
        says_contained=False,
    ),
    _threat(
        "exits_patched",
        "makes every way to end do nothing, so that a forked harness would go on as the child",
        """
        import atexit, signal, threading
        def nothing(*args, **kwargs):
            return None
        print("contained", flush=True)
        os._exit = os.abort = os.kill = sys.exit = sys.excepthook = nothing
        threading._shutdown = signal.raise_signal = atexit._run_exitfuncs = nothing
        raise SystemExit(0)
        """,
        expect=EXITED | {"signaled"},
        exit_code=None,
    ),
    _threat(
        "builtins_cleared",
        "leaves an interpreter in which nothing works",
        """
        import builtins
        print("contained", flush=True)
        sys.stdout = sys.stderr = sys.stdin = None
        sys.modules.clear()
        builtins.__dict__.clear()
        """,
        expect=EXITED | {"signaled"},
        exit_code=None,
    ),
    _threat(
        "harness_patched",
        "patches what a harness in the same interpreter would use to report",
        """
        import builtins, io, json, marshal, pickle, resource, struct
        def forged(*args, **kwargs):
            os.write(1, b"escaped: the harness called a patched function\\n")
            raise SystemExit(0)
        print("contained", flush=True)
        json.dumps = json.loads = struct.pack = struct.unpack = marshal.dumps = forged
        pickle.dumps = resource.getrusage = os.wait4 = os.waitpid = os.read = forged
        """,
    ),
    _threat(
        "deep_recursion",
        "recursion through C code until the stack ends",
        """
        sys.setrecursionlimit(10**9)
        def down():
            return max([0], key=lambda _: down())
        down()
        """,
        expect=_ENDS_ANYHOW,
        exit_code=None,
        says_contained=False,
    ),
    _threat(
        "segmentation_fault",
        "reads address 8",
        """
        libc.strlen(ctypes.c_void_p(8))
        """,
        expect=frozenset({"signaled"}),
        says_contained=False,
    ),
    _threat(
        "abort",
        "SIGABRT",
        """
        os.abort()
        """,
        expect=frozenset({"signaled"}),
        says_contained=False,
    ),
    _threat(
        "session_of_its_own",
        "a new session and process group, as if a signal to the old group could miss it",
        """
        attempt("", lambda: os.setsid())
        attempt("", lambda: os.setpgid(0, 0))
        time.sleep(600)
        """,
        expect=frozenset({"wall_limit"}),
        says_contained=False,
    ),
)


def _bomb(name: str, what: str, code: str) -> Threat:
    """A program that is hard to compile: its text stands alone, without helpers."""
    return Threat(name, what, code, expect=_ENDS_ANYHOW, exit_code=None, says_contained=False)


def _nested_blocks(depth: int) -> str:
    return "".join(" " * level + "for a in b:\n" for level in range(depth)) + " " * depth + "c\n"


COMPILER = (
    _bomb("nested_brackets", "100,000 brackets", "(" * 100_000 + ")" * 100_000),
    _bomb("nested_signs", "a million signs before a number", "x = " + "-" * 1_000_000 + "1"),
    _bomb("nested_calls", "a chain of 100,000 calls", "a" + ".b()" * 100_000),
    _bomb("long_sum", "a sum of 200,000 numbers", "x = " + "+".join(["a"] * 200_000)),
    _bomb("huge_number", "a number of a million digits", "x = " + "9" * 1_000_000),
    _bomb(
        "huge_constants",
        "powers that a compiler might compute",
        "x = 9 ** 9 ** 9 ** 9 if 0 else (((1,) * 250) * 250) * 250\n" * 50,
    ),
    _bomb("many_blocks", "90 blocks inside each other", _nested_blocks(90)),
    _bomb("nul_in_the_code", "NUL in the source", "print(1)\x00print(2)\n"),
    _bomb("surrogate_in_the_code", "half a surrogate pair in the source", "print('\ud800')\n"),
    _bomb(
        "false_encoding",
        "names an encoding that would read the source otherwise",
        "# -*- coding: utf-7 -*-\nprint('+AGEAYg-')\n",
    ),
)

THREATS: Sequence[Threat] = (
    *PROCESSES,
    *MEMORY,
    *OUTPUT,
    *TIME_THREATS,
    *SIGNALS,
    *READING,
    *WRITING,
    *NETWORK,
    *PRIVILEGES,
    *BESIDE_THE_WALLS,
    *SYSTEM_CALLS,
    *INTERPRETER,
    *COMPILER,
)


def _poison(name: str, what: str, first: str, second: str, *, stdin: bytes = b"") -> Poison:
    """Whatever the first program may do, the second sees nothing of it."""
    return Poison(
        name=name,
        first=_threat(f"{name}_first", what, first, expect=EXITED | {"signaled"}, exit_code=None),
        second=_threat(f"{name}_second", f"sees what was left: {what}", second, stdin=stdin),
    )


POISONS: Sequence[Poison] = (
    _poison(
        "files",
        "files left in every place where one can be written",
        """
        for place in ("/tmp", "/dev/shm", "/var/tmp", "/", "/run", os.getcwd()):
            attempt("", lambda: open(place + "/poison", "w").write("x") and None)
        """,
        """
        for place in ("/tmp", "/dev/shm", "/var/tmp", "/", "/run", os.getcwd()):
            attempt("poison in " + place, lambda: os.path.exists(place + "/poison"))
        """,
    ),
    _poison(
        "modules_on_the_path",
        "modules with the names of the standard library in /tmp and in the working folder",
        """
        for place in {"/tmp", os.getcwd(), *filter(None, sys.path)}:
            for name in ("random", "bisect", "sitecustomize", "usercustomize", "colorsys"):
                attempt("", lambda: open(f"{place}/{name}.py", "w").write("poison = 1\\n") and None)
        """,
        """
        import bisect, colorsys, random
        for module in (bisect, colorsys, random):
            attempt(module.__name__, lambda: hasattr(module, "poison"))
        """,
    ),
    _poison(
        "patched_modules",
        "patched functions and settings of the interpreter",
        """
        import builtins, json, math
        builtins.poison = json.poison = math.poison = sys.poison = 1
        math.sqrt = len
        sys.setrecursionlimit(200)
        sys.path.insert(0, "/poison")
        sys.set_int_max_str_digits(700)
        os.environ["POISON"] = os.environ["PYTHONPATH"] = "1"
        os.umask(0o777)
        """,
        """
        import builtins, json, math
        for module in (builtins, json, math, sys):
            attempt(module.__name__, lambda: hasattr(module, "poison"))
        attempt("sqrt", lambda: math.sqrt(4) != 2)
        attempt("recursion limit", lambda: sys.getrecursionlimit() == 200)
        attempt("path", lambda: "/poison" in sys.path)
        attempt("digits", lambda: sys.get_int_max_str_digits() == 700)
        attempt("environment", lambda: {"POISON", "PYTHONPATH"} & set(os.environ))
        attempt("umask", lambda: os.umask(0) == 0o777)
        """,
    ),
    _poison(
        "system_v",
        "shared memory, semaphores and queues of System V",
        """
        system_call("shmget", 0x51554556, 4096, 0o1666)
        system_call("semget", 0x51554556, 1, 0o1666)
        system_call("msgget", 0x51554556, 0o1666)
        """,
        """
        attempt("shared memory", lambda: system_call("shmget", 0x51554556, 0, 0) >= 0)
        attempt("semaphore", lambda: system_call("semget", 0x51554556, 0, 0) >= 0)
        attempt("queue", lambda: system_call("msgget", 0x51554556, 0) >= 0)
        """,
    ),
    _poison(
        "posix_ipc",
        "POSIX shared memory and message queues",
        """
        attempt("", lambda: libc.shm_open(b"/poison", 0o102, 0o666) and None)
        attempt("", lambda: system_call("mq_open", b"poison", 0o102, 0o666, 0) and None)
        """,
        """
        attempt("shared memory", lambda: libc.shm_open(b"/poison", 0, 0) >= 0)
        attempt("queue", lambda: system_call("mq_open", b"poison", 0, 0, 0) >= 0)
        """,
    ),
    _poison(
        "keys",
        "a key in the user's keyring",
        """
        name = ctypes.c_char_p
        system_call("add_key", name(b"user"), name(b"poison"), name(b"v"), 1, -4)
        system_call("add_key", name(b"user"), name(b"poison"), name(b"v"), 1, -3)
        """,
        """
        name = ctypes.c_char_p
        for ring in (-4, -3):
            attempt(f"key in {ring}", lambda: system_call(
                "keyctl", 10, ring, name(b"user"), name(b"poison"), 0) > 0)
        """,
    ),
    _poison(
        "processes",
        "a daemon that goes on",
        """
        if os.fork() == 0:
            attempt("", lambda: os.setsid() and None)
            attempt("", lambda: os.setpgid(0, 0))
            if os.fork() == 0:
                time.sleep(60)
            os._exit(0)
        """,
        """
        for number in range(2, 400):
            if number != os.getpid():
                attempt(f"process {number}", lambda: os.kill(number, 0) is None)
        """,
    ),
    _poison(
        "priority",
        "lowest priority and one core",
        """
        attempt("", lambda: os.nice(19) and None)
        attempt("", lambda: os.sched_setaffinity(0, [min(os.sched_getaffinity(0))]))
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))
        """,
        """
        import resource
        attempt("priority", lambda: os.nice(0) == 19)
        attempt("open files", lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[1] == 10)
        """,
    ),
    _poison(
        "standard_files",
        "writes over its own input and seals its files, in case they are used again",
        """
        import fcntl
        for fd in range(3):
            attempt("", lambda: os.pwrite(fd, b"poison\\n", 0) and None)
            attempt("", lambda: fcntl.fcntl(fd, 1033, 15) and None)
            attempt("", lambda: fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB))
        """,
        """
        attempt("input", lambda: sys.stdin.read() != "clean\\n")
        """,
        stdin=b"clean\n",
    ),
    _poison(
        "control_channel",
        "writes into every open file, were one of them the sandbox's own",
        """
        for fd in range(3, 1024):
            for data in (b"poison", b'{"status": "exited", "exit_code": 0}\\n', bytes(64)):
                attempt(f"fd {fd} written", lambda: os.write(fd, data))
        """,
        """
        pass
        """,
    ),
)


def _forgery(
    name: str, what: str, code: str, *, script: bool = False, verdict: str = "wrong_answer"
) -> Forgery:
    text = dedent(code).strip("\n") + "\n"
    return Forgery(name, what, text, None if script else "f", verdict)


def _own_frame(frame: str) -> str:
    """An answer that writes this expression of bytes wherever a harness may listen, and leaves."""
    return f"""
import os
class Solution:
    def f(self, x):
        for fd in range(1, 64):
            try:
                os.write(fd, {frame})
            except OSError:
                pass
        os._exit(0)
"""


FORGERIES: Sequence[Forgery] = (
    _forgery(
        "list_equal_to_everything",
        "a list that overrides equality (lcb-16)",
        """
        class Equal(list):
            def __eq__(self, other):
                return True
        class Solution:
            def f(self, x):
                return Equal()
        """,
    ),
    _forgery(
        "text_equal_to_everything",
        "a text that overrides equality, hash and every way to be written",
        """
        class Equal(str):
            def __eq__(self, other):
                return True
            def __hash__(self):
                return 0
            def __str__(self):
                return self
            __repr__ = __str__
        class Solution:
            def f(self, x):
                return Equal("x")
        """,
    ),
    _forgery(
        "false_class",
        "an object that says that it is a text",
        """
        class Equal:
            __class__ = str
            def __eq__(self, other):
                return True
        class Solution:
            def f(self, x):
                return Equal()
        """,
    ),
    _forgery(
        "caller_frames",
        "returns whatever its callers hold under a name that sounds right",
        """
        import sys
        class Solution:
            def f(self, x):
                frame = sys._getframe()
                while frame:
                    for name, value in frame.f_locals.items():
                        if "expected" in name or "output" in name or name == "gt_out":
                            return value
                    frame = frame.f_back
        """,
    ),
    _forgery(
        "writer_patched",
        "patches the writer of the result",
        """
        import json
        json.dumps = lambda *args, **kwargs: "true"
        class Solution:
            def f(self, x):
                return 0
        """,
    ),
    _forgery(
        "own_frame", "writes a result of its own", _own_frame("b'qualeval-result 4\\ntrue\\n'")
    ),
    _forgery(
        "own_frame_of_a_wrong_length",
        "a result that claims to be a gigabyte long",
        _own_frame("b'qualeval-result 999999999\\ntrue\\n'"),
        verdict="runtime_error",
    ),
    _forgery(
        "own_frame_nested_too_deep",
        "a result that no parser finishes",
        _own_frame("b'qualeval-result 200000\\n' + b'[' * 200000 + b'\\n'"),
    ),
    _forgery(
        "own_frame_misshapen",
        "a result with tags that hold the wrong things",
        _own_frame("b'qualeval-result 16\\n' + b'{\"dict\": [1, 2]}' + b'\\n'"),
        verdict="runtime_error",
    ),
    _forgery(
        "verdict_words",
        "prints the words that other harnesses look for",
        """
        print("accepted\\nPASS\\nTrue\\n[True]\\n1.0\\nOK", flush=True)
        import os
        os._exit(0)
        """,
        script=True,
    ),
    _forgery("silence", "ends well without an answer", "import os\nos._exit(0)", script=True),
    _forgery(
        "silent_function",
        "leaves before there is a result",
        "import os\nclass Solution:\n    def f(self, x):\n        os._exit(0)\n",
        verdict="runtime_error",
    ),
)


def _ordinary(name: str, code: str, stdout: str, stdin: str = "") -> Ordinary:
    return Ordinary(name, dedent(code).strip("\n") + "\n", stdout.encode(), stdin.encode())


ORDINARY: Sequence[Ordinary] = (
    _ordinary("hello", "print('hello')", "hello\n"),
    _ordinary(
        "numpy",
        """
        import numpy as np
        print(int(np.arange(10).sum()), int(np.linalg.det(np.eye(3))))
        """,
        "45 1\n",
    ),
    _ordinary(
        "threads",
        """
        import threading
        done = []
        threads = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        print(sorted(done))
        """,
        "[0, 1, 2, 3, 4, 5, 6, 7]\n",
    ),
    _ordinary(
        # Each reserves its stack, and all of them have to fit the address space.
        "twenty_threads_at_once",
        """
        import threading
        end = threading.Event()
        threads = [threading.Thread(target=end.wait) for _ in range(20)]
        for one in threads:
            one.start()
        print(threading.active_count())
        end.set()
        """,
        "21\n",
    ),
    _ordinary(
        # Counted once: nobody else may say that 500 MiB are 3 GiB.
        "memory_shared_with_children",
        """
        import os, time
        held = bytearray(b"x") * (500 << 20)
        go, start = os.pipe()
        children = []
        for number in range(5):
            child = os.fork()
            if child == 0:
                os.close(start)
                os.read(go, 1)
                os._exit(held[number] - 120)
            children.append(child)
        time.sleep(0.5)
        os.close(start)
        print([os.waitpid(child, 0)[1] for child in children])
        """,
        "[0, 0, 0, 0, 0]\n",
    ),
    _ordinary(
        "pair_of_sockets",
        """
        import asyncio, socket
        one, other = socket.socketpair()
        one.sendall(b"x")
        async def main():
            await asyncio.sleep(0)
            return await asyncio.gather(*(asyncio.sleep(0, n) for n in range(3)))
        print(other.recv(1), asyncio.run(main()))
        """,
        "b'x' [0, 1, 2]\n",
    ),
    _ordinary(
        "thread_with_a_big_stack",
        """
        import sys, threading
        sys.setrecursionlimit(10**6)
        threading.stack_size(128 * 1024 * 1024)
        def depth(n):
            return 0 if n == 0 else 1 + depth(n - 1)
        def main():
            print(depth(int(input())))
        one = threading.Thread(target=main)
        one.start()
        one.join()
        """,
        "100000\n",
        "100000\n",
    ),
    _ordinary(
        "deep_recursion",
        """
        import sys
        sys.setrecursionlimit(200_000)
        def depth(n):
            return 0 if n == 0 else 1 + depth(n - 1)
        print(depth(100_000))
        """,
        "100000\n",
    ),
    _ordinary(
        "cached_recursion",
        """
        import sys
        from functools import cache
        sys.setrecursionlimit(10**6)
        @cache
        def total(n):
            return 0 if n == 0 else n + total(n - 1)
        print(total(15_000))
        """,
        "112507500\n",
    ),
    _ordinary("input", "a = int(input()); b = int(input()); print(a + b)", "11\n", "4\n7\n"),
    _ordinary("input_without_newline_at_the_end", "print(input())", "x\n", "x"),
    _ordinary(
        "input_at_the_end",
        """
        try:
            while True:
                print(int(input()) * 2)
        except EOFError:
            print("end")
        """,
        "2\n4\nend\n",
        "1\n2\n",
    ),
    _ordinary("open_0", "print(sum(map(int, open(0).read().split())))", "11\n", "4\n7\n"),
    _ordinary(
        "open_dev_stdin", "print(open('/dev/stdin').read().split())", "['4', '7']\n", "4\n7\n"
    ),
    _ordinary(
        "lines_of_stdin", "import sys\nprint(sum(int(x) for x in sys.stdin))", "11\n", "4\n7\n"
    ),
    _ordinary(
        "stdin_buffer",
        """
        import sys
        read = sys.stdin.buffer.readline
        a = int(read()); b = int(read())
        print(a * 10 + b, sys.stdin.buffer.read())
        """,
        "47 b'rest\\n'\n",
        "4\n7\nrest\n",
    ),
    _ordinary(
        "readline_then_read",
        """
        import sys
        n = int(sys.stdin.readline())
        print(n, len(sys.stdin.read().split()))
        """,
        "2 2\n",
        "2\n8 9\n",
    ),
    _ordinary("os_read", "import os\nprint(os.read(0, 100))", "b'4 7\\n'\n", "4 7\n"),
    _ordinary("os_fstat_read", "import os\nprint(os.fstat(0).st_size)", "4\n", "4 7\n"),
    _ordinary("os_write", "import os\nos.write(1, b'5\\n')", "5\n"),
    _ordinary("stdout_buffer", "import sys\nsys.stdout.buffer.write(b'5\\n')", "5\n"),
    _ordinary(
        "stdout_wrapped",
        """
        import io, os, sys
        sys.stdin = io.TextIOWrapper(io.BytesIO(os.read(0, os.fstat(0).st_size)))
        sys.stdout = io.TextIOWrapper(sys.stdout.buffer, line_buffering=False)
        print(sys.stdin.readline().strip()[::-1])
        sys.stdout.flush()
        """,
        "cba\n",
        "abc\n",
    ),
    Ordinary(
        "surrogateescape",
        "import sys\n"
        "text = sys.stdin.buffer.read().decode('utf-8', 'surrogateescape')\n"
        "sys.stdout.buffer.write(text.encode('utf-8', 'surrogateescape'))\n",
        b"\xff\xfe ok\n",
        b"\xff\xfe ok\n",
    ),
    _ordinary("text_beyond_ascii", "print(input()[::-1], 'żółć')", "éßa żółć\n", "aßé\n"),
    _ordinary(
        "files_in_tmp",
        """
        import os, tempfile
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "a.txt")
            with open(path, "w") as file:
                file.write("kept")
            print(open(path).read())
        with open("/tmp/b.txt", "w") as file:
            file.write("kept too")
        print(open("/tmp/b.txt").read(), os.listdir("/tmp").count("b.txt"))
        """,
        "kept\nkept too 1\n",
    ),
    _ordinary(
        "everyday_os",
        """
        import datetime, os, random, time
        print(os.getpid() > 0, os.path.isdir(os.getcwd()), time.time() > 10**9)
        print(time.perf_counter() >= 0, datetime.date(2026, 9, 1).isoweekday())
        random.seed(1)
        print(random.randint(1, 100), len(os.urandom(4)), os.cpu_count() >= 1)
        """,
        "True True True\nTrue 2\n18 4 True\n",
    ),
    _ordinary("long_integer", "print(10**5000)", "1" + "0" * 5000 + "\n"),
    _ordinary("long_integer_read", "print(int(input()) % 97)", "60\n", "9" * 20_000 + "\n"),
    _ordinary("exit", "print(1)\nexit()\nprint(2)", "1\n"),
    _ordinary("quit", "print(1)\nquit()\nprint(2)", "1\n"),
    _ordinary("exit_0", "import sys\nprint(1)\nsys.exit(0)", "1\n"),
    _ordinary("raise_system_exit", "print(1)\nraise SystemExit", "1\n"),
    _ordinary("os_exit", "import os\nprint(1, flush=True)\nos._exit(0)", "1\n"),
    _ordinary(
        "main_guard",
        """
        def main():
            print(input())
        if __name__ == "__main__":
            main()
        """,
        "x\n",
        "x\n",
    ),
    _ordinary(
        "main_guard_swapped_and_not_last",
        """
        if "__main__" == __name__:
            print(1)
        else:
            print(2)
        print(3)
        """,
        "1\n3\n",
    ),
    _ordinary(
        "main_module",
        """
        import sys
        import __main__
        x = 5
        print(__main__.x, sys.modules["__main__"].x, __name__)
        """,
        "5 5 __main__\n",
    ),
    _ordinary(
        "global_names",
        """
        n = 0
        def add():
            global n
            n += 1
        add()
        exec("m = n + 1")
        print(n, m, globals()["n"], "n" in dir())
        """,
        "1 2 1 True\n",
    ),
    _ordinary(
        "star_import_in_try",
        """
        try:
            from math import *
        except ImportError:
            pass
        print(gcd(12, 18))
        """,
        "6\n",
    ),
    _ordinary(
        "future_annotations",
        """
        from __future__ import annotations
        def f(x: Undefined) -> list[Undefined]:
            return [x]
        print(f(1), f.__annotations__["x"])
        """,
        "[1] Undefined\n",
    ),
    _ordinary(
        "dataclasses_and_pickle",
        """
        import pickle
        from dataclasses import dataclass
        @dataclass(order=True)
        class Point:
            x: int
            y: int = 0
        print(min(Point(2), Point(1, 5)), pickle.loads(pickle.dumps(Point(1))) == Point(1))
        """,
        "Point(x=1, y=5) True\n",
    ),
    _ordinary(
        "class_solution_in_a_script",
        """
        from typing import List
        class Solution:
            def total(self, a: List[int]) -> int:
                return sum(a)
        print(Solution().total(list(map(int, input().split()))))
        """,
        "6\n",
        "1 2 3\n",
    ),
    _ordinary("arguments", "import sys\nprint(len(sys.argv))", "1\n"),
    _ordinary(
        "standard_library",
        """
        import array, bisect, collections, copy, decimal, enum, fractions, functools, heapq
        import itertools, json, math, operator, re, statistics, string, textwrap, typing, zlib
        print(decimal.Decimal("0.1") + decimal.Decimal("0.2"), fractions.Fraction(1, 3) * 3)
        heap = [3, 1, 2]
        heapq.heapify(heap)
        print(heapq.heappop(heap), bisect.bisect([1, 2, 2, 3], 2), math.comb(5, 2))
        print(*itertools.accumulate([1, 2, 3]), collections.Counter("abca").most_common(1))
        """,
        "0.3 1\n1 3 10\n1 3 6 [('a', 2)]\n",
    ),
    _ordinary(
        "resource_and_signal",
        """
        import resource, signal, sys
        soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
        resource.setrlimit(resource.RLIMIT_STACK, (hard, hard))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        print("fine")
        """,
        "fine\n",
    ),
    _ordinary(
        "thread_pool",
        """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(max_workers=4) as pool:
            print(list(pool.map(lambda n: n * n, range(5))))
        """,
        "[0, 1, 4, 9, 16]\n",
    ),
    _ordinary(
        "much_output",
        """
        print("\\n".join(map(str, range(200_000)))[-6:])
        for n in range(100_000):
            print(n % 10, end="")
        print()
        """,
        "199999\n" + "0123456789" * 10_000 + "\n",
    ),
    _ordinary(
        "memory_within_the_limit", "a = bytearray(b'x') * (200 << 20)\nprint(len(a))", "209715200\n"
    ),
    _ordinary("warnings_on_stderr", "import sys\nprint('note', file=sys.stderr)\nprint(1)", "1\n"),
    _ordinary("no_output", "pass", ""),
)
