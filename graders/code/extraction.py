"""Where the program is in a reply: every place it can be, the likeliest first.

Only text is looked at here. Whether a candidate is Python is found out in the sandbox (`choice`),
because a compiler can be attacked by what it reads. Time is linear in the reply.

Rules of suite 1, for the visible text of a reply:

1.  Fenced blocks as in CommonMark 0.31 (4.5): at least three backticks or tildes; a closing fence
    has the same character, is at least as long and has nothing but spaces behind it. A fence may be
    indented by any amount, or stand behind a list mark (`1. ```python`): the block is moved left by
    that much, and further when its first line is still indented. A closing fence may stand at most
    three columns right of the opening one. Line ends are made `\\n`. Beyond CommonMark: a fence
    labelled as Python inside a block of the same fence starts that block again, because no program
    has such a line, and models write their opening fence twice.
2.  The label is the first word behind the opening fence, without case (`{.python}`, `python 3`).
3.  The order: closed blocks labelled as Python or not at all, the last first; closed blocks with
    other labels, the last first; blocks that are never closed; then the text strictly between
    the last two lines with three backticks, which is what LiveCodeBench takes (extraction_utils).
4.  A block labelled as Markdown is a text of its own: its blocks count, it does not.
5.  Without any fence the whole reply, when one of its lines starts as a line of a program does: an
    import, a definition, a decorator, `for`, `while`, `if`, `with` or `try` up to its colon, an
    assignment to a name, or a call. Prose such as `Sorry` is Python too, so parsing is not enough.
6.  In a block that is never closed, a fence at the end of a line closes it there: `print(x)` and
    its closing fence are sometimes written on one line.
7.  Blank blocks and repeated ones are left out, and no more than eight candidates are given; closed
    blocks labelled as Python are kept before the others. A byte order mark in front of a program
    is left out, as Python does with one in front of a file.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

MOST_CANDIDATES = 8

How = Literal[
    "closed_python",
    "closed_unlabelled",
    "closed_other",
    "unclosed",
    "between_backticks",
    "no_fence",
    "given",
]
"""How a candidate was found, in the words that the answer file records. `given` is not found here:
it is for a program that came without a reply around it."""

_PYTHON = frozenset({"python", "python3", "py", "py3", "pypy", "pypy3"})
_MARKDOWN = frozenset({"markdown", "md"})
_FENCE = re.compile(r"([ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*)(`{3,}|~{3,})(.*)", re.DOTALL)
_LABEL = re.compile(r"[{.\s]*([\w+#-]{0,40})")
_LINE_OF_CODE = re.compile(
    r"""[ \t]*(?:
        import\ +[A-Za-z_] | from\ +[\w.]+\ +import\b | (?:async\ +)?def\ +\w+\ *\( | @\w
        | class\ +\w+\ *[(:] | (?:for|while|if|with)\b.*: | try\ *:
        | [A-Za-z_][\w.]*\ *(?:[-+*/%&|^]|//|\*\*|<<|>>)?=[^=] | [A-Za-z_][\w.]*\(.*\)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A text that may be the program. `same_as_official`: LiveCodeBench takes the same text."""

    code: str
    label: str
    how: How
    same_as_official: bool


@dataclass(frozen=True, slots=True)
class Extraction:
    """The candidates, best first, and how many fenced blocks the reply has."""

    candidates: tuple[Candidate, ...]
    blocks: int


@dataclass(frozen=True, slots=True)
class _Block:
    lines: Sequence[str]
    label: str
    closed: bool

    @property
    def how(self) -> How:
        if not self.closed:
            return "unclosed"
        if not self.label:
            return "closed_unlabelled"
        return "closed_python" if self.label in _PYTHON else "closed_other"


def extract(reply: str) -> Extraction:
    """Find the candidates; never raises."""
    lines = reply.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    blocks = tuple(_all_blocks(lines))
    official = _between_backticks(lines)
    candidates: dict[str, Candidate] = {}
    for code, label, how in _ordered(lines, blocks, official):
        same = code.strip("\n") == official.strip("\n")
        code = code.removeprefix("\ufeff")
        if code.strip() and code not in candidates:
            candidates[code] = Candidate(code, label, how, same)
    return Extraction(_likeliest(tuple(candidates.values())), len(blocks))


def _likeliest(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """As many as are tried, in their order: many example outputs may stand behind a program."""
    places = sorted(
        range(len(candidates)), key=lambda place: candidates[place].how != "closed_python"
    )
    return tuple(candidates[place] for place in sorted(places[:MOST_CANDIDATES]))


def _ordered(
    lines: Sequence[str], blocks: Sequence[_Block], official: str
) -> Iterator[tuple[str, str, How]]:
    order: tuple[tuple[How, ...], ...] = (
        ("closed_python", "closed_unlabelled"),
        ("closed_other",),
        ("unclosed",),
    )
    for kinds in order:
        for block in reversed(blocks):
            if block.how in kinds:
                yield _moved_left(block.lines), block.label, block.how
    yield official, "", "between_backticks"
    if not blocks and any(map(_LINE_OF_CODE.match, lines)):
        yield _moved_left(lines), "", "no_fence"


def _all_blocks(lines: Sequence[str]) -> Iterator[_Block]:
    for block in _blocks(lines):
        inner = tuple(_blocks(block.lines)) if block.label in _MARKDOWN else ()
        yield from inner or (block,)


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    content: list[str] = []
    fence = label = ""
    indent = 0
    for line in lines:
        found = _FENCE.fullmatch(line) if "```" in line or "~~~" in line else None
        same_fence = found is not None and fence != "" and _same_fence(found, fence, indent)
        if found and same_fence and not found[3].strip():
            yield _Block(content, label, True)
            fence = ""
        elif found and (not fence or (same_fence and _label(found) in _PYTHON)) and _opens(found):
            if fence:
                yield _Block(_up_to_fence(content, fence), label, False)
            indent, fence, label = _columns(found[1]), found[2], _label(found)
            content = []
        elif fence:
            content.append(_without_indent(line, indent))
    if fence:
        yield _Block(_up_to_fence(content, fence), label, False)


def _up_to_fence(lines: Sequence[str], fence: str) -> Sequence[str]:
    for number, line in enumerate(lines):
        if line.rstrip().endswith(fence):
            return [*lines[:number], line.rstrip().rstrip(fence[0])]
    return lines


def _opens(found: re.Match[str]) -> bool:
    return found[2][0] == "~" or "`" not in found[3]


def _same_fence(found: re.Match[str], fence: str, indent: int) -> bool:
    """Whether a line is a fence that can end a block: as long, and not far to the right."""
    plain = not found[1].strip()
    return plain and found[2].startswith(fence) and _columns(found[1]) <= indent + 3


def _label(found: re.Match[str]) -> str:
    matched = _LABEL.match(found[3])
    return matched[1].lower() if matched else ""


def _columns(prefix: str) -> int:
    return len(prefix.expandtabs(4))


def _without_indent(line: str, columns: int) -> str:
    """The line without that many columns of space in front, or without all it has."""
    if not columns:
        return line
    rest = line.lstrip(" \t")
    space = line[: len(line) - len(rest)].expandtabs(4)
    return space[columns:] + rest


def _moved_left(lines: Sequence[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    code = "\n".join(lines)
    return textwrap.dedent(code) if first[:1] in (" ", "\t") else code


def _between_backticks(lines: Sequence[str]) -> str:
    """What LiveCodeBench takes (extraction_utils.extract_code at 28fef95)."""
    marks = [number for number, line in enumerate(lines) if "```" in line]
    return "\n".join(lines[marks[-2] + 1 : marks[-1]]) if len(marks) > 1 else ""
