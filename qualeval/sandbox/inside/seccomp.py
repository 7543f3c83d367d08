"""The system calls that a program may not make.

A deny list: what a judge's Python program has no use for and what has opened kernels before. A
denied call fails with EPERM, as if the kernel were built without it; calls of a foreign instruction
set end the process, since their numbers mean something else. Numbers: syscall_64.tbl and
asm-generic/unistd.h of Linux 6.12.
"""

import ctypes
import struct

import kernel

ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_BIT = 0x40000000

DENIED: dict[str, tuple[int | None, int | None]] = {
    # name: (x86-64, aarch64); None where an architecture has no such call.
    # Network. Pairs of connected sockets stay: asyncio wakes itself up through one.
    "socket": (41, 198),
    "connect": (42, 203),
    "accept": (43, 202),
    "sendmsg": (46, 211),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept4": (288, 242),
    "setsockopt": (54, 208),  # larger buffers, which no limit counts
    "sendmmsg": (307, 269),
    # Other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_send_signal": (424, 424),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    # Its share of the cores: a session has one of its own where sessions are grouped, and who asks
    # for less waits for a core at will.
    "setsid": (112, 157),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    # Memory that no limit counts, or that outlives its process.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "mq_timedsend": (242, 182),
    "mq_timedreceive": (243, 183),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "set_mempolicy_home_node": (450, 450),
    "remap_file_pages": (216, 234),
    # File systems and namespaces.
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "mount": (165, 40),
    "umount2": (166, 39),
    "quotactl": (179, 60),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "quotactl_fd": (443, 443),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    # These wait for every disk of the machine, and take of what a user has few of.
    "sync": (162, 81),
    "syncfs": (306, 267),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    # Corners of the kernel.
    "io_setup": (206, 0),  # of a number that the machine has once
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "personality": (135, 92),
    "ioprio_set": (251, 30),
    "vmsplice": (278, 75),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "iopl": (172, None),
    "ioperm": (173, None),
    # The machine.
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "adjtimex": (159, 171),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "lookup_dcookie": (212, 18),
}

FIRST_UNKNOWN = 470
"""Calls from here on are newer than this list (Linux 6.17), and do not exist here."""

OF_FILES = {
    # Landlock knows no right for these (truncate: before Linux 6.2), so that they would change any
    # file that the user owns, or read what is attached to one. Refused where no namespace hides the
    # files.
    "truncate": (76, 45),
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "getxattr": (191, 8),
    "lgetxattr": (192, 9),
    "fgetxattr": (193, 10),
    "listxattr": (194, 11),
    "llistxattr": (195, 12),
    "flistxattr": (196, 13),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "getxattrat": (464, 464),
    "listxattrat": (465, 465),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}

CLONE3 = 435
"""Its flags are behind a pointer; ENOSYS makes the C library use `clone`."""

FIRST_ARGUMENT = {"clone": (56, 220), "kill": (62, 129), "tgkill": (234, 131), "tkill": (200, 130)}

OF_ITSELF_ONLY = {
    # Calls on a process, which may be the caller by the name of 0: the limits of its init are no
    # business of a program.
    "prlimit64": (302, 261),
    "sched_setaffinity": (203, 122),
}

REFUSED_REQUESTS = {
    # The second argument: TIOCSTI and TIOCLINUX type into somebody's terminal. The others make a
    # process, which may be any of the user's, get a signal: FIOSETOWN, SIOCSPGRP; F_SETOWN,
    # F_SETSIG, F_SETOWN_EX. F_SETPIPE_SZ takes of the pages that all pipes of a user may have.
    "ioctl": ((16, 29), (0x5412, 0x541C, 0x8901, 0x8902)),
    "fcntl": ((72, 25), (8, 10, 15, 1031)),
}

NO_ADDRESS = {"sendto": (44, 206)}
"""A pair of datagram sockets can send to any socket in the file system that has an address."""

FIRST_IS_UNIX = {"socketpair": (53, 199)}
"""Other families would be loaded into the kernel for the asking."""

MEMORY = {"madvise": (28, 233), "mmap": (9, 222)}
PAGE_OUT = 21
"""Advice that moves memory to where nobody counts it."""
SHARED_ANONYMOUS = 0x21
"""Such memory stays when its pages are dropped, and then no process is seen to have it."""

NEW_NAMESPACES = 0x7E020000 | 0x80
"""Every CLONE_NEW flag of `clone`."""

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT = 0x15, 0x35, 0x45
_NUMBER, _ARCHITECTURE = 0, 4
_FIRST, _SECOND, _THIRD, _FOURTH, _FIFTH = 16, 24, 32, 40, 48
_UPPER_HALF = 4
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_EPERM, _ENOSYS = 1, 38

Instruction = tuple[int, int, int, int]


REFUSE: list[Instruction] = [(_RETURN, 0, 0, _ERRNO | _EPERM)]
ALLOW: list[Instruction] = [(_RETURN, 0, 0, _ALLOW)]
KILL: list[Instruction] = [(_RETURN, 0, 0, _KILL)]
NO_SUCH_CALL: list[Instruction] = [(_RETURN, 0, 0, _ERRNO | _ENOSYS)]


def _choose(
    jump: int, value: int, then: list[Instruction], otherwise: list[Instruction]
) -> list[Instruction]:
    """`then` when the loaded word meets the test, else `otherwise`; both end by returning."""
    return [(jump, 0, len(then), value), *then, *otherwise]


def _if(
    where: int, jump: int, value: int, then: list[Instruction], otherwise: list[Instruction]
) -> list[Instruction]:
    """The same for the word at a place."""
    return [(_LOAD, 0, 0, where), *_choose(jump, value, then, otherwise)]


def program(
    machine: str, only_signal: int | None = None, *, hidden: bool = True
) -> list[Instruction]:
    """The filter as (code, jump if true, jump if false, value) of classic BPF.

    `hidden` says that a namespace hides the files of the machine. `only_signal` is the one process
    that may be signalled, where nothing hides the others. The number is looked up by halving: when
    a filter is set, the kernel runs it once for every call that there is, and a list is a
    millisecond where this takes a tenth.
    """
    actions = _actions(list(ARCHITECTURE).index(machine), only_signal, hidden=hidden)
    starts: list[tuple[int, list[Instruction]]] = [(0, ALLOW)]
    for number in sorted(actions):
        starts += [(number, actions[number]), (number + 1, ALLOW)]
    starts.append((FIRST_UNKNOWN, NO_SUCH_CALL))
    if machine == "x86_64":
        starts.append((X32_BIT, KILL))
    known = [(_LOAD, 0, 0, _NUMBER), *_halved(_merged(starts))]
    ours = (_JUMP_EQUAL, len(KILL), 0, ARCHITECTURE[machine])  # no jump reaches over all of `known`
    return [(_LOAD, 0, 0, _ARCHITECTURE), ours, *KILL, *known]


def _actions(place: int, only_signal: int | None, *, hidden: bool) -> dict[int, list[Instruction]]:
    """What is done with each call that is not simply allowed."""
    denied = DENIED if hidden else DENIED | OF_FILES
    actions = {n: REFUSE for pair in denied.values() if (n := pair[place]) is not None}
    actions[CLONE3] = NO_SUCH_CALL
    new_namespace = _if(_FIRST, _JUMP_ANY_BIT, NEW_NAMESPACES, REFUSE, ALLOW)
    actions[FIRST_ARGUMENT["clone"][place]] = new_namespace
    first_is_zero = _if(_FIRST, _JUMP_EQUAL, 0, ALLOW, REFUSE)
    actions |= {numbers[place]: first_is_zero for numbers in OF_ITSELF_ONLY.values()}
    for numbers, requests in REFUSED_REQUESTS.values():
        asked = ALLOW
        for request in requests:
            asked = _choose(_JUMP_EQUAL, request, REFUSE, asked)
        actions[numbers[place]] = [(_LOAD, 0, 0, _SECOND), *asked]
    upper = _if(_FIFTH + _UPPER_HALF, _JUMP_EQUAL, 0, ALLOW, REFUSE)
    actions[NO_ADDRESS["sendto"][place]] = _if(_FIFTH, _JUMP_EQUAL, 0, upper, REFUSE)
    actions[FIRST_IS_UNIX["socketpair"][place]] = _if(_FIRST, _JUMP_EQUAL, 1, ALLOW, REFUSE)
    actions[MEMORY["madvise"][place]] = _if(_THIRD, _JUMP_EQUAL, PAGE_OUT, REFUSE, ALLOW)
    shared: list[Instruction] = [(_LOAD, 0, 0, _FOURTH), (_AND, 0, 0, SHARED_ANONYMOUS)]
    shared += _choose(_JUMP_EQUAL, SHARED_ANONYMOUS, REFUSE, ALLOW)
    actions[MEMORY["mmap"][place]] = shared
    if only_signal is not None:
        own = _if(_FIRST, _JUMP_EQUAL, only_signal, ALLOW, REFUSE)
        actions |= {FIRST_ARGUMENT[name][place]: own for name in ("kill", "tgkill")}
        actions[FIRST_ARGUMENT["tkill"][place]] = REFUSE
    return actions


def _merged(starts: list[tuple[int, list[Instruction]]]) -> list[tuple[int, list[Instruction]]]:
    """Ranges of numbers by their start; of two with one start the later counts, and neighbours
    that are treated alike are one.
    """
    ranges: list[tuple[int, list[Instruction]]] = []
    for start, action in dict(starts).items():
        if not ranges or ranges[-1][1] is not action:
            ranges.append((start, action))
    return ranges


def _halved(ranges: list[tuple[int, list[Instruction]]]) -> list[Instruction]:
    """Code that goes to the range that the loaded number is in."""
    if len(ranges) == 1:
        return ranges[0][1]
    middle = len(ranges) // 2
    upper, lower = _halved(ranges[middle:]), _halved(ranges[:middle])
    return _choose(_JUMP_AT_LEAST, ranges[middle][0], upper, lower)


def packed(instructions: list[Instruction]) -> bytes:
    """The filter as the kernel reads it."""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in instructions)


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def install(filter_bytes: bytes) -> None:
    """Put a filter on this process and all it starts; needs no_new_privs. Raises OSError."""
    memory = ctypes.create_string_buffer(filter_bytes, len(filter_bytes))
    whole = _Filter(len(filter_bytes) // 8, ctypes.addressof(memory))
    kernel.call(kernel.number("seccomp"), ctypes.c_ulong(1), ctypes.c_ulong(0), ctypes.byref(whole))
