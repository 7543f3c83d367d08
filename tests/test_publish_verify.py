"""A bundle is checked by whoever has nothing else."""

import json
from pathlib import Path

import publish_runs as runs
import pytest
from publish_samples import HOST
from stored_runs import set_in_line, set_in_object

from qualeval.errors import RunFolderError
from qualeval.publish import is_bundle, verify_bundle


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Six answers of the sample list: right, wrong and cut off ones."""
    return runs.run_of(tmp_path, "job", "rwrcrw" + "r" * 14, part="gpqa", list="sample")


def bundle_of(run: Path) -> Path:
    done = runs.published(run)
    assert done.folder is not None
    return done.folder


def test_whole_bundle_is_equal_and_says_how_much_was_graded_again(run: Path) -> None:
    """Counted from the verdicts, graded where the list is at hand."""
    lines, code = verify_bundle(bundle_of(run))
    assert (["1 part, 20 answers counted, 20 graded again: all equal"], 0) == (lines, code)


def test_redacted_answers_are_counted_but_not_graded_again(run: Path) -> None:
    """And that is no difference."""
    runs.local(run, [HOST])
    first, second = (line["id"] for line in runs.lines(run / "gpqa.jsonl")[:2])
    runs.answer(run, first, "gpqa", reasoning=f"on {HOST}", reasoning_source="reasoning")
    runs.answer(run, second, "gpqa", reason=f"Said by {HOST}.")
    lines, code = verify_bundle(bundle_of(run))
    assert 0 == code, lines
    assert "not graded again: 1 answer: part 'gpqa': redacted" == lines[0]
    assert "19 graded again, 1 could not be: all equal" in lines[-1]


@pytest.mark.parametrize(
    ("name", "change", "fault"),
    [
        ("gpqa.jsonl", {"right": False}, "gpqa.summary.json"),
        ("gpqa.jsonl", {"rule": "other"}, "gpqa.jsonl"),
        ("gpqa.jsonl", {"text": "C"}, "gpqa.jsonl: manifest: sha256: stored"),
        ("gpqa.jsonl", {"surplus": 1}, "gpqa.jsonl"),
    ],
)
def test_changed_answer_is_found(
    run: Path, name: str, change: dict[str, object], fault: str
) -> None:
    """By the manifest, by the count and by the grader."""
    bundle = bundle_of(run)
    first = runs.lines(bundle / name)[0]
    change = {"right": not first["right"]} if "right" in change else change
    set_in_line(bundle / name, first["id"], **change)
    lines, code = verify_bundle(bundle)
    assert 1 == code
    assert any(line.startswith(fault) for line in lines), lines
    assert " differ" in lines[-1]


def test_changed_contract_summary_and_file_list_are_found(run: Path) -> None:
    """Every file is in the manifest, and no other is there."""
    bundle = bundle_of(run)
    set_in_object(bundle / "gpqa.contract.json", conditions_sha256="0" * 64)
    set_in_object(bundle / "summary.json", label="other")
    (bundle / "more.txt").write_text("x")
    (bundle / "card.json").unlink()
    told = "\n".join(verify_bundle(bundle)[0])
    for part in (
        "more.txt: is not in the manifest",
        "card.json: is missing",
        "gpqa.contract.json: conditions_sha256: stored",
        "\nsummary.json: manifest: sha256: stored",
    ):
        assert part in told


def test_verdicts_of_another_form_are_a_difference(tmp_path: Path) -> None:
    """IFEval's figures are made of details."""
    run = runs.run_of(tmp_path, "job", "r" * 30, part="ifeval", list="sample")
    bundle = bundle_of(run)
    set_in_line(bundle / "ifeval.jsonl", 1, details=None)
    lines, code = verify_bundle(bundle)
    assert 1 == code
    assert any(
        "ifeval.jsonl: its verdicts are not of the form of this part" in line for line in lines
    )


def test_held_files_are_told_and_the_rest_is_checked(run: Path) -> None:
    """A bundle without the answers of a part, and one without its contract."""
    (run / "gpqa.jsonl").write_text("x\n")
    bundle = bundle_of(run)
    lines, code = verify_bundle(bundle)
    assert 0 == code
    assert "note: part 'gpqa': its answers are held back, nothing to count" in lines
    assert "note: summary.json: has parts that cannot be counted again here" in lines
    (bundle / "summary.json").unlink()
    (bundle / "gpqa.contract.json").unlink()
    assert 1 == verify_bundle(bundle)[1]


def test_other_grader_list_or_no_list_is_said(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be graded again, and why."""
    bundle = bundle_of(run)

    def changed(**fields: object) -> str:
        runs.conditions(run, "gpqa", **fields)
        return "\n".join(verify_bundle(bundle_of(run))[0])

    stored = json.loads((bundle / "gpqa.contract.json").read_bytes())["conditions"]
    assert "graded by letter/0, here is" in changed(grader="letter/0")
    assert "but the one at hand has" in changed(
        grader=stored["grader"], list=stored["list"] | {"sha256": "0" * 64}
    )
    assert "its own list is not in a bundle" in changed(
        list=stored["list"] | {"kind": "file", "id": "file:mine"}
    )


def test_missing_summary_is_a_missing_file(run: Path) -> None:
    """The count still runs."""
    bundle = bundle_of(run)
    (bundle / "gpqa.summary.json").unlink()
    told = "\n".join(verify_bundle(bundle)[0])
    assert "gpqa.summary.json: is missing" in told


def test_folder_without_its_manifest_is_no_bundle(run: Path, tmp_path: Path) -> None:
    """A run is none; a manifest of something else is none."""
    assert not is_bundle(run)
    with pytest.raises(RunFolderError, match="is no bundle"):
        verify_bundle(run)
    (tmp_path / "manifest.json").write_text("[]")
    assert not is_bundle(tmp_path)
    bundle = bundle_of(run)
    set_in_object(bundle / "manifest.json", files=[])
    assert 1 == verify_bundle(bundle)[1]
    set_in_object(bundle / "manifest.json", files={"card.json": None})
    assert 1 == verify_bundle(bundle)[1]
