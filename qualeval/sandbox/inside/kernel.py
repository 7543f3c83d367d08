"""System calls that Python has no name for, by ctypes; x86-64 and aarch64.

Numbers are those of Linux's syscall_64.tbl and asm-generic/unistd.h. Every call raises OSError
with the kernel's errno.
"""

import ctypes
import os
import platform

MACHINE = platform.machine()

CLONE_NEWNS = 0x00020000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
SIGCHLD = 17

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MS_NOATIME, MS_NODIRATIME, MS_RELATIME = 1024, 2048, 1 << 21
MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, PR_CAP_AMBIENT_CLEAR_ALL = 47, 2, 4
CAP_SETPCAP, CAP_SYS_ADMIN = 8, 21

CAPABILITY_VERSION_3 = 0x20080522

CALLS = {
    "x86_64": {"clone": 56, "pivot_root": 155, "capset": 126, "seccomp": 317},
    "aarch64": {"clone": 220, "pivot_root": 41, "capset": 91, "seccomp": 277},
}
LANDLOCK_CREATE_RULESET, LANDLOCK_ADD_RULE, LANDLOCK_RESTRICT_SELF = 444, 445, 446
"""Since Linux 5.13, the same number everywhere."""

# PyDLL keeps the interpreter's lock: after `clone` there is one thread, and it must hold it.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def call(number: int, *arguments: object) -> int:
    """One system call. Raises OSError."""
    ctypes.set_errno(0)
    result = int(_libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _checked(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")


def number(name: str) -> int:
    """The number of a system call on this machine. Raises OSError on one that is not known."""
    if MACHINE not in CALLS:
        raise OSError(f"no sandbox for {MACHINE}: x86_64 and aarch64 have one")
    return CALLS[MACHINE][name]


def unshare(flags: int) -> None:
    """Leave namespaces."""
    _checked(_libc.unshare(ctypes.c_int(flags)), "unshare")


def set_host_name(name: str) -> None:
    """Call the machine by another name, in this namespace."""
    _checked(_libc.sethostname(name.encode(), ctypes.c_size_t(len(name))), "sethostname")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount something."""
    words = [None if w is None else w.encode() for w in (source, target, kind)]
    extra = None if data is None else data.encode()
    done = _libc.mount(*words, ctypes.c_ulong(flags), extra)
    _checked(done, f"mount {source} on {target}")


def unmount(target: str) -> None:
    """Detach what is mounted there."""
    _checked(_libc.umount2(target.encode(), MNT_DETACH), f"unmount {target}")


def pivot_root(new: str, old: str) -> None:
    """Make `new` the root and put the old one at `old`."""
    call(number("pivot_root"), new.encode(), old.encode())


def prctl(option: int, value: int = 0, third: int = 0) -> None:
    """A process setting."""
    arguments = [ctypes.c_ulong(v) for v in (value, third, 0, 0)]
    _checked(_libc.prctl(ctypes.c_int(option), *arguments), f"prctl {option}")


def fork_into(flags: int) -> int:
    """Fork into new namespaces: 0 in the child, its process id in the parent.

    The child must do nothing but set up and fork again: the C library was not told of this fork.
    """
    api = ctypes.pythonapi
    api.PyOS_BeforeFork()
    try:
        pid = call(number("clone"), ctypes.c_ulong(flags | SIGCHLD), *[ctypes.c_ulong(0)] * 4)
    except OSError:
        api.PyOS_AfterFork_Parent()
        raise
    if pid == 0:
        api.PyOS_AfterFork_Child()
    else:
        api.PyOS_AfterFork_Parent()
    return pid


_Header, _Sets = ctypes.c_uint32 * 2, ctypes.c_uint32 * 6
"""Effective, permitted and inheritable capabilities: 32 of each, then the other 32 of each."""


def _set_capabilities(bits: int) -> None:
    """Have these capabilities, effective, permitted and inheritable, and no others."""
    header, data = _Header(CAPABILITY_VERSION_3, 0), _Sets(bits, bits, bits, 0, 0, 0)
    call(number("capset"), ctypes.byref(header), ctypes.byref(data))


def keep_capabilities(*capabilities: int) -> None:
    """Keep just these, over `exec` too."""
    _set_capabilities(sum(1 << capability for capability in capabilities))
    for capability in capabilities:
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability)


def drop_capabilities() -> None:
    """Give up every capability, for this process and all it starts."""
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    _set_capabilities(0)


def drop_bounding_set() -> None:
    """No program started from here on can gain a capability by being executed."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:  # past the last one that this kernel knows
            return
