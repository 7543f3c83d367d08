"""Modules that are loaded before any program runs, and the names that need no import.

Both are those of the LiveCodeBench grader (lcb_runner/evaluation/testing_util.py): its programs may
use them without an import. They are found after a program's own names and the builtins.
"""

import builtins
import importlib

STAR_IMPORTS = [
    "string",
    "re",
    "datetime",
    "collections",
    "heapq",
    "bisect",
    "copy",
    "math",
    "random",
    "statistics",
    "itertools",
    "functools",
    "operator",
    "io",
    "sys",
    "json",
    "builtins",
    "typing",
]

NAMED_IMPORTS = STAR_IMPORTS[:-2]

LOADED = (*NAMED_IMPORTS, "typing", "decimal", "fractions", "array", "time", "threading")
"""And what solutions often import."""


def names() -> dict[str, object]:
    """The names that the grader's prelude leaves behind, builtins themselves left out."""
    namespace: dict[str, object] = {}
    for module in STAR_IMPORTS:
        exec(f"from {module} import *", namespace)
    for module in NAMED_IMPORTS:
        namespace[module] = importlib.import_module(module)
    return {n: v for n, v in namespace.items() if n[:2] != "__" and n not in vars(builtins)}
