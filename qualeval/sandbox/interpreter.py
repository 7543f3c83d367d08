"""The Python that programs run under: which files it needs, what it can import."""

import os
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

LIBRARIES = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache"),
    "/etc/alternatives",  # by which Debian chooses the BLAS that its numpy uses
)


PACKAGES = "/packages"
"""Where numpy is shown, alone: what else is installed beside it can move no verdict."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter as a sandbox shows it: nothing else of this machine is there.

    `shown` maps each place inside to the file or folder of this machine that it shows, parents
    before what is in them. `packages` is the folder on this machine that numpy is in.
    """

    executable: str
    shown: dict[str, str]
    packages: str | None
    numpy: str | None

    @property
    def name(self) -> str:
        """As the contract names it: the version moves verdicts, if rarely."""
        numpy = f"numpy {self.numpy}" if self.numpy else "no numpy"
        release = ".".join(map(str, sys.version_info[:3]))
        return f"{sys.implementation.name} {release}, {numpy}, {os.uname().machine}"


def this_interpreter() -> Interpreter:
    """The interpreter that qualeval runs under, without the virtual environment around it.

    numpy is offered when it is installed here; nothing else of the environment is.
    """
    executable = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    # By its real name too: an interpreter looks for its library beside its real executable, and
    # would take another one of the same version from /usr/lib if it did not find it.
    named = (sys.base_prefix, sys.base_exec_prefix)
    prefixes = dict.fromkeys((*named, *map(os.path.realpath, named)))
    wanted = [*LIBRARIES, *(f"{p}/{lib}" for p in prefixes for lib in ("lib", "lib64")), executable]
    shown = {path: path for path in _outermost(wanted)}
    spec = find_spec("numpy")
    if spec is None or spec.origin is None:
        return Interpreter(executable, shown, None, None)
    package = Path(spec.origin).parent
    for folder in (package, package.parent / "numpy.libs"):
        if folder.is_dir():
            shown[f"{PACKAGES}/{folder.name}"] = str(folder)
    return Interpreter(executable, shown, str(package.parent), _version_of("numpy"))


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "of unknown version"


def _outermost(paths: list[str]) -> list[str]:
    """Those that exist, without what another of them holds already."""
    kept: list[str] = []
    for path in sorted({os.path.abspath(path) for path in paths if os.path.exists(path)}):
        if not any(path.startswith(f"{outer}/") for outer in kept):
            kept.append(path)
    return kept
