"""Runs inside the sandbox as a script: which of some texts is the first Python program?

It imports nothing of ours and runs nothing of the texts. Standard input is a JSON object: `texts`,
and `function`, the name that is called, or null for a script. Standard output is a JSON object:
`chosen`, the index of the best text that compiles, the first of its kind, or -1; and `error`, why
the first text does not compile (`kind`, `message`, `line`), or null. Best first:

1.  It defines or assigns the function, where one is called: an example of its use does not.
2.  It holds a call, a definition or an import. A text without them can neither read nor write nor
    be called: the `3` of an example output compiles too, and is no program.
3.  It compiles.
"""

import ast
import json
import os
import sys
import warnings
from collections.abc import Sequence

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOES_SOMETHING = (ast.Call, *_DEFINES, ast.ClassDef, ast.Lambda, ast.Import, ast.ImportFrom)


def check(texts: Sequence[str], function: str | None) -> dict[str, object]:
    """The object that is written."""
    most = 1 if function is None else 2
    chosen, best = -1, -1
    error = None
    for index, text in enumerate(texts):
        try:
            compile(text, "<answer>", "exec", dont_inherit=True)
            worth = _worth(text, function)
        # A NUL byte or a lone surrogate is a ValueError; deep nesting ends in one of the others.
        except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError) as raised:
            if index == 0:
                message = raised.msg if isinstance(raised, SyntaxError) else str(raised)
                line = raised.lineno if isinstance(raised, SyntaxError) else None
                error = {"kind": type(raised).__name__, "message": message, "line": line}
            continue
        if worth > best:
            chosen, best = index, worth
        if worth == most:
            break  # texts behind it need not be compiled
    return {"chosen": chosen, "error": error}


def _worth(text: str, function: str | None) -> int:
    """2, 1 or 0; the three kinds of the list above."""
    tree = compile(text, "<answer>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    nodes = list(ast.walk(tree))
    if function is not None and any(_gives(node, function) for node in nodes):
        return 2
    return int(any(isinstance(node, _DOES_SOMETHING) for node in nodes))


def _gives(node: ast.AST, function: str) -> bool:
    if isinstance(node, _DEFINES):
        return node.name == function
    return isinstance(node, ast.Name) and node.id == function and isinstance(node.ctx, ast.Store)


def main() -> None:
    """Read the texts, write the object."""
    warnings.simplefilter("ignore")  # a text with `1 is 1` compiles
    sys.set_int_max_str_digits(0)
    asked = json.loads(sys.stdin.buffer.read())
    os.write(1, json.dumps(check(asked["texts"], asked["function"])).encode("ascii"))


if __name__ == "__main__":
    main()
