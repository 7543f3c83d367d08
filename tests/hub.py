"""The project's stand-in for the Hugging Face hub: one data set repository on a loopback port.

A real socket server, standard library only, in threads of the test's own process. It serves what
`datasets` and `huggingface_hub` ask for when `HF_ENDPOINT` names it:

    with hub.serving(hub.Repository("owner/name", {"README.md": b"..", "a.csv": b".."})) as server:
        run_in_a_subprocess({"HF_ENDPOINT": server.url})
        assert server.files_sent() == [..]

As on the real hub a plain file comes with its ETag and commit, a big one (`.parquet`) by a redirect
with linked size and ETag; faults carry `X-Error-Code`. Facts and file names of a gated repository
are public, its files need a token: none is 401 and one without access 403, both `GatedRepo`; a
token that the hub never gave out is 401 everywhere.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"
"""The commit that a repository is at unless the test says another."""

Headers = Mapping[str, str]


@dataclass(frozen=True)
class Repository:
    """A data set repository at one commit. `tokens` may read it; `strangers` are known tokens
    whose owners have not accepted the terms. `stalls` names a file that never arrives.
    """

    id: str
    files: Mapping[str, bytes] = field(repr=False)  # a failing test must not print a question
    commit: str = COMMIT
    gated: bool = False
    tokens: frozenset[str] = frozenset()
    strangers: frozenset[str] = frozenset()
    stalls: str | None = None

    def tree(self, folder: str, *, recursive: bool) -> list[dict[str, Any]] | None:
        """The entries below a folder; None when there is no such folder."""
        prefix = f"{folder}/" if folder else ""
        entries: dict[str, dict[str, Any]] = {}
        for path in sorted(self.files):
            if not path.startswith(prefix):
                continue
            parts = path.removeprefix(prefix).split("/")
            for depth in range(1, len(parts)):
                name = prefix + "/".join(parts[:depth])
                if recursive or depth == 1:
                    entries[name] = {"type": "directory", "oid": _sha1(name.encode()), "path": name}
            if recursive or len(parts) == 1:
                entries[path] = self.entry(path)
        return list(entries.values()) or None

    def entry(self, path: str) -> dict[str, Any]:
        """What the tree says of one file."""
        data = self.files[path]
        facts = {"type": "file", "oid": _sha1(data), "size": len(data), "path": path}
        if is_linked(path):
            facts["lfs"] = {"oid": _sha256(data), "size": len(data), "pointerSize": 134}
        return facts


@dataclass
class Server:
    """A running stand-in: its address, and every request it got as `METHOD path`. `stalled` is
    set when the file that never arrives was asked for, `ending` when the stand-in ends.
    """

    url: str
    requests: list[str] = field(default_factory=list)
    stalled: threading.Event = field(default_factory=threading.Event)
    ending: threading.Event = field(default_factory=threading.Event)

    def files_sent(self) -> list[str]:
        """The files whose content was asked for, in order."""
        found = (
            re.fullmatch(r"GET /(?:datasets/.+/resolve/[^/]+|cdn)/(.+)", r) for r in self.requests
        )
        return [match[1] for match in found if match]


def is_linked(path: str) -> bool:
    """Whether the hub keeps a file apart and answers with a redirect."""
    return path.endswith(".parquet")


@contextmanager
def serving(repository: Repository) -> Iterator[Server]:
    """Serve one repository until the block ends; afterwards the port refuses connections."""
    httpd = _Httpd(repository)
    server = httpd.facts
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.ending.set()
        httpd.shutdown()
        thread.join()
        httpd.server_close()


class _Httpd(ThreadingHTTPServer):
    """The listening socket. Its end does not wait for connections that clients keep open."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, repository: Repository) -> None:
        super().__init__(("127.0.0.1", 0), _handler(repository))
        self.facts = Server(f"http://127.0.0.1:{self.server_port}")

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed is no fault of the stand-in."""


def _sha1(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _handler(repository: Repository) -> type[BaseHTTPRequestHandler]:
    """The handler class that serves `repository`."""

    class Handler(BaseHTTPRequestHandler):
        server: _Httpd
        protocol_version = "HTTP/1.1"
        timeout = 20  # a connection left open must not keep its thread for ever

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

        def do_GET(self) -> None:
            """Facts, tree or file."""
            self._serve()

        def do_HEAD(self) -> None:
            """The same without a body."""
            self._serve()

        def do_POST(self) -> None:
            """Facts of named paths."""
            self._serve()

        def _serve(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            address = urlsplit(self.path)
            path, query = unquote(address.path), parse_qs(address.query)
            self.server.facts.requests.append(f"{self.command} {path}")
            token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
            known = repository.tokens | repository.strangers
            if token and token not in known:
                self._fault(401, None, "Invalid credentials in Authorization header")
            elif path.startswith("/cdn/"):
                self._file(path.removeprefix("/cdn/"))
            elif found := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)(?:/(.*))?", path):
                self._api(found[1], found[2] or "", query, body)
            elif found := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path):
                self._resolve(found[1], found[2], found[3], token)
            else:
                self._fault(404, None, "Sorry, we can't find the page you are looking for.")

        def _api(self, id: str, rest: str, query: dict[str, list[str]], body: bytes) -> None:
            kind, _, rest = rest.partition("/")
            revision, _, folder = rest.partition("/")
            if id != repository.id:
                self._fault(401, "RepoNotFound", "Repository not found")
            elif kind and revision not in ("main", repository.commit):
                self._fault(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            elif kind in ("", "revision"):
                siblings = [{"rfilename": name} for name in sorted(repository.files)]
                self._json(
                    {
                        "_id": "65",
                        "id": repository.id,
                        "sha": repository.commit,
                        "private": False,
                        "gated": "auto" if repository.gated else False,
                        "disabled": False,
                        "tags": [],
                        "downloads": 0,
                        "likes": 0,
                        "lastModified": "2025-01-01T00:00:00.000Z",
                        "createdAt": "2025-01-01T00:00:00.000Z",
                        "siblings": siblings,
                    }
                )
            elif kind == "tree":
                recursive = query.get("recursive", ["false"])[0].lower() in ("true", "1")
                tree = repository.tree(folder, recursive=recursive)
                if tree is None:
                    self._fault(404, "EntryNotFound", f"{folder} does not exist")
                else:
                    self._json(tree)
            elif kind == "paths-info":
                names = _names(body, self.headers.get("Content-Type") or "")
                self._json([repository.entry(n) for n in names if n in repository.files])
            else:
                self._fault(404, None, "Not found")

        def _resolve(self, id: str, revision: str, name: str, token: str) -> None:
            if id != repository.id:
                self._fault(401, "RepoNotFound", "Repository not found")
            elif repository.gated and token not in repository.tokens:
                place = f"Access to dataset {id} is restricted."
                if token:
                    message = f"{place} Visit {id} to ask for access."
                    self._fault(403, "GatedRepo", message)
                else:
                    message = f"{place} You must have access to it and be authenticated."
                    self._fault(401, "GatedRepo", message)
            elif revision not in ("main", repository.commit):
                self._fault(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            elif name not in repository.files:
                self._fault(404, "EntryNotFound", "Entry not found")
            elif is_linked(name):
                data = repository.files[name]
                linked = {
                    "Location": f"http://{self.headers['Host']}/cdn/{name}",
                    "X-Linked-Size": str(len(data)),
                    "X-Linked-ETag": f'"{_sha256(data)}"',
                }
                self._answer(302, b"", linked)
            else:
                self._file(name)

        def _file(self, name: str) -> None:
            data = repository.files[name]
            if name == repository.stalls and self.command == "GET":
                self.server.facts.stalled.set()
                self.server.facts.ending.wait()
            headers = {"ETag": f'"{_sha1(data)}"', "Accept-Ranges": "bytes"}
            asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
            if not asked:
                self._answer(200, data, headers)
                return
            first, last = int(asked[1]), min(int(asked[2] or len(data) - 1), len(data) - 1)
            if first > last:
                self._answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
                return
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
            self._answer(206, data[first : last + 1], headers)

        def _json(self, value: object) -> None:
            self._answer(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

        def _fault(self, status: int, code: str | None, message: str) -> None:
            headers = {"X-Error-Message": message, "Content-Type": "application/json"}
            if code:
                headers["X-Error-Code"] = code
            self._answer(status, json.dumps({"error": message}).encode(), headers)

        def _answer(self, status: int, data: bytes, headers: Headers) -> None:
            self.send_response(status)
            self.send_header("X-Repo-Commit", repository.commit)
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

    return Handler


def _names(body: bytes, content_type: str) -> list[str]:
    """The paths that a paths-info request names, as a form or as JSON."""
    if "json" in content_type:
        return [str(name) for name in json.loads(body)["paths"]]
    return parse_qs(body.decode())["paths"]


# The two layouts that our sources have on the hub


def gpqa_files(tables: Mapping[str, bytes]) -> dict[str, bytes]:
    """A repository laid out as Idavidrein/gpqa: one csv file a configuration, named in README.md.

    `tables` maps a configuration (`gpqa_diamond`) to its file.
    """
    lines = ["---", "license: cc-by-4.0", "configs:"]
    for name in tables:
        lines += [f"- config_name: {name}", f"  data_files: {name}.csv"]
    readme = "\n".join([*lines, "---", "", "# GPQA", ""])
    files = {f"{name}.csv": data for name, data in tables.items()}
    return {".gitattributes": b"", "README.md": readme.encode(), **files}


def mmlupro_files(splits: Mapping[str, tuple[int, bytes]]) -> dict[str, bytes]:
    """A repository laid out as TIGER-Lab/MMLU-Pro: a Parquet file a split, declared in README.md.

    `splits` maps a split to its number of rows and its file.
    """
    columns = {"question_id": "int64", "question": "string", "options": None, "answer": "string"}
    columns |= {
        "answer_index": "int64",
        **dict.fromkeys(("cot_content", "category", "src"), "string"),
    }
    lines = ["---", "license: mit", "dataset_info:", "  features:"]
    for name, kind in columns.items():
        lines += [f"  - name: {name}", f"    dtype: {kind}" if kind else "    sequence: string"]
    lines.append("  splits:")
    for split, (count, data) in splits.items():
        lines += [f"  - name: {split}", f"    num_bytes: {len(data)}", f"    num_examples: {count}"]
    lines += ["configs:", "- config_name: default", "  data_files:"]
    for split in splits:
        lines += [f"  - split: {split}", f"    path: data/{split}-*"]
    readme = "\n".join([*lines, "---", "", "# MMLU-Pro", ""])
    files = {f"data/{name}-00000-of-00001.parquet": data for name, (_, data) in splits.items()}
    return {".gitattributes": b"", "README.md": readme.encode(), **files}
