"""Rows of a data set: from the hub, or from a file or folder that somebody brought.

Formats: JSON lines, CSV, Parquet, and a zip of those. Everything is read in memory; nothing is
unpacked to disk, no code of a data set is run.
"""

import csv
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import jsonlines

from qualeval.errors import ListError
from qualeval.masking import excerpt
from qualeval.tasks.base import Row, Source

SUFFIXES = (".jsonl", ".csv", ".parquet", ".zip")
MAX_UNPACKED_BYTES = 2 * 1024**3
Tables = Iterator[tuple[str, list[Row] | ListError]]


def rows_of_user_file(path: Path) -> Iterator[tuple[int, Row]]:
    """(line number, object) of a JSON-lines file. Raises ListError naming file and line."""
    try:
        with path.open("rb") as file:
            yield from _json_lines(file, str(path))
    except OSError as error:
        raise ListError(f"{path}: cannot be read: {error.strerror}") from None


def _json_lines(lines: Iterable[bytes], where: str) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(lines, start=1):
        row = row_of_line(line, number, where)
        if row is not None:
            yield number, row


def row_of_line(line: bytes, number: int, where: str) -> Row | None:
    """The object in one line; None for an empty one. Raises ListError naming file and line."""
    if not line.strip():
        return None
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        row = json.loads(text, parse_constant=_no_such_number)
    except UnicodeDecodeError:
        raise ListError(f"{where}:{number}: is not UTF-8") from None
    except (ValueError, RecursionError):
        raise ListError(f"{where}:{number}: is not JSON") from None
    if not isinstance(row, dict):
        raise ListError(f"{where}:{number}: is no JSON object")
    return row


def _no_such_number(word: str) -> object:
    raise ValueError(f"{word} is no number that JSON has")


def tables_below(path: Path, source: Source) -> Tables:
    """(name, rows) of every table in a file, a zip or a folder; an error for one that cannot be
    read, which does not hide the others. Raises ListError when there is no such file or folder.
    """
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    elif path.is_file():
        files = [path]
    else:
        raise ListError(f"{path}: there is no such file or folder")
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as error:
            yield str(file), ListError(f"{file}: cannot be read: {error.strerror}")
            continue
        yield from _tables(str(file), data, source)


def _tables(name: str, data: bytes, source: Source) -> Tables:
    suffix = Path(name).suffix.lower()
    try:
        if suffix == ".zip":
            yield from _tables_in_zip(name, data, source)
        elif suffix == ".jsonl":
            yield name, [row for _, row in _json_lines(data.split(b"\n"), name)]
        elif suffix == ".csv":
            yield name, list(csv.DictReader(io.StringIO(data.decode("utf-8-sig"), newline="")))
        elif suffix == ".parquet":
            yield name, _parquet(data)
        else:
            yield name, ListError(f"{name}: is none of {', '.join(SUFFIXES)}")
    except ListError as error:
        yield name, error
    except Exception as error:  # every reader has exceptions of its own for a damaged file
        yield name, ListError(f"{name}: cannot be read as {suffix}: {error}")


def _tables_in_zip(name: str, data: bytes, source: Source) -> Tables:
    password = (source.archive_password or "").encode()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        wanted = [i for i in archive.infolist() if Path(i.filename).suffix.lower() in SUFFIXES[:3]]
        if sum(info.file_size for info in wanted) > MAX_UNPACKED_BYTES:
            raise ListError(f"{name}: unpacks to more than 2 GiB")
        for info in wanted:
            inner = f"{name}/{info.filename}"
            try:
                with archive.open(info, pwd=password) as member:
                    # No more than it claims: one that lies about its size cannot fill the memory.
                    content = member.read(info.file_size + 1)
            except Exception as error:  # wrong password, damage, unknown compression
                yield inner, ListError(f"{inner}: cannot be unpacked: {error}")
                continue
            yield from _tables(inner, content, source)


def _parquet(data: bytes) -> list[Row]:
    import pyarrow.parquet  # 0.2 s, and only an import needs it

    rows: list[Row] = pyarrow.parquet.read_table(io.BytesIO(data)).to_pylist()
    return rows


def rows_of_hub(source: Source) -> tuple[list[Row], str | None]:
    """All rows of the data set on the hub, and the commit they came from.

    `HF_ENDPOINT` and `HF_TOKEN` are obeyed. Raises ListError that says how to get access.
    """
    import datasets  # 0.6 s, and only a fetch needs it
    import huggingface_hub

    datasets.disable_progress_bars()
    try:
        revision = huggingface_hub.HfApi().dataset_info(source.dataset, timeout=30).sha
        table: Any = datasets.load_dataset(
            source.dataset, source.config, split=source.split, revision=revision
        )
        return list(table), revision
    except Exception as error:  # hub, cache and parser each raise their own kinds
        raise ListError(_no_access(source, error, SUFFIXES)) from None


def files_of_hub(
    source: Source, pattern: str, suffixes: tuple[str, ...]
) -> tuple[list[Path], str | None]:
    """The files of the data set whose whole name is `pattern`, and the commit they came from. They
    are in the hub's own cache on disk, unread; no program of the data set is fetched or run.

    Raises ListError that says how to get access, or which formats (`suffixes`) can be imported.
    """
    import huggingface_hub

    try:
        api = huggingface_hub.HfApi()
        revision = api.dataset_info(source.dataset, timeout=30).sha
        there = api.list_repo_files(source.dataset, repo_type="dataset", revision=revision)
        found = [
            Path(
                huggingface_hub.hf_hub_download(
                    source.dataset, name, repo_type="dataset", revision=revision
                )
            )
            for name in sorted(there)
            if re.fullmatch(pattern, name)
        ]
    except Exception as error:  # hub, cache and disk each raise their own kinds
        raise ListError(_no_access(source, error, suffixes)) from None
    if not found:
        raise ListError(f"hub:{source.dataset}: has no file named {pattern} at {revision}")
    return found, revision


def _no_access(source: Source, error: Exception, suffixes: tuple[str, ...]) -> str:
    first_line = (excerpt(line) for line in str(error).splitlines() if line.strip())
    reason = next(first_line, type(error).__name__)
    message = f"list '{source.name}': cannot be fetched from the hub ({reason})\n"
    if source.gated:
        message += (
            f"{source.dataset} is gated: accept its terms at "
            f"https://huggingface.co/datasets/{source.dataset}, then set HF_TOKEN "
            "(or run `hf auth login`) and try again; "
        )
    return message + (
        "with a copy at hand: `qualeval lists import "
        f"{source.name} FILE_OR_FOLDER` ({', '.join(suffixes)}); "
        "to try things out without it: `--lists sample`"
    )


def write_jsonl(rows: list[Row]) -> bytes:
    """The rows as JSON lines."""
    out = io.StringIO()
    with jsonlines.Writer(out) as writer:
        writer.write_all(rows)
    return out.getvalue().encode("utf-8", "backslashreplace")
