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


OFFERED = ("numpy", "sortedcontainers")
"""What the judges of contests offer beside the standard library, and solutions use."""

PACKAGES = "/packages"
"""Where those are shown, alone: what else is installed beside them can move no verdict."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """An interpreter as a sandbox shows it: nothing else of this machine is there.

    `shown` maps each place inside to the file or folder of this machine that it shows, parents
    before what is in them. `packages` are those that can be imported, with their versions, and
    `site` the folders of this machine that they are in.
    """

    executable: str
    shown: dict[str, str]
    packages: dict[str, str]
    site: tuple[str, ...]

    @property
    def name(self) -> str:
        """As the contract names it: the versions move verdicts, if rarely."""
        release = ".".join(map(str, sys.version_info[:3]))
        packages = [f"{name} {version}" for name, version in self.packages.items()]
        offered = ", ".join(packages) or f"no {OFFERED[0]}"
        return f"{sys.implementation.name} {release}, {offered}, {os.uname().machine}"


def this_interpreter() -> Interpreter:
    """The interpreter that qualeval runs under, without the virtual environment around it.

    Of the packages in that, only those of `OFFERED` are shown.
    """
    executable = os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    # By its real name too: an interpreter looks for its library beside its real executable, and
    # would take another one of the same version from /usr/lib if it did not find it.
    named = (sys.base_prefix, sys.base_exec_prefix)
    prefixes = dict.fromkeys((*named, *map(os.path.realpath, named)))
    wanted = [*LIBRARIES, *(f"{p}/{lib}" for p in prefixes for lib in ("lib", "lib64")), executable]
    shown = {path: path for path in _outermost(wanted)}
    packages: dict[str, str] = {}
    site: dict[str, None] = {}
    for name in OFFERED:
        spec = find_spec(name)
        if spec is None or spec.origin is None:
            continue
        folder = Path(spec.origin).parent
        for own in (folder, folder.with_name(f"{name}.libs")):
            if own.is_dir():
                shown[f"{PACKAGES}/{own.name}"] = str(own)
        packages[name] = _version_of(name)
        site[str(folder.parent)] = None
    return Interpreter(executable, shown, packages, tuple(site))


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
