"""The filter of system calls, run by an interpreter of classic BPF, for both architectures.

What the kernel itself makes of it is shown by the threats; here every number is asked.
"""

import re
import struct
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest

MACHINES = ("x86_64", "aarch64")
HEADERS = {
    "x86_64": Path("/usr/include/x86_64-linux-gnu/asm/unistd_64.h"),
    "aarch64": Path("/usr/include/asm-generic/unistd.h"),
}
ALLOWED, KILLED, NOT_PERMITTED, NO_SUCH_CALL = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026
MOST_INSTRUCTIONS = 4096
"""BPF_MAXINSNS of linux/bpf_common.h."""

OF_ANY_PYTHON = {
    # name: (x86-64, aarch64), from the two tables of the kernel.
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "pread64": (17, 67),
    "writev": (20, 66),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "getpid": (39, 172),
    "execve": (59, 221),
    "wait4": (61, 260),
    "getcwd": (79, 17),
    "getrusage": (98, 165),
    "gettid": (186, 178),
    "futex": (202, 98),
    "sched_getaffinity": (204, 123),
    "getdents64": (217, 61),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "openat": (257, 56),
    "set_robust_list": (273, 99),
    "pipe2": (293, 59),
    "getrandom": (318, 278),
    "rseq": (334, 293),
    "faccessat2": (439, 439),
}


@pytest.fixture(scope="module")
def seccomp() -> Iterator[ModuleType]:
    """The module as the zygote has it: by its bare name, beside `kernel`."""
    folder = str(files("qualeval.sandbox") / "inside")
    sys.path.insert(0, folder)
    try:
        yield import_module("seccomp")
    finally:
        sys.path.remove(folder)
        for name in ("seccomp", "kernel"):
            sys.modules.pop(name, None)


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def decide(
    program: list[tuple[int, int, int, int]], architecture: int, number: int, *arguments: int
) -> int:
    """What a filter returns for one call. Raises on an instruction that the filter should not have,
    and when it runs over its end.
    """
    words = [argument & (1 << 64) - 1 for argument in (*arguments, 0, 0, 0, 0, 0, 0)[:6]]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, architecture, 0, *words)
    accumulator = place = 0
    while True:
        code, if_true, if_false, value = program[place]
        place += 1
        match code:
            case 0x20:  # load a word
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x54:  # and
                accumulator &= value
            case 0x15 | 0x35 | 0x45:  # equal, at least, any bit
                holds = {
                    0x15: accumulator == value,
                    0x35: accumulator >= value,
                    0x45: bool(accumulator & value),
                }[code]
                place += if_true if holds else if_false
            case 0x06:  # return
                return value
            case _:
                raise AssertionError(f"instruction {code:#x}")


def ask(seccomp: ModuleType, machine: str, number: int, *arguments: int) -> int:
    """What the filter of a machine says of a call on that machine."""
    return decide(seccomp.program(machine), seccomp.ARCHITECTURE[machine], number, *arguments)


def numbers(seccomp: ModuleType, machine: str) -> dict[str, int]:
    """Every call that the module names, wherever it does."""
    place = MACHINES.index(machine)
    named = {"clone3": seccomp.CLONE3}
    for table in vars(seccomp).values():
        if not isinstance(table, dict):
            continue
        for name, entry in table.items():
            match entry:
                # A pair of numbers, alone or with the arguments that are refused.
                case (int() | None, int() | None) as pair:
                    named[name] = pair[place]
                case ((int(), int()) as pair, tuple()):
                    named[name] = pair[place]
    return {name: number for name, number in named.items() if number is not None}


def test_every_denied_call_is_refused_whatever_its_arguments(
    seccomp: ModuleType, machine: str
) -> None:
    place = MACHINES.index(machine)
    for name, pair in seccomp.DENIED.items():
        if pair[place] is None:
            continue
        for argument in (0, 1, 0xFFFFFFFF, (1 << 64) - 1):
            said = ask(seccomp, machine, pair[place], *[argument] * 6)
            assert NOT_PERMITTED == said, (name, argument)


def test_every_call_that_is_not_named_is_allowed(seccomp: ModuleType, machine: str) -> None:
    named = set(numbers(seccomp, machine).values())
    program = seccomp.program(machine)
    for number in range(seccomp.FIRST_UNKNOWN):
        said = decide(program, seccomp.ARCHITECTURE[machine], number, *[0xFFFFFFFF] * 6)
        if number not in named:
            assert ALLOWED == said, number


def test_calls_newer_than_the_list_do_not_exist(seccomp: ModuleType, machine: str) -> None:
    assert max(numbers(seccomp, machine).values()) < seccomp.FIRST_UNKNOWN
    for number in (seccomp.FIRST_UNKNOWN, seccomp.FIRST_UNKNOWN + 1, 999, 0x3FFFFFFF):
        assert NO_SUCH_CALL == ask(seccomp, machine, number)


def test_no_number_is_given_to_two_calls(seccomp: ModuleType, machine: str) -> None:
    named = numbers(seccomp, machine)
    assert len(named) == len(set(named.values()))


def test_what_every_python_needs_is_allowed(seccomp: ModuleType, machine: str) -> None:
    place = MACHINES.index(machine)
    for name, pair in OF_ANY_PYTHON.items():
        assert ALLOWED == ask(seccomp, machine, pair[place], 3, 4096, 3, 0x22, 5, 6), name


def test_a_foreign_instruction_set_ends_the_process(seccomp: ModuleType, machine: str) -> None:
    program = seccomp.program(machine)
    i386, arm = 0x40000003, 0x40000028
    foreign = {*seccomp.ARCHITECTURE.values(), i386, arm, 0} - {seccomp.ARCHITECTURE[machine]}
    for architecture in foreign:
        for number in (0, 1, 59, 172, 221):
            assert KILLED == decide(program, architecture, number)


def test_x32_calls_end_the_process(seccomp: ModuleType) -> None:
    for number in (0x40000000, 0x40000000 + 39, 0x40000000 + 520, 0x7FFFFFFF, 0xFFFFFFFF):
        assert KILLED == ask(seccomp, "x86_64", number)


def test_threads_and_children_may_be_made_but_no_namespace(
    seccomp: ModuleType, machine: str
) -> None:
    clone = numbers(seccomp, machine)["clone"]
    thread, child, virtual = 0x3D0F00, 17 | 0x01200000, 17 | 0x4100
    for flags in (thread, child, virtual, 17, 0):
        assert ALLOWED == ask(seccomp, machine, clone, flags)
    for new in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        for flags in (new, new | child, new | 0x7FFF << 32):
            assert NOT_PERMITTED == ask(seccomp, machine, clone, flags), hex(flags)


def test_clone3_is_unknown_so_that_the_c_library_takes_clone(
    seccomp: ModuleType, machine: str
) -> None:
    assert NO_SUCH_CALL == ask(seccomp, machine, 435, 0x1000, 88)


def test_nothing_is_typed_into_a_terminal(seccomp: ModuleType, machine: str) -> None:
    ioctl = numbers(seccomp, machine)["ioctl"]
    for request in (0x5412, 0x541C, 0x5412 | 1 << 32):  # the kernel looks at 32 bits
        assert NOT_PERMITTED == ask(seccomp, machine, ioctl, 1, request)
    for request in (0x5401, 0x5413, 0x5421, 0x541B):  # TCGETS, TIOCGWINSZ, FIONBIO, FIONREAD
        assert ALLOWED == ask(seccomp, machine, ioctl, 1, request)


def test_no_process_is_made_the_owner_of_a_file(seccomp: ModuleType, machine: str) -> None:
    """Who owns a pipe gets any signal that was chosen, whoever chose."""
    named = numbers(seccomp, machine)
    for request in (8, 10, 15):  # F_SETOWN, F_SETSIG, F_SETOWN_EX
        assert NOT_PERMITTED == ask(seccomp, machine, named["fcntl"], 3, request, 1)
    for request in (0, 1, 2, 3, 4, 5, 6, 7, 1030, 1033):
        assert ALLOWED == ask(seccomp, machine, named["fcntl"], 3, request, 1)
    for request in (0x8901, 0x8902):  # FIOSETOWN, SIOCSPGRP
        assert NOT_PERMITTED == ask(seccomp, machine, named["ioctl"], 3, request, 1)


def test_a_socket_of_a_pair_talks_to_its_pair_only(seccomp: ModuleType, machine: str) -> None:
    named = numbers(seccomp, machine)
    assert ALLOWED == ask(seccomp, machine, named["sendto"], 3, 4096, 1, 0, 0, 0)
    for address in (1, 0xFFFFFFFF, 1 << 32, 0x7FFF00000000, 0x7FFF00001000):
        said = ask(seccomp, machine, named["sendto"], 3, 4096, 1, 0, address, 16)
        assert NOT_PERMITTED == said, hex(address)
    assert ALLOWED == ask(seccomp, machine, named["socketpair"], 1, 1, 0, 4096)
    for family in (0, 2, 10, 16, 30, 38):
        assert NOT_PERMITTED == ask(seccomp, machine, named["socketpair"], family, 1, 0, 4096)


def test_memory_is_not_moved_out_of_sight(seccomp: ModuleType, machine: str) -> None:
    madvise = numbers(seccomp, machine)["madvise"]
    page_out = 21
    assert NOT_PERMITTED == ask(seccomp, machine, madvise, 4096, 4096, page_out)
    for advice in (0, 1, 3, 4, 8, 14, 15, 20, 22):
        assert ALLOWED == ask(seccomp, machine, madvise, 4096, 4096, advice)


def test_what_landlock_has_no_right_for_is_refused_where_files_are_not_hidden(
    seccomp: ModuleType, machine: str
) -> None:
    place = MACHINES.index(machine)
    architecture = seccomp.ARCHITECTURE[machine]
    assert {"truncate", "fchmodat", "fchownat", "utimensat", "setxattr"} <= set(seccomp.OF_FILES)
    for only_signal in (None, 4711):
        program = seccomp.program(machine, only_signal=only_signal, hidden=False)
        for name, pair in seccomp.OF_FILES.items():
            if pair[place] is not None:
                assert NOT_PERMITTED == decide(program, architecture, pair[place], 0, 0), name
                assert ALLOWED == ask(seccomp, machine, pair[place], 0, 0), name


def test_memory_is_private_or_of_a_file(seccomp: ModuleType, machine: str) -> None:
    mmap = numbers(seccomp, machine)["mmap"]
    private, shared, validate, anonymous, reserve_nothing = 2, 1, 3, 0x20, 0x4000
    for flags in (private | anonymous, private | anonymous | reserve_nothing, private, shared):
        assert ALLOWED == ask(seccomp, machine, mmap, 0, 4096, 3, flags, -1, 0), flags
    for flags in (shared | anonymous, validate | anonymous, shared | anonymous | reserve_nothing):
        assert NOT_PERMITTED == ask(seccomp, machine, mmap, 0, 4096, 3, flags, -1, 0), flags


@pytest.mark.parametrize(
    "name",
    ["prlimit64", "sched_setaffinity"],
)
def test_limits_and_cores_are_of_the_caller_only(
    seccomp: ModuleType, machine: str, name: str
) -> None:
    number = numbers(seccomp, machine)[name]
    assert ALLOWED == ask(seccomp, machine, number, 0, 7, 0x1000, 0)
    for process in (1, 2, 4711, -1):
        assert NOT_PERMITTED == ask(seccomp, machine, number, process, 7, 0x1000, 0)


def test_signals_are_free_where_a_namespace_hides_the_others(
    seccomp: ModuleType, machine: str
) -> None:
    for name in ("kill", "tgkill", "tkill"):
        for process in (1, 7, -1):
            assert ALLOWED == ask(seccomp, machine, numbers(seccomp, machine)[name], process, 9)


def test_only_itself_is_signalled_where_nothing_hides_the_others(
    seccomp: ModuleType, machine: str
) -> None:
    me = 4711
    program = seccomp.program(machine, only_signal=me)
    named = numbers(seccomp, machine)

    def said(name: str, *arguments: int) -> int:
        return decide(program, seccomp.ARCHITECTURE[machine], named[name], *arguments)

    assert ALLOWED == said("kill", me, 9)
    assert ALLOWED == said("tgkill", me, me + 1, 9)
    for process in (0, 1, -1, me - 1, me + 1, -me):
        assert NOT_PERMITTED == said("kill", process, 9)
        assert NOT_PERMITTED == said("tgkill", process, process, 9)
    # Of a thread alone one cannot see whose it is.
    assert NOT_PERMITTED == said("tkill", me, 9)
    for name, pair in seccomp.DENIED.items():
        if pair[MACHINES.index(machine)] is not None:
            assert NOT_PERMITTED == said(name)


@pytest.mark.parametrize("only_signal", [None, 4711])
@pytest.mark.parametrize("hidden", [True, False])
def test_the_kernel_would_take_the_filter(
    seccomp: ModuleType, machine: str, only_signal: int | None, hidden: bool
) -> None:
    """Jumps fit in a byte and stay inside, every path returns, and it is short enough."""
    program = seccomp.program(machine, only_signal=only_signal, hidden=hidden)
    assert len(program) <= MOST_INSTRUCTIONS
    assert len(seccomp.packed(program)) == 8 * len(program)
    for place, (code, if_true, if_false, value) in enumerate(program):
        assert 0 <= if_true <= 255
        assert 0 <= if_false <= 255
        assert 0 <= value < 1 << 32
        if code != 0x06:
            assert place + 1 + max(if_true, if_false) < len(program)
    assert 0x06 == program[-1][0]


def test_the_numbers_are_those_of_the_kernel_headers(seccomp: ModuleType, machine: str) -> None:
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip(f"{header} is not installed")
    defined = re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s+(\d+)", header.read_text())
    golden = {name: int(number) for name, number in defined}
    named = numbers(seccomp, machine)
    # An older header does not know the newest calls.
    known = {name: number for name, number in named.items() if name in golden}
    assert known == {name: golden[name] for name in known}
    assert len(known) > 0.9 * len(named)
    newest = max(golden.values())
    assert all(number > newest for name, number in named.items() if name not in golden)


def test_a_call_is_left_out_only_where_an_architecture_has_none(
    seccomp: ModuleType, machine: str
) -> None:
    header = HEADERS[machine]
    if not header.exists():
        pytest.skip(f"{header} is not installed")
    defined = re.findall(r"#define\s+__NR(?:3264)?_(\w+)\s", header.read_text())
    place = MACHINES.index(machine)
    for name, pair in seccomp.DENIED.items():
        if pair[place] is None:
            assert name not in defined
