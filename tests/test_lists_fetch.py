"""Official lists come from the hub once, with every row proved, or say what to do instead.

Every fetch runs in a fresh process against a local stand-in for the hub, because the libraries read
their environment when they are imported. A question text is printed nowhere, not even by a failure.
"""

import csv
import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from errno import ECONNREFUSED
from pathlib import Path
from typing import Any

import hub
import pytest

from qualeval.lists import make_pin, pin_of
from qualeval.pins import Lock, Pin
from qualeval.tasks import TASKS, gpqa

ROOT = Path(__file__).parents[1]
GPQA, MMLUPRO = "Idavidrein/gpqa", "TIGER-Lab/MMLU-Pro"
TOKEN, STRANGER = "hf_ofAReaderWhoMay0001", "hf_ofAReaderWhoMayNot02"

PROGRAM = """
import json, sys
from pathlib import Path
ask = json.load(sys.stdin)
from qualeval import lists
from qualeval.errors import ListError
from qualeval.tasks import TASKS
if ask["pins"]:
    pins = {part: lists.Pin.model_validate(pin) for part, pin in ask["pins"].items()}
    lists.pin_of = pins.__getitem__
try:
    found = lists.load_list(TASKS[ask["part"]], "official", Path())
    hashes = [item.sha256 for item in found.items]
    reply = {"ids": [item.id for item in found.items], "hashes": hashes, "sha256": found.sha256}
    reply |= {"list": found.id, "kind": found.kind, "origin": dict(found.origin)}
except ListError as error:
    reply = {"error": str(error)}
reply["imported"] = sorted({"datasets", "huggingface_hub"} & set(sys.modules))
Path(ask["reply"]).write_text(json.dumps(reply))
"""


@dataclass(frozen=True)
class Place:
    """A machine with empty caches that fetches from one hub. `pins` None: those of the package."""

    folder: Path
    pins: Mapping[str, Pin] | None

    @property
    def cache(self) -> Path:
        return self.folder / "qualeval" / "lists"

    def process(self, part: str, url: str, **environment: str) -> "subprocess.Popen[bytes]":
        kept = {
            name: value
            for name, value in os.environ.items()
            if "proxy" not in name.lower() and not name.startswith(("HF_", "HUGGING", "QUALEVAL"))
        }
        own = {
            "HOME": str(self.folder),
            "HF_HOME": str(self.folder / "hf"),
            "HF_HUB_CACHE": str(self.folder / "hf" / "hub"),
            "QUALEVAL_CACHE": str(self.folder / "qualeval"),
            "HF_ENDPOINT": url,
        }
        pins = {name: pin.model_dump(mode="json") for name, pin in (self.pins or {}).items()}
        ask = {"part": part, "pins": pins, "reply": str(self.folder / "reply.json")}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=kept | own | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin
        process.stdin.write(json.dumps(ask).encode())
        process.stdin.close()
        process.stdin = None
        return process

    def load(self, part: str, url: str, **environment: str) -> dict[str, Any]:
        """What the program says; beside that it prints nothing on standard output."""
        with self.process(part, url, **environment) as process:
            out, err = process.communicate(timeout=120)
        assert (process.returncode, out, b"Traceback" in err) == (0, b"", False)
        reply: dict[str, Any] = json.loads((self.folder / "reply.json").read_bytes())
        return reply


@dataclass(frozen=True)
class Hidden:
    """Data of the benchmarks: pytest prints the arguments of a failing test, and this is one."""

    value: Any = field(repr=False)


def made_up_gpqa() -> list[dict[str, str]]:
    """36 rows whose text is hard on a csv reader."""
    domains = ("Biology", "Chemistry", "Physics")
    oddities = (
        "  space ",
        "a,b",
        'a "b" c',
        "two\nlines",
        "tab\t",
        "\u2028 \u0085 é 𝛼",
        "4  J",
        "1.50",
    )
    return [
        {
            "Canary String": "made up",
            "Question": f"Question {n}: {oddities[n % 8]}?",
            "Correct Answer": f"{oddities[n % 8]}",
            "Incorrect Answer 1": f"{oddities[(n + 1) % 8]}",
            "Incorrect Answer 2": f"{n}" if n % 2 else f"{n} or so",
            "Incorrect Answer 3": f"-{n}.0" if n % 7 else "−",
            "Record ID": f"made-up-{n:02d}",
            "High-level domain": domains[n % 3],
            "Remark": "" if n % 5 else "None",
        }
        for n in range(36)
    ]


def made_up_mmlupro() -> list[dict[str, Any]]:
    """30 rows with 3 to 10 options."""
    return [
        {
            "question_id": 100 + n,
            "question": f" Question {n}\u2028with \r\n odd ends ",
            "options": [f" option {i}" for i in range(3 + n % 8)],
            "answer": "ABC"[n % 3],
            "answer_index": n % 3,
            "cot_content": "",
            "category": ("law", "math")[n % 2],
            "src": f"made-up-{n}",
        }
        for n in range(30)
    ]


def csv_of(rows: Sequence[Mapping[str, str]]) -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def parquet_of(rows: Sequence[Mapping[str, Any]]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), out)
    return out.getvalue()


def gpqa_repository(diamond: bytes, **settings: Any) -> hub.Repository:
    """The gated repository; only the diamond table is the right one."""
    other = csv_of([row | {"Correct Answer": "another"} for row in made_up_gpqa()])
    tables = {"gpqa_extended": other, "gpqa_main": other, "gpqa_diamond": diamond}
    files = hub.gpqa_files({**tables, "gpqa_experts": b"Name,Field\nnobody,none\n"})
    known, strangers = frozenset({TOKEN}), frozenset({STRANGER})
    return hub.Repository(GPQA, files, gated=True, tokens=known, strangers=strangers, **settings)


def mmlupro_repository(rows: Sequence[Mapping[str, Any]]) -> hub.Repository:
    examples = [dict(row, cot_content="made up") for row in made_up_mmlupro()[:5]]
    splits = {"test": rows, "validation": examples}
    files = {name: (len(table), parquet_of(table)) for name, table in splits.items()}
    return hub.Repository(MMLUPRO, hub.mmlupro_files(files))


@contextmanager
def nobody_listening() -> Iterator[str]:
    """An address that refuses connections."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


def hashes_of(pin: Pin | Lock) -> list[str]:
    return [row.sha256 for row in pin.rows]


@pytest.fixture(scope="module")
def gpqa_pins() -> Mapping[str, Pin]:
    return {part: make_pin(TASKS[part], made_up_gpqa(), None) for part in ("gpqa", "think")}


@pytest.fixture
def place(tmp_path: Path, gpqa_pins: Mapping[str, Pin]) -> Place:
    return Place(tmp_path, gpqa_pins)


# The way to the list


def test_fetched_list_is_the_pinned_one_and_is_fetched_once(place: Place) -> None:
    """Text arrives unchanged by the csv reader; the next load, of either part, asks nobody."""
    assert place.pins
    with hub.serving(gpqa_repository(csv_of(made_up_gpqa()))) as server:
        fetched = place.load("gpqa", server.url, HF_TOKEN=TOKEN)
    asked = list(server.requests)
    again = place.load("gpqa", server.url)
    think = place.load("think", server.url)

    pin = place.pins["gpqa"]
    assert (hashes_of(pin), pin.sha256, pin.list, "official") == (
        fetched["hashes"],
        fetched["sha256"],
        fetched["list"],
        fetched["kind"],
    )
    assert server.files_sent() == ["README.md", "gpqa_diamond.csv"]
    assert asked == server.requests
    assert fetched | {"imported": []} == again
    assert hashes_of(place.pins["think"]) == think["hashes"]
    assert sorted(p.name for p in place.cache.iterdir()) == ["gpqa.jsonl", "gpqa.origin.json"]


def test_origin_names_the_revision_that_was_fetched(place: Place) -> None:
    """The commit is recorded, not needed: row hashes protect the list. A saved token is used."""
    (place.folder / "hf").mkdir()
    (place.folder / "hf" / "token").write_text(TOKEN)
    commit = "c0ffee" * 6 + "abcd"
    with hub.serving(gpqa_repository(csv_of(made_up_gpqa()), commit=commit)) as server:
        reply = place.load("think", server.url)
    origin = json.loads((place.cache / "gpqa.origin.json").read_bytes())
    assert origin == reply["origin"]
    assert {"dataset": GPQA, "from": "hub", "revision": commit} == {
        name: value for name, value in origin.items() if name != "taken"
    }


def test_cache_keeps_the_columns_that_count_and_no_other(tmp_path: Path) -> None:
    """Parquet text arrives unchanged, the validation split is left alone."""
    pin = make_pin(TASKS["mmlupro"], made_up_mmlupro(), None)
    place = Place(tmp_path, {"mmlupro": pin})
    with hub.serving(mmlupro_repository(made_up_mmlupro())) as server:
        reply = place.load("mmlupro", server.url)
    assert hashes_of(pin) == reply["hashes"]
    kept = [json.loads(x) for x in (place.cache / "mmlupro.jsonl").read_bytes().split(b"\n")[:-1]]
    assert [{n: v for n, v in row.items() if n != "cot_content"} for row in made_up_mmlupro()] == (
        sorted(kept, key=lambda row: row["question_id"])
    )


# No access


WITHOUT_ACCESS = {
    "no token": ({}, "is a gated dataset on the Hub. You must be authenticated to access it."),
    "terms not accepted": (
        {"HF_TOKEN": STRANGER},
        f"Visit the dataset page at https://huggingface.co/datasets/{GPQA} to ask for access.",
    ),
    "token unknown": ({"HF_TOKEN": "hf_ofNobodyAtAll000000003"}, "401 Unauthorized"),
}


@pytest.mark.parametrize("case", WITHOUT_ACCESS)
def test_gated_list_without_access_says_what_to_do(place: Place, case: str) -> None:
    """gpq-05: it is no 'does not exist'. Terms, token, import and sample list are all named."""
    environment, cause = WITHOUT_ACCESS[case]
    with hub.serving(gpqa_repository(csv_of(made_up_gpqa()))) as server:
        message = place.load("gpqa", server.url, **environment)["error"]
    first, *rest = message.split("\n")
    assert first.startswith("list 'gpqa': cannot be fetched from the hub (")
    assert cause in first
    assert [
        f"{GPQA} is gated: accept its terms at https://huggingface.co/datasets/{GPQA}, then set "
        "HF_TOKEN (or run `hf auth login`) and try again; with a copy at hand: `qualeval lists "
        "import gpqa FILE_OR_FOLDER` (.jsonl, .csv, .parquet, .zip); to try things out without it: "
        "`--lists sample`"
    ] == rest
    assert server.files_sent() == []
    assert not place.cache.exists()


def test_unreachable_hub_is_said_in_one_breath_with_the_way_round(tmp_path: Path) -> None:
    place = Place(tmp_path, None)
    with nobody_listening() as url:
        message = place.load("mmlupro", url)["error"]
    assert message == (
        f"list 'mmlupro': cannot be fetched from the hub ([Errno {ECONNREFUSED}] Connection "
        "refused)\n"
        "with a copy at hand: `qualeval lists import mmlupro FILE_OR_FOLDER` (.jsonl, .csv, "
        ".parquet, .zip); to try things out without it: `--lists sample`"
    )
    assert not place.cache.exists()


def test_password_in_the_address_of_a_mirror_is_not_repeated(place: Place) -> None:
    with hub.serving(gpqa_repository(csv_of(made_up_gpqa()))) as server:
        message = place.load("gpqa", server.url.replace("//", "//me:open-sesame@"))["error"]
    assert message.startswith("list 'gpqa': cannot be fetched from the hub (")
    assert "open-sesame" not in message


# Not the pinned rows, not the whole of them


def test_changed_row_on_the_hub_is_refused_and_nothing_is_kept(place: Place) -> None:
    rows = made_up_gpqa()
    rows[7]["Question"] += " "
    with hub.serving(gpqa_repository(csv_of(rows))) as server:
        message = place.load("gpqa", server.url, HF_TOKEN=TOKEN)["error"]
    assert (
        f"hub:{GPQA}: row made-up-07 differs from the pinned one of list 'qualeval/gpqa-36/v1'; "
        "this is another revision, and its results would not be comparable"
    ) == message
    assert not place.cache.exists()


def test_fetch_killed_half_way_leaves_no_list_and_the_next_one_works(place: Place) -> None:
    diamond = csv_of(made_up_gpqa())
    with hub.serving(gpqa_repository(diamond, stalls="gpqa_diamond.csv")) as server:
        with place.process("gpqa", server.url, HF_TOKEN=TOKEN) as process:
            asked = server.stalled.wait(60)
            process.kill()
            process.communicate(timeout=60)
        assert (asked, process.returncode) == (True, -signal.SIGKILL)
    assert not place.cache.exists()
    assert place.pins
    with hub.serving(gpqa_repository(diamond)) as server:
        reply = place.load("gpqa", server.url, HF_TOKEN=TOKEN)
    assert hashes_of(place.pins["gpqa"]) == reply["hashes"]


# The real rows


def reference_data(name: str) -> Path:
    folder = Path(os.environ.get("QUALEVAL_REFERENCE_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / name).is_file():
        pytest.skip(f"no reference data: {name} (set QUALEVAL_REFERENCE_DATA to its folder)")
    return folder / name


@pytest.fixture
def real_gpqa() -> Hidden:
    assert gpqa.SOURCE.archive_password
    with zipfile.ZipFile(reference_data("gpqa/dataset.zip")) as archive:
        password = gpqa.SOURCE.archive_password.encode()
        return Hidden(archive.read("dataset/gpqa_diamond.csv", password))


@pytest.fixture
def real_mmlupro() -> Hidden:
    lines = reference_data("mmlupro/questions.jsonl").read_bytes().split(b"\n")
    return Hidden([json.loads(line) | {"cot_content": ""} for line in lines if line])


def test_real_gpqa_read_as_csv_keeps_every_pinned_byte(tmp_path: Path, real_gpqa: Hidden) -> None:
    try:
        with hub.serving(gpqa_repository(real_gpqa.value)) as server:
            reply = Place(tmp_path, None).load("gpqa", server.url, HF_TOKEN=TOKEN)
    finally:
        for folder in ("hf", "qualeval"):  # no text of a gated list stays behind
            shutil.rmtree(tmp_path / folder, ignore_errors=True)
    assert hashes_of(pin_of("gpqa")) == reply.get("hashes"), reply.get("error")
    assert [row.id for row in pin_of("gpqa").rows] == reply["ids"]


def test_real_mmlupro_read_as_parquet_keeps_every_pinned_byte(
    tmp_path: Path, real_mmlupro: Hidden
) -> None:
    with hub.serving(mmlupro_repository(real_mmlupro.value)) as server:
        reply = Place(tmp_path, None).load("mmlupro", server.url)
    assert hashes_of(pin_of("mmlupro")) == reply.get("hashes"), reply.get("error")
    assert [row.id for row in pin_of("mmlupro").rows] == reply["ids"]
