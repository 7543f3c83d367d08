"""Imports run downward only, one module speaks HTTP, one prints, nothing heavy at the start."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"__main__"}),
    frozenset({"cli"}),
    # Shows what the commands below find.
    frozenset({"report"}),
    # What commands call.
    frozenset({"run", "dry_run", "regrade", "verify", "show", "doctor", "new_card", "grade_file"})
    | frozenset({"compare_runs", "runs_table", "summary_formats"}),
    frozenset({"publish"}),
    # What those share.
    frozenset({"grading"}),
    frozenset({"code_workers", "recheck", "preflight", "compare_table", "progress"}),
    frozenset({"summarize", "reopen", "compare", "job", "table"}),
    frozenset({"card_server"}),
    frozenset({"contract", "measured"}),
    frozenset({"plan", "comparable"}),
    frozenset({"made_list"}),
    frozenset({"lists"}),
    frozenset({"newest_list"}),
    frozenset({"pins", "streamed_rows"}),
    frozenset({"list_rows"}),
    frozenset({"tasks"}),
    frozenset({"graders"}),
    frozenset({"server_facts"}),
    frozenset({"client", "retry", "embedded"}),
    frozenset({"reply", "sse", "pool", "runfolder", "stats", "findings", "sandbox"}),
    frozenset({"card"}),
    frozenset({"records", "masking"}),
    frozenset({"errors"}),
    frozenset({"shell", "whole_file"}),
    frozenset({"version"}),
)
"""From top to bottom; a module imports from lower layers only. `tasks` and `graders` stand for all
their modules, which import each other. `version` is `qualeval/__init__.py`, which imports nothing.
"""

HEAVY = (
    "scipy",
    "datasets",
    "huggingface_hub",
    "pyarrow",
    "tokenizers",
    "rich",
    "pandas",
    "torch",
    "jinja2",
)


def sources() -> Iterator[tuple[str, Path]]:
    """Dotted name and file of every module that the package has."""
    for folder, prefix in (("qualeval", ""), ("tasks", "tasks."), ("graders", "graders.")):
        for path in sorted((ROOT / folder).rglob("*.py")):
            words = path.relative_to(ROOT / folder).with_suffix("").parts
            name = prefix + ".".join(word for word in words if word != "__init__")
            yield name.rstrip(".") or "version", path


MODULES = dict(sources())
each_module = pytest.mark.parametrize("name", list(MODULES))


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text(encoding="utf-8"))


def imported(name: str) -> set[str]:
    """Everything that a module imports anywhere, in functions and for types too."""
    found = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import in line {node.lineno}"
            assert node.module is not None
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def own(dotted: str) -> str | None:
    """The module of ours that an imported name is in, as the table of layers calls it."""
    first, *words = dotted.split(".")
    if first != "qualeval":
        return None
    return words[0] if words and (words[0] in MODULES) else "version"


def layer(name: str) -> int:
    """How far from the top a module stands."""
    top = name.split(".")[0]
    found = [number for number, names in enumerate(LAYERS) if top in names]
    assert found, f"{name} is in no layer: put it into LAYERS, above all that it imports"
    return found[0]


@each_module
def test_every_module_imports_from_lower_layers_only(name: str) -> None:
    """DESIGN 3: cli > run > plan > tasks > graders > client, pool > card > records > errors."""
    below = {module for module in map(own, imported(name)) if module is not None}
    top = name.split(".")[0]
    upward = [module for module in sorted(below - {top}) if layer(module) <= layer(name)]
    assert [] == upward


def test_every_layer_holds_only_modules_that_exist() -> None:
    """A table that is out of date says nothing."""
    assert set() == {name for names in LAYERS for name in names} - set(MODULES)


@each_module
def test_only_the_client_imports_httpx(name: str) -> None:
    """DESIGN 3: all HTTP to the model server is in one module."""
    web = {"httpx", "httpcore", "requests", "urllib3", "aiohttp", "http", "urllib.request"}
    used = {d for d in imported(name) if d.split(".")[0] in web or d.startswith("urllib.request")}
    assert name == "client" or not used


@each_module
def test_only_the_command_line_prints(name: str) -> None:
    """All else returns values, or writes to a stream that it is given."""
    printing = []
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            to_stream = any(keyword.arg == "file" for keyword in node.keywords)
            if node.func.id == "print" and not to_stream:
                printing.append(node.lineno)
        if isinstance(node, ast.Attribute):
            of_sys = isinstance(node.value, ast.Name) and node.value.id == "sys"
            if node.attr in ("echo", "secho") or (of_sys and node.attr.strip("_") == "stdout"):
                printing.append(node.lineno)
    # What runs inside a sandbox prints what a program says.
    assert name == "cli" or name.startswith("sandbox.inside.") or not printing


@pytest.mark.parametrize("name", [n for n in MODULES if n.split(".")[0] in ("tasks", "graders")])
def test_tasks_and_graders_know_no_files_no_server_and_no_slots(name: str) -> None:
    """DESIGN 3: a benchmark is checked in two minutes. Of the sandbox they know the values."""
    allowed = {"tasks", "graders", "records", "errors", "sandbox"}
    if name.startswith("graders"):
        allowed -= {"tasks"}
    assert {own(dotted) for dotted in imported(name)} - {None} <= allowed
    of_sandbox = {dotted for dotted in imported(name) if own(dotted) == "sandbox"}
    assert all(dotted.startswith("qualeval.sandbox.values.") for dotted in of_sandbox)


@each_module
def test_nothing_imports_the_folders_as_top_level_modules(name: str) -> None:
    """tasks/ installs as qualeval.tasks: two copies of one class would not be equal."""
    assert {"tasks", "graders"}.isdisjoint(dotted.split(".")[0] for dotted in imported(name))


@each_module
def test_every_module_says_what_it_is(name: str) -> None:
    """The first line of a file is its promise."""
    assert (ast.get_docstring(tree(name)) or "").strip()


def loaded_by(code: str) -> set[str]:
    """Top-level modules that a fresh Python has loaded after `code`."""
    shown = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules, sep='\\n')"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        cwd="/",
    ).stdout
    return {line.split(".")[0] for line in shown.split("\n")}


def test_command_line_starts_without_anything_heavy() -> None:
    """DESIGN 10: `--help` answers in a fifth of a second."""
    loaded = loaded_by("import qualeval.cli")
    assert set() == loaded & {*HEAVY, "pydantic", "httpx", "anyio", "numpy"}


def test_run_starts_without_anything_that_only_some_runs_need() -> None:
    """DESIGN 3: datasets and scipy cost 0.6 s each, and are imported where they are used."""
    loaded = loaded_by("import qualeval.run, qualeval.summarize, qualeval.table")
    assert set() == loaded & {*HEAVY} - {"rich"}  # httpx loads rich for a command of its own


def test_folders_are_never_loaded_as_top_level_modules() -> None:
    """No `tasks` in a user's site-packages."""
    assert set() == loaded_by("import qualeval.run, qualeval.cli") & {"tasks", "graders"}


def test_what_only_linux_has_is_needed_by_no_import() -> None:
    """A run without programs works where there is no sandbox, such as on macOS."""
    loaded = loaded_by(
        "import fcntl, os, signal\n"
        "for module, names in {\n"
        "    fcntl: ('F_SEAL_WRITE', 'F_SEAL_GROW', 'F_SEAL_SHRINK', 'F_SEAL_SEAL'),\n"
        "    os: ('memfd_create', 'MFD_CLOEXEC', 'MFD_ALLOW_SEALING', 'sched_getaffinity',\n"
        "         'pidfd_open', 'unshare', 'setns'),\n"
        "    signal: ('pidfd_send_signal',),\n"
        "}.items():\n"
        "    for name in names:\n"
        "        if hasattr(module, name):\n"
        "            delattr(module, name)\n"
        "import qualeval.run, qualeval.verify, qualeval.report, qualeval.grade_file\n"
    )
    assert "qualeval" in loaded
