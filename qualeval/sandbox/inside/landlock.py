"""Where no namespace can be had: this process may read a few paths and nothing else (landlock(7)).

Rights and structures are those of linux/landlock.h up to version 7 of its interface.
"""

import ctypes
import os

import kernel

READ = (1 << 0) | (1 << 2) | (1 << 3)
"""execute, read a file, list a folder."""
READ_FILE = 1 << 2
WRITE_FILE = 1 << 1

RIGHTS_OF_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""How many file system rights each version knows; later ones have added none."""

SCOPES = 0b11
"""Abstract sockets and signals stay inside."""

FIRST_TO_HOLD = 3
"""Before, `open(path, O_RDONLY | O_TRUNC)` empties any file that may be read."""

SIGNALS_SINCE = 6
"""The version that knows these scopes."""

_PATH_BENEATH = 1


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("files", ctypes.c_uint64),
        ("network", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The version of Landlock that this kernel has. Raises OSError where it has none."""
    question = (ctypes.c_void_p(0), ctypes.c_size_t(0), ctypes.c_uint32(1))
    return kernel.call(kernel.LANDLOCK_CREATE_RULESET, *question)


def restrict(readable: list[str], devices: list[str]) -> int:
    """Leave only these paths, and signals to ourselves where the kernel can; its version.

    `readable` are files and folders with all in them, `devices` files to read and write. A path
    that is not there is passed over. Raises OSError.
    """
    known = version()
    if known < FIRST_TO_HOLD:
        raise OSError("Landlock of Linux 6.2 or newer is needed: older ones let files be truncated")
    rights = (1 << RIGHTS_OF_VERSION.get(known, 16)) - 1
    ruleset = _Ruleset(rights, 0b11 if known >= 4 else 0, SCOPES if known >= SIGNALS_SINCE else 0)
    size = 24 if known >= 6 else 16 if known >= 4 else 8
    rules = kernel.call(
        kernel.LANDLOCK_CREATE_RULESET,
        ctypes.byref(ruleset),
        ctypes.c_size_t(size),
        ctypes.c_uint32(0),
    )
    try:
        for path in readable:
            _allow(rules, path, READ if os.path.isdir(path) else READ & ~(1 << 3))
        for path in devices:
            _allow(rules, path, READ_FILE | WRITE_FILE)
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.call(kernel.LANDLOCK_RESTRICT_SELF, ctypes.c_int(rules), ctypes.c_uint32(0))
    finally:
        os.close(rules)
    return known


def _allow(rules: int, path: str, rights: int) -> None:
    try:
        parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        beneath = _PathBeneath(rights, parent)
        kernel.call(
            kernel.LANDLOCK_ADD_RULE,
            ctypes.c_int(rules),
            ctypes.c_int(_PATH_BENEATH),
            ctypes.byref(beneath),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(parent)
