"""Run folders and pages for the tests of the report.

run = hostile_run(tmp_path)          # letters, replies that would do harm in a careless page
page = report(run)                   # its page, as text
index = block(page, "index")         # a data block of it, decoded
"""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from compare_folders import Made
from publish_runs import card, count

from qualeval.records import to_json
from qualeval.report import report_command

Json = dict[str, Any]

HOSTILE = (
    "</script><script>window.__pwned=1</script>",
    "<img src=x onerror='window.__pwned=2'><svg onload='window.__pwned=3'>",
    "<!--<script>",
    "]]>--><style>body{display:none}</style>{{ 7 * 7 }}{% raw %}",
    "javascript:window.__pwned=4 &lt;b&gt; &#x3c;",
    "line\u2028separator\u2029 \u202eevil txt\u202c \u2066isolate\u2069 zero\u0000one\u001b[31m",
    "half \ud83d of a pair, \udc00 another, whole \U0001f600",
    "<iframe srcdoc='<script>parent.__pwned=5</script>'></iframe><a href='https://e.example/'>x</a>",
)
"""Replies that a page must show and not obey."""


def set_texts(run: Path, texts: dict[int, Json], part: str = "mmlupro") -> None:
    """Give answers other fields, by id, in the raw file as in the graded one."""
    for name in (f"{part}.gen.jsonl", f"{part}.jsonl"):
        path = run / name
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            line.update({k: v for k, v in texts.get(line["id"], {}).items() if k in line})
        path.write_text("".join(to_json(line) + "\n" for line in lines), encoding="utf-8")
    count(run, part)


def hostile_run(folder: Path) -> Path:
    """A run whose replies, label, notes and setup are all hostile."""
    answers = "rrwcrwnw" + "r" * (len(HOSTILE) - 8) + "w"
    setup: Json = {"hardware": HOSTILE[0], "start_command": HOSTILE[1]}
    setup |= {"credits": [HOSTILE[2]]}
    setup |= {"deviations": [{"what": HOSTILE[1], "here": HOSTILE[3]}]}
    run = Made(folder).run("hostile", answers, model=HOSTILE[0], setup=setup)
    card(run, label=HOSTILE[1], notes=HOSTILE[0] + "\n" + HOSTILE[5])
    texts: dict[int, Json] = {
        n: {"text": t, "reason": t, "rule": t, "details": None} for n, t in enumerate(HOSTILE)
    }
    texts[len(HOSTILE)] = {"text": "x" * 1_000_000, "reasoning": HOSTILE[0], "details": None}
    set_texts(run, texts)
    return run


def report(run: Path, new: Path | None = None, *, with_prompts: bool = False) -> str:
    """The page as text, written to its usual place."""
    lines, code = report_command(run, new, None, with_prompts=with_prompts)
    assert code == 0
    written = re.fullmatch(r"wrote (.+\.html): [\d,]+ answers, [\d.]+ MB", lines[0])
    assert written
    return Path(written[1]).read_text(encoding="utf-8")


class Parsed(HTMLParser):
    """Tags with their attributes, text that is seen, and what stands in script and style."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.seen: list[str] = []
        self.raw: list[tuple[dict[str, str | None], str]] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag
        if tag in ("script", "style"):
            self.raw.append(({**dict(attrs), "tag": tag}, ""))

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            attrs, text = self.raw[-1]
            self.raw[-1] = (attrs, text + data)
        else:
            self.seen.append(data)

    @property
    def words(self) -> str:
        """All text that is seen, spaces folded."""
        return " ".join(" ".join(self.seen).split())


def blocks(page: str, name: str) -> list[Any]:
    """The data blocks of a page with this id or class, decoded."""
    return [
        json.loads(text)
        for attrs, text in Parsed(page).raw
        if attrs.get("type") == "application/json" and name in (attrs.get("id"), attrs.get("class"))
    ]


def index(page: str) -> Json:
    """What the page's list is made of."""
    (found,) = blocks(page, "index")
    assert isinstance(found, dict)
    return found


def records(page: str) -> list[list[Json]]:
    """The sides of every row, in the order of the index."""
    return [record for block in blocks(page, "records") for record in block]
