"""Where the program is in a reply: candidates in order, never a guess, linear on any text."""

import re
import sys
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qualeval.graders.code import Candidate, extract

if TYPE_CHECKING:
    from _typeshed import TraceFunction


def first(reply: str) -> Candidate:
    return extract(reply).candidates[0]


def codes(reply: str) -> list[tuple[str, str]]:
    return [(candidate.code, candidate.how) for candidate in extract(reply).candidates]


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("1. Code:\n   ```python\n   print(1)\n   ```", "print(1)"),
        ("```python\r\nprint(1)\r\n```\r\n", "print(1)"),
        ("~~~python\nprint(1)\n~~~", "print(1)"),
    ],
)
def test_indented_fences_crlf_and_tildes_are_read(reply: str, code: str) -> None:
    """lcb-10: a block from a numbered list is an IndentationError if it is not moved left."""
    assert codes(reply)[0] == (code, "closed_python")


@pytest.mark.parametrize(
    "label",
    ["python", "Python3", "py", "PY3", "{.python}", "{python .numbered}", "python 3", "pypy3"]
    + ["python:main.py", ' python title="a"'],
)
def test_labels_of_python_are_known(label: str) -> None:
    assert codes(f"```{label}\nprint(1)\n```") == [("print(1)", "closed_python")]


@pytest.mark.parametrize("label", ["text", "cpp", "c++", "bash", "pycon", "python2", "input"])
def test_other_labels_come_after_python(label: str) -> None:
    reply = f"```python\nprint(1)\n```\n```{label}\nls()\n```"
    assert codes(reply)[:2] == [("print(1)", "closed_python"), ("ls()", "closed_other")]
    assert extract(reply).candidates[1].label == label


def test_last_block_comes_first_and_unlabelled_counts_as_python() -> None:
    reply = "```python\na()\n```\ntext\n```\nb()\n```\n### Explanation\n```python\nc()\n```\nSo."
    assert codes(reply) == [
        ("c()", "closed_python"),
        ("b()", "closed_unlabelled"),
        ("a()", "closed_python"),
    ]
    assert extract(reply).blocks == 3


def test_unclosed_block_comes_after_all_closed_ones() -> None:
    reply = "```text\nls()\n```\nThen:\n```python\nprint(1)\n"
    assert codes(reply)[:2] == [("ls()", "closed_other"), ("print(1)\n", "unclosed")]


def test_longer_fence_holds_shorter_ones() -> None:
    code = 's = """\n```\ninside\n```\n"""\nprint(s)'
    assert codes(f"````python\n{code}\n````")[0] == (code, "closed_python")


def test_other_fence_character_does_not_close() -> None:
    assert codes("~~~python\nprint('''\n```\n''')\n~~~")[0][0] == "print('''\n```\n''')"


def test_closing_fence_has_nothing_behind_it() -> None:
    assert first("```python\na()\n``` not yet\nb()\n```  \t").code == "a()\n``` not yet\nb()"


def test_deeply_indented_backticks_in_a_docstring_close_nothing() -> None:
    code = 'def f():\n    """Example:\n    ```\n    f()\n    ```\n    """'
    assert first(f"```python\n{code}\n```").code == code


def test_list_mark_before_a_fence_is_indentation() -> None:
    reply = "- ```python\n  if x:\n      y()\n  ```"
    assert codes(reply)[0] == ("if x:\n    y()", "closed_python")


def test_list_mark_before_backticks_closes_nothing() -> None:
    assert first("```python\na()\n- ```\n```").code == "a()\n- ```"


def test_tabs_before_a_fence_are_indentation() -> None:
    assert first("\t```python\n\tif x:\n\t\ty()\n\t```").code == "if x:\n    y()"


def test_block_indented_further_than_its_fence_is_moved_left() -> None:
    reply = "```python\n\n    for x in y:\n        z()\n```"
    assert first(reply).code == "\nfor x in y:\n    z()"


def test_less_indented_lines_lose_only_what_they_have() -> None:
    assert first("   ```python\n   a()\n b()\n   ```").code == "a()\nb()"


def test_inline_backticks_open_nothing() -> None:
    assert extract("```print(1)``` is it, ``` not ```this").blocks == 0


def test_markdown_block_is_a_text_of_its_own() -> None:
    reply = "````markdown\n# Answer\n```python\nprint(1)\n```\n````"
    assert codes(reply) == [("print(1)", "closed_python")]
    assert codes("```md\nprint(1)\n```") == [("print(1)", "closed_other")]


def test_what_the_official_rule_takes_is_the_last_resort() -> None:
    """An opening fence that is not at the start of its line is none for CommonMark."""
    assert codes("The answer:```python\nprint(1)\n```")[0] == ("print(1)", "between_backticks")


def test_opening_fence_written_twice_starts_again() -> None:
    """Real replies: the official rule takes the nothing between the two closing fences."""
    assert codes("```python\n```python\na()\n```\n```")[0] == ("a()", "closed_python")
    broken = "```python\na()\nNo:\n```python\nb()\n```"
    assert codes(broken) == [("b()", "closed_python"), ("a()\nNo:", "unclosed")]
    assert codes("```python\na()\n```text\nb()\n```")[0][0] == "a()\n```text\nb()"


def test_same_as_official_is_told() -> None:
    """method/lcb.md 2: strictly between the last two lines that contain three backticks."""
    assert first("```python\nprint(1)\n```").same_as_official
    assert not first("1. x\n   ```python\n   print(1)\n   ```").same_as_official
    assert not first("```python\nprint(1)\n```\nUse ``` for code").same_as_official
    assert not first("~~~python\nprint(1)\n~~~").same_as_official


@pytest.mark.parametrize(
    "reply",
    ["import sys\nprint(1)", "from math import gcd", "def f(x): return x", "n=int(input())"]
    + ["class Solution:\n  pass", "for i in a: x", "@cache", "x.y += 1", "    print(1)", "try:"]
    + ["\ufeffprint(1)"],
)
def test_bare_code_without_a_fence_is_a_candidate(reply: str) -> None:
    expected = reply.removeprefix("\ufeff").removeprefix("    ")
    assert codes(reply) == [(expected, "no_fence")]


@pytest.mark.parametrize(
    "reply",
    ["", "Sorry", "   \n\n", "I cannot solve this.", "42", "x == y holds", "Yes, important."]
    + ["from here to there", "```", "```python\n```", "``` \n \n```", "~~~\n\n~~~"],
)
def test_reply_without_code_has_no_candidate(reply: str) -> None:
    assert extract(reply).candidates == ()


def test_at_most_eight_candidates_without_repetition() -> None:
    reply = "".join(f"```python\nf({n % 12})\n```\n" for n in range(40))
    found = codes(reply)
    assert [code for code, _ in found] == [f"f({n % 12})" for n in range(39, 31, -1)]


def test_program_is_kept_however_many_examples_stand_behind_it() -> None:
    examples = "".join(f"Example {n}:\n```\n{n}\n```\n" for n in range(20))
    found = codes(f"```python\nf()\n```\n{examples}")
    assert [code for code, _ in found] == [*(str(n) for n in range(19, 12, -1)), "f()"]
    found = codes(f"```\nf()\n```\n{examples}")
    assert [code for code, _ in found] == [str(n) for n in range(19, 11, -1)]


def test_fence_at_the_end_of_a_line_closes_a_block_that_nothing_else_closes() -> None:
    assert codes("```python\na()\nb()```")[0] == ("a()\nb()", "unclosed")
    assert codes("```python\na()``` \nThat is all.")[0] == ("a()", "unclosed")
    assert codes("~~~~\na() # ~~~\nb()~~~~")[0] == ("a() # ~~~\nb()", "unclosed")
    two = codes("```python\na()```\nBetter:\n```python\nb()\n```")
    assert two == [("b()", "closed_python"), ("a()", "unclosed")]
    assert codes("```python\n# not ```\na()\n```")[0] == ("# not ```\na()", "closed_python")


def test_byte_order_mark_in_front_of_a_program_is_left_out() -> None:
    """As in front of a file; anywhere else Python refuses it, and so do we."""
    assert codes("```python\n\ufeffa()\n```") == [("a()", "closed_python")]
    assert first("```python\n\ufeffa()\n```").same_as_official
    assert codes("```python\na()\n\ufeffb()\n```") == [("a()\n\ufeffb()", "closed_python")]
    assert codes("```python\n\ufeff\n```") == []


def test_label_is_bounded() -> None:
    """It is written into answer files."""
    assert len(first(f"```{'x' * 5000}\nf()\n```").label) == 40


PIECES = ["```", "````", "~~~", "`", "python", "\n", "\r\n", "\r", " ", "    ", "\t", "- ", "1. "]
PIECES += ["print(1)", "text", "{.", "}", "markdown", "\ud800", "\x00", "\u2028", "> "]


@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
@settings(max_examples=300)
def test_any_text_gives_candidates_that_are_in_it(reply: str) -> None:
    """Never raises, and no candidate holds a character that the reply has not."""
    found = extract(reply)
    assert len(found.candidates) <= 8
    for candidate in found.candidates:
        assert candidate.code.strip()
        assert set(candidate.code) <= set(reply) | {"\n", " "}


@given(
    st.lists(
        st.sampled_from(["x = 1", "if x:", "    y()", "", "# `a` ``b``", "\tz()"]), min_size=1
    ),
    st.sampled_from(["```", "````", "~~~", "~~~~~"]),
    st.sampled_from(["", "python", "py"]),
    st.sampled_from(["Here:\n", "", "```text\n1 2\n```\n", "1. a\n2. b\n"]),
)
def test_what_was_put_into_a_block_comes_out(
    lines: list[str], fence: str, label: str, before: str
) -> None:
    code = "\n".join(["import sys", *lines])
    reply = f"{before}{fence}{label}\n{code}\n{fence}\nThat is all."
    assert first(reply).code == code


def lines_run(work: Callable[[], object]) -> int:
    """Lines of Python that a call runs: work that no other load of the machine changes."""
    count = 0

    def tracer(frame: FrameType, event: str, given: object) -> "TraceFunction":
        nonlocal count
        count += 1
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "unit",
    ["```\n", "```python\nx()\n```\n", "~~~~\n```\n", "- - ```md\n", "````md\n```\n", "f()\n"],
)
def test_work_grows_in_proportion_to_the_reply(unit: str) -> None:
    small = lines_run(lambda: extract(unit * 200))
    large = lines_run(lambda: extract(unit * 2000))
    assert large < 11 * small + 1000


@pytest.mark.parametrize("text", [" " * 400_000, "- " * 200_000, "`" * 400_000, "1. " * 100_000])
def test_long_lines_are_read_at_once(text: str) -> None:
    """Patterns that go back over a line would take hours here."""
    for reply in (text, text + "```", "```" + text, "a" + text + "```x"):
        assert all(re.search("[`x1.]|- ", c.code) for c in extract(reply).candidates)
