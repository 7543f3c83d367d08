"""Which candidate is the program: compiled where nothing of ours is, the answer read with care."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from plain_runner import run_plainly

from qualeval.graders.code import compile_check, extract
from qualeval.graders.code.choice import Choice, choose, script
from qualeval.sandbox.values import Limits, Ran, RunStatus


def chosen(*texts: str) -> Choice:
    return choose(texts, run_plainly, Limits())


def answering(stdout: bytes, exit_code: int = 0, status: RunStatus = "exited") -> Choice:
    """The choice among two texts when the check says this."""

    def run_code(code: str, stdin: bytes, limits: Limits) -> Ran:
        return Ran(status, exit_code, None, stdout, b"", 0.0, 0.0, 0)

    return choose(("print(1)", "print(2)"), run_code, Limits())


def test_first_text_that_compiles_is_chosen() -> None:
    assert chosen("print(1)", "print(2)") == Choice(0, "")
    assert chosen("print 1", "1 +", "print(2)") == Choice(2, "")


def test_example_output_is_no_program() -> None:
    """`3` compiles, and so do `YES` and `[1, 2]`; a program calls, defines or imports something."""
    assert chosen("3", "YES", "[1, 2]", "a = 5", "print(1)").index == 4
    assert chosen("'''text'''", "def f(): pass").index == 1
    assert chosen("3", "class A: pass").index == 1
    assert chosen("x", "f = lambda x: x").index == 1
    assert chosen("x", "from math import gcd").index == 1
    assert chosen("x", "import math").index == 1


@pytest.mark.parametrize(
    "holder",
    ["class Solution:\n  def f(self): pass", "def f(): pass", "async def f(): pass"]
    + ["f = lambda: 1", "class Solution:\n  f = g"],
)
def test_function_that_is_called_is_preferred(holder: str) -> None:
    """Chat models show how their class is used in a block of its own behind it."""
    for other in ("print(Solution().f())", "def g(): return f", "class f: pass", "1 +"):
        assert choose((other, "3", holder, "def f(): 2"), run_plainly, Limits(), "f").index == 2
    assert choose((holder, "x()"), run_plainly, Limits(), "f").index == 0
    assert choose(("1 +", "3", "x()", "y()"), run_plainly, Limits(), "f").index == 2


def test_text_behind_the_program_is_not_compiled() -> None:
    """It could end the check, and with it the choice."""
    behind = "x()\n" * 2_000_000
    tight = Limits(cpu_seconds=4, wall_seconds=120)
    assert choose(("print(1)", behind), run_plainly, tight).index == 0
    assert choose(("def f(): 1", behind), run_plainly, tight, "f").index == 0


def test_text_that_compiles_is_better_than_none() -> None:
    assert chosen("1 +", "# nothing yet", "pass") == Choice(1, "")


def test_error_of_the_first_text_is_told_with_its_line() -> None:
    found = chosen("x = 1\nif x\n  y", "2 +")
    assert found.index is None
    assert found.why == "SyntaxError in line 2: expected ':'"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("print('\0')", ("ValueError", "SyntaxError")),
        ("print('\ud800')", ("SyntaxError",)),
        ("(" * 5000, ("SyntaxError", "MemoryError")),
        ("-" * 100_000 + "1", ("MemoryError", "RecursionError")),
        ("return", ("SyntaxError",)),
        ("  x()", ("IndentationError",)),
    ],
)
def test_hostile_text_does_not_compile_and_hides_no_other(text: str, kind: tuple[str]) -> None:
    found = chosen(text)
    assert found.index is None
    assert found.why.startswith(kind)
    assert chosen(text, "print(1)").index == 1


def test_warnings_of_the_compiler_are_no_errors() -> None:
    assert chosen("print(1 is 1)\nprint('\\d')").index == 0


def test_integers_of_any_length_compile() -> None:
    """lcb-12: nothing limits the digits."""
    assert chosen(f"print({'1' * 6000})").index == 0


@pytest.mark.parametrize("status", ["cpu_limit", "wall_limit", "memory_limit", "signaled"])
def test_check_that_is_ended_chooses_nothing(status: RunStatus) -> None:
    words = status.replace("_", " ")
    assert answering(b'{"chosen": 0}', 0, status) == Choice(
        None, f"the compiler was ended ({words})"
    )
    assert answering(b'{"chosen": 0}', 1).index is None


@pytest.mark.parametrize(
    "stdout",
    [b"", b"0", b"[]", b"{}", b"\xff", b'{"chosen": 2}', b'{"chosen": -1}', b'{"chosen": "0"}']
    + [b"[" * 100_000, b'{"chosen": -1, "error": 5}', b'{"chosen": 1.0}'],
)
def test_answer_that_is_none_chooses_nothing(stdout: bytes) -> None:
    found = answering(stdout)
    assert found.index is None
    assert found.why in ("the compiler gave no answer", "does not compile")


def test_message_is_short_and_printable() -> None:
    """It is written into answer files."""
    error = {"kind": "SyntaxError", "message": "\x1b[31m" + "x" * 1000, "line": None}
    found = answering(json.dumps({"chosen": -1, "error": error}).encode())
    assert found.why == "SyntaxError: [31m" + "x" * 116


@pytest.mark.parametrize("texts", [(), ("x()",) * 9])
def test_no_candidate_and_too_many_are_refused(texts: Sequence[str]) -> None:
    with pytest.raises(ValueError, match="1 to 8 candidates"):
        chosen(*texts)


def test_extracted_candidates_are_never_too_many() -> None:
    reply = "".join(f"```\n{n} +\n```\n" for n in range(30))
    assert chosen(*(candidate.code for candidate in extract(reply).candidates)).index is None


SCRIPT = "n = int(input())\nprint(n * 2)"


@pytest.mark.parametrize(
    "behind",
    [
        "O(n)",
        "Time: O(n)\nSpace: O(1)",
        "main()",
        "if __name__ == '__main__':\n    main()",
        "import sys",
        "print(solve(3))",
        "assert solve(3) == 6",
        "def solve(n):\n    return n * 2",
        "def test_solve():\n    assert solve(3) == 6\n",
        "import io\nsys.stdin = io.StringIO('3')\nmain()",
        "best = max(scores)",
        "class Tree:\n    pass",
        "x: int = 3",
        "total += a[i]",
    ],
)
def test_block_behind_a_script_that_could_not_run_alone_is_not_the_program(behind: str) -> None:
    """The last program is wanted, and a use, a test or a piece of one is none."""
    assert chosen(behind, SCRIPT).index == 1
    assert chosen(SCRIPT, behind).index == 0
    assert chosen(behind).index == 0  # alone it is judged for what it is
    assert compile_check.check([behind, SCRIPT], None)["chosen"] == 1


@pytest.mark.parametrize(
    "code",
    [
        SCRIPT,
        "import sys\nmain = lambda: print(1)\nmain()",
        "def main():\n    print(later)\nlater = 1\nmain()",
        "from math import *\nprint(gcd(4, floor(6.5)))",
        "import os.path as p, sys\np.join('a'); sys.exit()",
        "exec('x = 1')\nprint(x)",
        "try:\n    print(1 // 0)\nexcept ZeroDivisionError as error:\n    print(error)",
        "match input().split():\n    case [a, *rest]:\n        print(a, rest)\n"
        "    case {'k': v, **more}:\n        print(v, more)\n    case other:\n        print(other)",
        "def f():\n    global x\n    x = 1\nf()\nprint(x)",
        "for i in range(3): print(i)",
        "print([y for x in range(3) if (y := x)])",
        "print(__name__, __file__)",
        "with open(0) as f: print(f.read())",
        "class A:\n    b = 1\n    print(b)",
        "async def main():\n    print(1)\nimport asyncio\nasyncio.run(main())",
    ],
)
def test_script_that_brings_what_it_needs_is_the_program(code: str) -> None:
    assert chosen(code, SCRIPT).index == 0
    assert compile_check.check([code, SCRIPT], None)["chosen"] == 0


def test_long_sum_is_looked_through_without_recursion() -> None:
    assert chosen("print(1 " + "+ 1" * 2000 + ")", SCRIPT).index == 0


def test_names_of_the_prelude_need_no_import() -> None:
    """What the official reference offers is there when the script runs."""
    assert chosen("print(gcd(*map(int, sys.stdin.read().split())))", SCRIPT).index == 0


def test_unknown_encoding_is_no_program() -> None:
    """A cookie in the first lines is obeyed when it runs, and so when it is compiled."""
    assert "unknown encoding: nosuch" in chosen("# -*- coding: nosuch -*-\nprint(1)").why
    assert chosen("# -*- coding: latin-1 -*-\nprint(1)").index == 0


def test_script_runs_by_itself() -> None:
    """It is handed into a sandbox in which qualeval cannot be imported."""
    assert "qualeval" not in script("compile_check").partition('"""\n')[2]
    assert compile_check.__file__ is not None
    ran = subprocess.run(
        [sys.executable, Path(compile_check.__file__)],
        input=json.dumps({"texts": ["1 +", "print(1 is 1)"], "function": None}).encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(ran.stdout)["chosen"] == 1
    assert ran.stderr == b""


def test_check_gives_the_same_inside_and_outside() -> None:
    """The function itself, without a process between."""
    check = compile_check.check
    assert check(["3", "print(1)"], None) == {"chosen": 1, "error": None}
    assert check(["print(f)", "def f(): 1", "("], "f") == {"chosen": 1, "error": None}
    assert check(["f = 1", "def f(): 1"], "f") == {"chosen": 0, "error": None}
    assert check([" x", "3"], "f") == {
        "chosen": 1,
        "error": {"kind": "IndentationError", "message": "unexpected indent", "line": 1},
    }
    assert check(["\0", "1 +"], None)["chosen"] == -1
    assert check(["x", "y"], None)["chosen"] == 0
