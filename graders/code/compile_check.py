"""Runs inside the sandbox as a script: which of some texts is the first Python program?

It imports nothing of ours and runs nothing of the texts. Standard input is a JSON object: `texts`,
and `function`, the name that is called, or null for a script. Standard output is a JSON object:
`chosen`, the index of the best text that compiles, the first of its kind, or -1; and `error`, why
the first text does not compile (`kind`, `message`, `line`), or null. Best first:

1.  Where a function is called, it defines or assigns that function: an example of its use does
    not. Where none is, it is a whole script: at its top level something happens, and every name
    that is needed there comes from itself, from Python or from the prelude. `main()`, `O(n)` and a
    test of some function are Python too.
2.  It holds a call, a definition or an import. A text without them can neither read nor write nor
    be called: the `3` of an example output compiles too, and is no program.
3.  It compiles.
"""

import ast
import builtins
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOES_SOMETHING = (ast.Call, *_DEFINES, ast.ClassDef, ast.Lambda, ast.Import, ast.ImportFrom)
_NOTHING_HAPPENS = (*_DEFINES, ast.Import, ast.ImportFrom, ast.Assert, ast.Pass)

# Builtins hold the names of the prelude inside the sandbox.
_KNOWN = frozenset(vars(builtins)) | {"__file__", "__builtins__", "__annotations__"}

BEST = 2
"""What a text of the first kind is worth."""


def check(texts: Sequence[str], function: str | None) -> dict[str, object]:
    """The object that is written."""
    chosen, best = -1, -1
    error = None
    for index, text in enumerate(texts):
        try:
            worth = _worth(text.encode("utf-8", "surrogatepass"), function)
        # A NUL byte or a lone surrogate is a ValueError; deep nesting ends in one of the others.
        except (SyntaxError, ValueError, MemoryError, RecursionError, OverflowError) as raised:
            if index == 0:
                message = raised.msg if isinstance(raised, SyntaxError) else str(raised)
                line = raised.lineno if isinstance(raised, SyntaxError) else None
                error = {"kind": type(raised).__name__, "message": message, "line": line}
            continue
        if worth > best:
            chosen, best = index, worth
        if worth == BEST:
            break  # texts behind it need not be compiled
    return {"chosen": chosen, "error": error}


def _worth(text: bytes, function: str | None) -> int:
    """2, 1 or 0; the three kinds of the list above."""
    compile(text, "<answer>", "exec", dont_inherit=True)
    tree = compile(text, "<answer>", "exec", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Module)
    nodes = list(ast.walk(tree))
    if function is None:
        fits = _is_whole_script(tree, nodes)
    else:
        fits = any(_gives(node, function) for node in nodes)
    return BEST if fits else int(any(isinstance(node, _DOES_SOMETHING) for node in nodes))


def _gives(node: ast.AST, function: str) -> bool:
    if isinstance(node, _DEFINES):
        return node.name == function
    return isinstance(node, ast.Name) and node.id == function and isinstance(node.ctx, ast.Store)


def _is_whole_script(tree: ast.Module, nodes: Sequence[ast.AST]) -> bool:
    if not any(map(_happens, tree.body)):
        return False
    given = {name for node in nodes for name in _given_by(node)}
    return "*" in given or set(_needed_by(tree)) <= given | _KNOWN


def _happens(statement: ast.stmt) -> bool:
    """Whether a statement at the top level can do anything that is seen from outside."""
    if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign | ast.AugAssign):
        return any(isinstance(node, ast.Call) for node in ast.walk(statement))
    if isinstance(statement, ast.ClassDef):
        return any(map(_happens, statement.body))
    return not isinstance(statement, _NOTHING_HAPPENS)


def _given_by(node: ast.AST) -> Iterator[str]:
    """Names that a node binds, wherever it stands; `*` for what nobody can know."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Global(names=names):
            yield from names
        case ast.Name(id="exec" | "globals" | "vars"):
            yield "*"
        case _:
            pass


def _needed_by(tree: ast.Module) -> Iterator[str]:
    """Names that are looked up when a script is run, not when something in it is called."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        if not isinstance(node, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += ast.iter_child_nodes(node)


def main() -> None:
    """Read the texts, write the object."""
    warnings.simplefilter("ignore")  # a text with `1 is 1` compiles
    sys.set_int_max_str_digits(0)
    asked = json.loads(sys.stdin.buffer.read())
    os.write(1, json.dumps(check(asked["texts"], asked["function"])).encode("ascii"))


if __name__ == "__main__":
    main()
