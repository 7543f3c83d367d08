"""Whatever a run holds: what must not be seen is in no byte of its bundle, and numbers stay."""

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import publish_runs as runs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from publish_samples import checker, escaped, full_width, percent, place

from qualeval.publish import bundle_summary
from qualeval.publish.literals import literals_of
from qualeval.publish.overlap import Protected, words_of
from qualeval.publish.views import views
from qualeval.records import Summary

FEW = settings(max_examples=60)

LETTERS = "abcdefghijkmnpqrstuvwxyz"
LITERALS = st.tuples(
    st.text(LETTERS, min_size=4, max_size=10),
    st.sampled_from(["-", ".", "_", ""]),
    st.text(LETTERS + "0123456789", min_size=2, max_size=8),
    st.text("0123456789", min_size=2, max_size=3),
).map("".join)
NOISE = st.text(st.characters(codec="utf-8"), max_size=40) | st.text(
    "aB \n%\\u0041x/.:@", max_size=40
)


@st.composite
def disguised(draw: st.DrawFn, literal: str) -> str:
    """The literal in one of its forms, in any case."""
    value = draw(st.sampled_from([literal, literal.upper(), literal.title()]))
    form = draw(st.sampled_from(["raw", "json", "json split", "split", "full width", "percent"]))
    at = draw(st.integers(1, len(value) - 1))
    return {
        "raw": value,
        "json": escaped(value),
        "json split": f"{value[:at]}\\n{value[at:]}",
        "split": f"{value[:at]}\n{value[at:]}",
        "full width": full_width(value),
        "percent": percent(value),
    }[form]


@st.composite
def planted(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A literal, and three texts that hold it somewhere."""
    literal = draw(LITERALS)
    texts = [draw(NOISE) + draw(disguised(literal)) + draw(NOISE) for _ in range(3)]
    return literal, texts


@contextmanager
def copy_of(run: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copytree(run, Path(folder) / "job"))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return runs.run_of(tmp_path_factory.mktemp("clean"), "job")


def holds(folder: Path, literal: str) -> list[str]:
    """In which form a folder's bytes hold a literal: forms are compared without line breaks."""
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode("utf-8").lower()
            text = text.replace("\\\\n", "").replace("\\n", "").replace("\n", "")
            wide, escapes = full_width(literal), escaped(literal)
            forms = [literal, escapes, percent(literal), wide, json.dumps(wide)[1:-1]]
            for form in (*forms, escapes.replace("\\", "\\\\")):
                if form.lower() in text:
                    found.append(f"{path.name}: {form}")
    return found


@FEW
@given(planted())
def test_planted_literal_is_in_no_byte_of_the_bundle(
    clean: Path, plant: tuple[str, list[str]]
) -> None:
    """In an answer, its reasoning, a log, a command, the card; in every form and case."""
    literal, (first, second, third) = plant
    with copy_of(clean) as run:
        runs.local(run, [literal])
        runs.answer(run, 0, text=first, reasoning=second, reasoning_source="reasoning")
        runs.answer(run, 1, reason=third, details={"why": [first]})
        runs.session(run, command=second)
        runs.card(run, notes=third)
        runs.log(run, " ".join(first.encode("ascii", "backslashreplace").decode().split()))
        done = runs.published(run)
        assert done.folder is not None, done.line
        assert [] == holds(done.folder, literal)
        assert [] == [line for line in done.report if literal in line.lower()]
        assert literal not in (run / "findings.jsonl").read_text().lower()


@FEW
@given(planted())
def test_redaction_moves_no_number(clean: Path, plant: tuple[str, list[str]]) -> None:
    """summarize(bundle) equals summarize(original)."""
    literal, texts = plant
    with copy_of(clean) as run:
        runs.local(run, [literal])
        for id, text in enumerate(texts):
            runs.answer(run, id, text=text, reasoning=text, reasoning_source="reasoning")
        done = runs.published(run)
        assert 0 == done.code, done.report
        stored = Summary.model_validate_json((run / "mmlupro.summary.json").read_bytes())
        assert stored == bundle_summary(run / "public", "mmlupro")


@settings(max_examples=300)
@given(st.text("ab%41\\u0061n \n\r\u200b\uff21é\u2028", max_size=60), st.data())
def test_every_place_of_a_reading_is_a_place_of_the_text(text: str, data: st.DataObject) -> None:
    """Spans never run out of the text, never turn round, and go forward."""
    for view in views(text):
        if not view.text:
            continue
        spans = [view.span(at, at + 1) for at in range(len(view.text))]
        assert all(0 <= start < end <= len(text) for start, end in spans)
        assert spans == sorted(spans)
        start = data.draw(st.integers(0, len(view.text) - 1))
        assert spans[start][0] == view.span(start, len(view.text))[0]
        assert isinstance(view.begins_word(start), bool)


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from(["ba", "ke", "Li", "mo", "42"]), max_size=40),
    st.lists(st.sampled_from(["ba", "ke", "li", "MO", "42"]), max_size=40),
)
def test_overlap_is_found_exactly_where_there_is_one(gated: list[str], said: list[str]) -> None:
    """The quick way and the plain one agree: 13 words in a row, or a whole text of 6 to 12."""
    protected = Protected()
    protected.add(" ".join(gated))
    question, text = words_of(" ".join(gated)), ", ".join(said)
    words = words_of(text)
    length = len(question) if 6 <= len(question) < 13 else 13
    runs_of = {tuple(question[at : at + length]) for at in range(len(question) - length + 1)}
    hit = any(tuple(words[at : at + length]) in runs_of for at in range(len(words) - length + 1))
    assert hit == bool(protected.find(text))


@settings(max_examples=200)
@given(st.text(max_size=80))
def test_text_of_no_machine_comes_back_as_it_was_or_with_placeholders(text: str) -> None:
    """Checking is total: any text, half surrogates too, and twice is as good as once."""
    broken = text + "\ud835"
    one = checker(literals=literals_of()).check(broken, place("operator_text"))
    assert one.findings or one.text == broken
    again = checker(literals=literals_of()).check(one.text, place("operator_text"))
    assert again.text == one.text
