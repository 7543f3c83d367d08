"""Runs inside the sandbox as a script: which of some texts is the first Python program?

It imports nothing of ours and runs nothing of the texts. Standard input is a JSON list of texts;
standard output a JSON object: `chosen`, the index of the first text that compiles and holds a call,
a definition or an import, else of the first that compiles, else -1; and `error`, why the first text
does not compile (`kind`, `message`, `line`), or null.

A text without call, definition and import can neither read nor write nor be called: the `3` of an
example output compiles too, and is no program.
"""

import ast
import json
import os
import sys
import warnings
from collections.abc import Sequence

_DOES_SOMETHING = (
    ast.Call,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.Lambda,
    ast.Import,
    ast.ImportFrom,
)


def check(texts: Sequence[str]) -> dict[str, object]:
    """The object that is written."""
    compiling = -1
    error = None
    for index, text in enumerate(texts):
        try:
            compile(text, "<answer>", "exec", dont_inherit=True)
            does_something = _does_something(text)
        # A NUL byte or a lone surrogate is a ValueError; deep nesting ends in one of the others.
        except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError) as raised:
            if index == 0:
                message = raised.msg if isinstance(raised, SyntaxError) else str(raised)
                line = raised.lineno if isinstance(raised, SyntaxError) else None
                error = {"kind": type(raised).__name__, "message": message, "line": line}
            continue
        if does_something:
            return {"chosen": index, "error": error}
        if compiling < 0:
            compiling = index
    return {"chosen": compiling, "error": error}


def _does_something(text: str) -> bool:
    tree = compile(text, "<answer>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    return any(isinstance(node, _DOES_SOMETHING) for node in ast.walk(tree))


def main() -> None:
    """Read the texts, write the object."""
    warnings.simplefilter("ignore")  # a text with `1 is 1` compiles
    sys.set_int_max_str_digits(0)
    os.write(1, json.dumps(check(json.loads(sys.stdin.buffer.read()))).encode("ascii"))


if __name__ == "__main__":
    main()
