"""Run folders and summary files -> the values that are compared. Reads, and decides nothing else.

A folder brings the contract, the summary and the answers of each part, which must fit together. A
summary file brings the same where they lie beside it under their own names, else counts alone.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from qualeval import __version__
from qualeval.card import Gate
from qualeval.comparable import ComparedRun, Outcome, PartOfRun, Question
from qualeval.compare import Options, compare
from qualeval.compare_table import in_format
from qualeval.contract import conditions_in
from qualeval.errors import OptionError, RunFolderError, did_you_mean
from qualeval.measured import cause_of
from qualeval.records import Answer, Contract, Json, RunSummary, Summary, key_of, sha256_of
from qualeval.runfolder import read_lines

FORMATS = ("table", "md", "json")
SomeModel = TypeVar("SomeModel", bound=BaseModel)


class _CardGate(BaseModel):
    """What is read of a run's card: its gate."""

    gate: Gate | None = None


def compare_command(
    base: list[Path],
    new: list[Path],
    *,
    gate: float | None,
    allow: list[str],
    unpaired: bool,
    format: str,
) -> tuple[str, int]:
    """The text of `qualeval compare` and its exit code: 0, or what the gate says (1, 3).

    Raises QualevalError with exit code 2 for runs that cannot be read or compared.
    """
    if format not in FORMATS:
        hint = did_you_mean(format, FORMATS)
        raise OptionError(f"--format: '{format}' is unknown{hint}; there are: {', '.join(FORMATS)}")
    if not base or not new:
        raise OptionError("give a base run and at least one new run to compare with it")
    for side in (base, new):
        twice = [path for path in side if [p.resolve() for p in side].count(path.resolve()) > 1]
        if twice:
            raise OptionError(f"{twice[0]}: is given twice; a run is one measurement")
    names = run_names([*base, *new])
    runs = [
        read_run(path, name, answers=not unpaired)
        for path, name in zip([*base, *new], names, strict=True)
    ]
    options = Options(allow=tuple(allow), unpaired=unpaired, gate=gate)
    result = compare(runs[: len(base)], runs[len(base) :], options)
    return in_format(result, format), result.exit_code


def run_names(paths: Sequence[Path]) -> list[str]:
    """A short name for each: the folder's, with the file's for a file; the path where it is not
    the only one.
    """
    short = [_short_name(path) for path in paths]
    places = {(name, path.resolve()) for name, path in zip(short, paths, strict=True)}
    taken = [name for name, _ in places]
    return [
        name if taken.count(name) == 1 else str(path)
        for name, path in zip(short, paths, strict=True)
    ]


def _short_name(path: Path) -> str:
    path = path.resolve()
    return path.name if path.is_dir() else f"{path.parent.name}/{path.name}"


def read_run(path: Path, name: str, *, answers: bool = True) -> ComparedRun:
    """The run at `path`: a run folder, `summary.json`, or `<part>.summary.json`.

    Without `answers` only counts are read. Raises RunFolderError when it is no run, or when its
    files do not fit together.
    """
    summaries = list(_summaries(path))
    folder = path if path.is_dir() else path.parent
    parts: dict[str, PartOfRun] = {}
    for place, summary in summaries:
        if summary.part in parts:
            raise RunFolderError(f"{place}: part '{summary.part}' is there twice")
        parts[summary.part] = _part(folder, place, summary, answers=answers)
    card = folder / "card.json"
    whole = any(part.sessions is not None for part in parts.values())
    gate = _read(card, _CardGate, "card").gate if whole and card.exists() else None
    return ComparedRun(
        name=name,
        label=summaries[0][1].label,
        model=summaries[0][1].model,
        parts=parts,
        margin_points=gate.margin_points if gate else None,
    )


def _summaries(path: Path) -> Iterator[tuple[Path, Summary]]:
    """Each summary and the file that holds it; at least one."""
    if path.is_dir():
        yield from _summaries_of_folder(path)
    elif not path.exists():
        raise RunFolderError(f"{path}: there is no such run folder or file")
    elif path.name.endswith(".summary.json"):
        yield path, _read(path, Summary, "summary")
    elif path.name == "summary.json":
        parts = _read(path, RunSummary, "summary").parts
        if not parts:
            raise RunFolderError(f"{path}: holds no part")
        yield from ((path, summary) for summary in parts.values())
    else:
        raise RunFolderError(
            f"{path}: is no run folder, and no summary.json or <part>.summary.json"
        )


def _summaries_of_folder(folder: Path) -> Iterator[tuple[Path, Summary]]:
    ends = (".contract.json", ".summary.json")
    names = {path.name.removesuffix(end) for end in ends for path in folder.glob(f"*{end}")}
    if not names and (folder / "summary.json").exists():
        yield from _summaries(folder / "summary.json")
        return
    if not names:
        raise RunFolderError(f"{folder}: holds no part of a run")
    for name in sorted(names):
        path = folder / f"{name}.summary.json"
        if not path.exists():
            raise RunFolderError(
                f"{folder}: part '{name}' was started and never finished (no {path.name}); the "
                f"command that ran it goes on, or `qualeval grade {folder}` counts what is there"
            )
        yield path, _read(path, Summary, "summary")


def _part(folder: Path, place: Path, summary: Summary, *, answers: bool) -> PartOfRun:
    contract = _contract(folder, place, summary)
    conditions = contract.conditions if contract else _told_by(summary)
    questions = None
    if contract and answers and summary.status == "ok":
        path = folder / f"{summary.part}.jsonl"
        questions = _questions(path, summary) if path.exists() else None
    marks = [summary.subtitle]
    if summary.limits:
        marks.append("not the published limits: " + ", ".join(summary.limits))
    return PartOfRun(
        name=summary.part,
        title=summary.title,
        subtitle="; ".join(marks),
        sample_list=summary.sample_list,
        incomplete=_incomplete(summary),
        n=summary.n,
        right=summary.right,
        cut_off=summary.cut_off,
        repeats=summary.repeats,
        beside=summary.beside,
        conditions=conditions,
        conditions_sha256=summary.conditions_sha256,
        sessions=contract.sessions if contract else None,
        questions=questions,
    )


def _incomplete(summary: Summary) -> str | None:
    if summary.status == "ok" and summary.answered == summary.n:
        return None
    return summary.incomplete_because or f"{summary.answered} of {summary.n} answered"


def _contract(folder: Path, place: Path, summary: Summary) -> Contract | None:
    """The contract that a summary belongs to; None where it lies alone. Raises RunFolderError."""
    path = folder / f"{summary.part}.contract.json"
    if place.name not in (f"{summary.part}.summary.json", "summary.json") or not path.exists():
        return None
    contract = _read(path, Contract, "contract")
    conditions_in(contract, str(path))
    if contract.conditions_sha256 != sha256_of(contract.conditions):
        raise RunFolderError(f"{path}: the conditions are not those that their sha256 was made of")
    if contract.conditions_sha256 != summary.conditions_sha256:
        raise RunFolderError(
            f"{place}: belongs to other conditions than {path.name} beside it; "
            f"`qualeval grade {folder}` makes the summary anew"
        )
    return contract


def _told_by(summary: Summary) -> Json:
    """The conditions that a summary repeats."""
    names = ("suite", "part", "sampling", "sampling_source", "seed", "repeats", "max_tokens")
    more = ("thinking", "thinking_object", "prompt_cache", "model", "limits")
    fields = summary.model_dump(mode="json", include={*names, *more})
    return {**fields, "list": {"id": summary.list}}


def _questions(path: Path, summary: Summary) -> dict[str, Question]:
    """The outcomes in an answer file, which must be those that the summary counted."""
    found: dict[str, tuple[str | int, dict[int, Outcome]]] = {}
    right = cut = 0
    for _, answer in read_lines(path, Answer):
        id, repeat = key_of(answer.id, answer.repeat)
        outcomes = found.setdefault(id, (answer.id, {}))[1]
        if repeat in outcomes or not 0 <= repeat < summary.repeats:
            raise RunFolderError(f"{path}: id {answer.id!r}, repeat {repeat}: is there twice")
        if answer.right and answer.cut_off:
            raise RunFolderError(f"{path}: id {answer.id!r}: a cut-off answer is marked right")
        cause = cause_of(answer.right, answer.cut_off, answer.rule)
        outcomes[repeat] = Outcome(answer.right, answer.cut_off, cause)
        right += answer.right
        cut += answer.cut_off
    counted = sum(len(outcomes) for _, outcomes in found.values())
    here, there = (counted, right, cut), (summary.n, summary.right, summary.cut_off)
    if here != there or any(len(outcomes) != summary.repeats for _, outcomes in found.values()):
        words = [
            "{:,} answers, {:,} right, {:,} cut off".format(*counts) for counts in (here, there)
        ]
        raise RunFolderError(
            f"{path}: holds {words[0]}, but its summary counts {words[1]}; "
            f"`qualeval verify {path.parent}` says what differs"
        )
    return {
        id: Question(own, tuple(outcomes[repeat] for repeat in range(summary.repeats)))
        for id, (own, outcomes) in found.items()
    }


def _read(path: Path, model: type[SomeModel], what: str) -> SomeModel:
    """A whole JSON file as a record. Raises RunFolderError saying what is wrong with it."""
    try:
        return model.model_validate(json.loads(path.read_bytes()))
    except ValidationError as error:
        raise RunFolderError(_misfit(path, what, error)) from None
    except (ValueError, RecursionError):
        raise RunFolderError(f"{path}: is not JSON, or only half of it") from None
    except OSError as error:
        raise RunFolderError(f"{path}: cannot be read: {error.strerror}") from None


def _misfit(path: Path, what: str, error: ValidationError) -> str:
    fault = error.errors(include_url=False)[0]
    field = ".".join(map(str, fault["loc"]))
    return (
        f"{path}: is no {what} of this version of qualeval ({__version__}): "
        f"field '{field}': {fault['msg']}"
    )
