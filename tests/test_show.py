"""`show` prints one answer in full, with the prompt made again from list and contract."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine import Lab
from model_server import running
from stored_runs import copied, first_id, hashes, record, set_in_line

from qualeval.errors import OptionError
from qualeval.show import NOT_FOR_PUBLICATION, show_command, visible


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with running(slots=4) as server:
        return record(tmp_path_factory.mktemp("show"), server)


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    return copied(made, tmp_path)


def section(lines: list[str], name: str) -> list[str]:
    """The lines below a heading, up to the next empty one before a heading."""
    start = next(n for n, line in enumerate(lines) if line.startswith(f"---- {name}"))
    end = next((n for n in range(start + 1, len(lines)) if lines[n][:4] == "----"), len(lines) + 1)
    return lines[start + 1 : end - 1]


def test_answer_is_shown_in_full(run: Path) -> None:
    """Prompt, request, reasoning, reply, end, tokens, seconds, verdict; nothing is written."""
    before = hashes(run)
    lines = show_command(run, "mmlupro", "5")
    assert lines[0].startswith("MMLU-Pro, id 5 · test-model · file:mine.jsonl · conditions ")
    prompt = section(lines, "prompt")
    assert prompt[0] == "[user]" and "[[item:5]] Which one?" in prompt and "B. green" in prompt
    request, sha256 = section(lines, "request")
    assert "max_tokens 48, temperature 1.0, top_p 0.95" in request and "messages" not in request
    assert sha256.endswith(", the one that was sent")
    assert section(lines, "reasoning (from reasoning_content)") == ["Red? No. Green."]
    assert section(lines, "reply") == ["Answer: **B**"]
    end, tokens, seconds = section(lines, "end, tokens, seconds")
    assert end == "finish_reason stop, cut_by null"
    assert "completion_tokens 8" in tokens and "cached_tokens not reported" in tokens
    assert "attempts 1, ended 20" in seconds
    verdict, *facts = lines[lines.index("---- verdict") + 1 :]
    assert verdict.startswith("right: ")
    assert "rule anchored, extracted B, gold B, order null" in facts[0]
    assert NOT_FOR_PUBLICATION not in lines
    assert hashes(run) == before


def test_long_reply_is_shown_whole_with_what_cut_it(run: Path) -> None:
    """Nothing is folded."""
    lines = show_command(run, "mmlupro", "3")
    assert len("".join(section(lines, "reply"))) > 100
    assert "cut_by max_tokens" in section(lines, "end")[0]
    assert any(line.startswith("wrong: The answer was cut off") for line in lines)


def test_every_repeat_is_shown_with_its_own_seed(run: Path) -> None:
    """`repeats: 2`."""
    lines = show_command(run, "think", "0")
    assert "==== answer 1 of 2" in lines and "==== answer 2 of 2" in lines
    seeds = [line for line in lines if line.startswith("seed ")]
    assert [line.split(",")[0] for line in seeds] == ["seed 42", "seed 43"]


def test_sample_list_of_a_gated_part_may_be_published_and_others_may_not(run: Path) -> None:
    """A user's own list for the part may hold its real questions."""
    assert NOT_FOR_PUBLICATION not in show_command(run, "gpqa", first_id(run, "gpqa"))
    assert show_command(run, "think", "0")[1] == NOT_FOR_PUBLICATION


def test_prompt_of_a_list_that_is_not_there_is_not_made_up(run: Path) -> None:
    """The reply and its verdict are shown, and why there is no prompt."""
    (run / "mmlupro.items.jsonl").unlink()
    lines = show_command(run, "mmlupro", "0")
    [why] = section(lines, "prompt")
    assert why.startswith("cannot be made again: ") and "mmlupro.items.jsonl" in why
    assert section(lines, "reply") == ["B"]


def test_missing_official_list_is_not_fetched(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says how to get it."""
    monkeypatch.setenv("QUALEVAL_CACHE", str(tmp_path / "empty"))
    contract = run / "gpqa.contract.json"
    text = contract.read_text(encoding="utf-8").replace('"kind": "sample"', '"kind": "official"')
    contract.write_text(text, encoding="utf-8")
    lines = show_command(run, "gpqa", first_id(run, "gpqa"))
    assert lines[1] == NOT_FOR_PUBLICATION
    assert "qualeval lists fetch gpqa" in section(lines, "prompt")[0]


def test_request_that_was_not_the_one_sent_is_told(run: Path) -> None:
    """So is an answer that is not its raw reply."""
    set_in_line(run / "mmlupro.gen.jsonl", 0, request_sha256="0" * 64)
    set_in_line(run / "mmlupro.jsonl", 0, text="C")
    told = "\n".join(show_command(run, "mmlupro", "0"))
    assert f"BUT {'0' * 64} was sent" in told
    assert "BUT request_sha256, text of mmlupro.jsonl is not as in mmlupro.gen.jsonl" in told


def test_failed_unasked_and_ungraded_items_say_so(tmp_path: Path) -> None:
    """An item without an answer is no error: the list has it."""
    with running(slots=4) as server:
        lab = Lab(tmp_path, server).list_of(6).script({"2": {"status": 400}})
        assert lab.run("--limit", "4").code == 1
    run = lab.job().folder
    [failed] = section(show_command(run, "mmlupro", "2"), "reply")
    assert failed.startswith("given up after 1 attempts: http_400: HTTP 400")
    assert section(show_command(run, "mmlupro", "5"), "reply") == ["not asked yet"]
    (run / "mmlupro.jsonl").unlink()
    assert show_command(run, "mmlupro", "0")[-1].startswith("not graded yet: qualeval grade ")


def test_unknown_id_or_part_is_refused_with_the_nearest(run: Path) -> None:
    """Exit 2."""
    with pytest.raises(OptionError, match="part 'mmlupro' has no item '77'"):
        show_command(run, "mmlupro", "77")
    with pytest.raises(OptionError, match=r"part 'gqpa' was never run \(did you mean 'gpqa'\?\)"):
        show_command(run, "gqpa", "1")


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\rb", "a\\rb"),
        ("tab\tstays", "tab\tstays"),
        ("half \ud83d", "half \\ud83d"),
        ("line\u2028end\u202e", "line\\u2028end\\u202e"),
        ("naïve 日本 👩‍🔬", "naïve 日本 👩‍🔬"),
        ("C:\\new", "C:\\new"),
    ],
)
def test_reply_cannot_steer_the_terminal(text: str, seen: str) -> None:
    """Control characters stand there as escapes; all else as it is."""
    assert visible(text) == seen
