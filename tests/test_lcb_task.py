"""The part `lcb`: its prompts, and the verdict on a reply. The programs are our own."""

import json
from typing import Any

import pytest
from plain_runner import run_plainly
from test_lcb_rows import ADD, CALLED, STARTER, called, row

from qualeval.errors import SandboxError
from qualeval.records import Answer, Completion, RawReply, Request, Verdict
from qualeval.sandbox.values import Limits, Ran
from qualeval.tasks.lcb import FUNCTION, SCRIPT, TASK, TEMPLATE
from qualeval.tasks.lcb_rows import item

RIGHT = "Add them.\n\n```python\na, b = map(int, input().split())\nprint(a + b)\n```\n"
RIGHT_CALL = f"```python\n{STARTER.strip()}\n        return n > len(nums)\n```"


def never(code: str, stdin: bytes, limits: Limits) -> Ran:
    pytest.fail("a program was run")


def verdict(text: str, made: dict[str, Any] | None = None, **facts: Any) -> Verdict:
    completion = Completion(text=text, finish_reason="stop").model_copy(update=facts)
    return TASK.grade(item(made or row()), completion, run_plainly)


# Prompts


def test_script_is_asked_for_in_one_user_message() -> None:
    (message,) = TASK.messages(item(row()))
    assert message == {
        "role": "user",
        "content": SCRIPT.replace("{problem}", "Print the sum of two numbers."),
    }
    text = str(message["content"])
    assert ("standard input" in text, "standard output" in text) == (True, True)
    assert "one code block" in text


def test_function_is_asked_for_with_its_starter_code() -> None:
    (message,) = TASK.messages(item(called()))
    shown = STARTER.strip("\n")
    expected = FUNCTION.replace("{problem}", "Print the sum of two numbers.")
    assert message["content"] == expected.replace("{starter_code}", shown)
    assert "standard input" not in str(message["content"])


def test_function_without_starter_code_is_named() -> None:
    (message,) = TASK.messages(item(called(starter_code="")))
    assert "def isThere(self, ...)" in str(message["content"])


def test_braces_in_a_statement_are_no_slots() -> None:
    """Set notation and format strings are common in statements."""
    odd = "Let S = {1, 2}. Print {problem} or {starter_code} or {0}."
    for made in (row(question_content=odd), called(question_content=odd)):
        (message,) = TASK.messages(item(made))
        assert str(message["content"]).count(odd) == 1


def test_template_that_is_hashed_holds_both_prompts() -> None:
    assert (SCRIPT in TEMPLATE, FUNCTION in TEMPLATE, TASK.template == TEMPLATE) == (True,) * 3
    slots = [TEMPLATE.count(slot) for slot in ("{problem}", "{starter_code}")]
    assert slots == [2, 1]


def test_part_is_the_row_of_the_published_table() -> None:
    assert (TASK.name, TASK.title, TASK.subtitle) == (
        "lcb",
        "LiveCodeBench",
        "40 newest tasks, the code runs",
    )
    assert (TASK.max_tokens, TASK.thinking, TASK.draw.size, TASK.runs_code) == (
        *(4096, "off", 40),
        True,
    )
    assert TASK.maker is None
    TASK.prepare()


# Verdicts


def test_program_that_passes_every_test_is_right() -> None:
    found = verdict(RIGHT)
    assert (found.right, found.cut_off, found.rule) == (True, False, "accepted")
    assert found.reason.startswith("Passed all")
    assert found.reason.endswith(".")
    assert found.extracted == "a, b = map(int, input().split())\nprint(a + b)"
    details = dict(found.details or {})
    for name in ("cpu_ms", "wall_ms", "max_rss_mib"):
        assert isinstance(details.pop(name), int)
    assert details == {
        "verdict": "accepted",
        "failed_test": None,
        "tests": 2,
        "extraction": "closed_python",
        "blocks": 1,
        "same_as_official": True,
    }


def test_hidden_test_decides_as_a_public_one_does() -> None:
    """Tests count from 0 over public and private ones; no text of a test is told."""
    found = verdict("```python\nprint(5)\n```")
    assert (found.right, found.rule) == (False, "wrong_answer")
    details = found.details or {}
    assert (details["verdict"], details["failed_test"], details["tests"]) == ("wrong_answer", 1, 2)
    assert found.reason.startswith("Test 1: ")
    assert "9" not in found.reason


def test_function_is_called_with_its_arguments() -> None:
    found = verdict(RIGHT_CALL, called())
    assert (found.right, found.rule) == (True, "accepted")
    other = called(public_test_cases=[{**CALLED, "output": "false"}])
    assert verdict(RIGHT_CALL, other).rule == "wrong_answer"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("I cannot solve this.", "no_code"),
        ("", "no_code"),
        ("```python\nprint(\n```", "compile_error"),
        ("```python\nraise ValueError\n```", "runtime_error"),
    ],
)
def test_reply_without_a_running_program_is_wrong(text: str, rule: str) -> None:
    found = verdict(text)
    assert (found.right, found.rule) == (False, rule)
    assert (found.details or {})["verdict"] == rule


def test_cut_off_answer_with_the_right_program_is_wrong_and_not_run() -> None:
    completion = Completion(text=RIGHT, finish_reason="length", cut_by="max_tokens")
    found = TASK.grade(item(row()), completion, never)
    assert (found.right, found.cut_off, found.rule) == (False, True, "cut_off")
    assert found.reason == "The answer was cut off by the token limit."
    assert (found.details or {})["verdict"] == "cut_off"
    assert found.extracted is None


def test_program_in_the_reasoning_field_alone_is_no_answer() -> None:
    completion = Completion(
        text="", reasoning=RIGHT, reasoning_source="reasoning", finish_reason="stop"
    )
    found = TASK.grade(item(row()), completion, never)
    assert (found.right, found.cut_off, found.rule) == (False, False, "misrouted")
    assert (found.details or {})["verdict"] == "no_code"


def test_without_a_sandbox_there_is_no_verdict() -> None:
    with pytest.raises(ValueError, match="run_code"):
        TASK.grade(item(row()), Completion(text=RIGHT, finish_reason="stop"))


def test_failure_of_the_sandbox_is_no_verdict() -> None:
    """An answer is never wrong because our side broke."""

    def broken(code: str, stdin: bytes, limits: Limits) -> Ran:
        raise SandboxError("gone")

    with pytest.raises(SandboxError):
        TASK.grade(item(row()), Completion(text=RIGHT, finish_reason="stop"), broken)


def test_expected_outputs_never_go_in() -> None:
    """What is run is the program, what it is given is one input."""
    seen = []

    def watched(code: str, stdin: bytes, limits: Limits) -> Ran:
        seen.append(code.encode() + stdin)
        return run_plainly(code, stdin, limits)

    secret = "83418634"
    made = row(public_test_cases=[{**ADD, "output": secret}], private_test_cases="")
    TASK.grade(item(made), Completion(text=RIGHT, finish_reason="stop"), watched)
    made = called(public_test_cases=[{**CALLED, "output": secret}])
    TASK.grade(item(made), Completion(text=RIGHT_CALL, finish_reason="stop"), watched)
    assert len(seen) >= 4
    assert [sent for sent in seen if secret.encode() in sent] == []


def test_private_tests_are_not_decoded_for_a_program_that_is_none() -> None:
    """lcb-26: tests are decoded when the first one is run."""
    broken = TASK.official_item(row(private_test_cases="never decoded"))
    completion = Completion(text="```python\nprint(\n```", finish_reason="stop")
    assert TASK.grade(broken, completion, run_plainly).rule == "compile_error"


def test_answer_file_holds_no_test() -> None:
    question = item(row())
    completion = Completion(text="```python\nprint(7)\n```", finish_reason="stop")
    raw = RawReply.of(Request(id=question.id, max_tokens=4096, body={}), completion)
    found = TASK.grade(question, completion, run_plainly)
    answer = Answer.of_verdict(raw, question, found)
    line = json.dumps(answer.model_dump())
    assert (answer.gold, "2 3" in line) == (None, False)
    counted = {name for name, (right, _) in TASK.beside(answer).items() if right}
    assert counted == {"programs: wrong answer"}
    assert {*TASK.verdict_fields} - {"right", "sandbox"} <= {*(answer.details or {})}
