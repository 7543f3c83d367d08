"""What a server says of itself: read where it is told, unknown where it is not, never a crash."""

import json
from dataclasses import dataclass
from typing import Any

import anyio
import pytest

from qualeval.card import Dialect
from qualeval.errors import CardError, RequestError
from qualeval.server_facts import ServerFacts, count_prompt, facts_of, served_name


@dataclass
class FakeClient:
    """A client whose server has these pages and no other."""

    pages: dict[str, Any]
    base_url: str = "http://127.0.0.1:9/v1"

    async def ask(self, method: str, path: str, body: Any = None, seconds: float = 10) -> str:
        if path not in self.pages:
            raise RequestError("http_404", "HTTP 404", retry=False)
        page = self.pages[path]
        return page if isinstance(page, str) else json.dumps(page)


def facts(dialect: Dialect, model: str = "m", **pages: Any) -> ServerFacts:
    models = {"data": [{"id": "m", "max_model_len": 4096}]}
    there = {"/v1/models": models} | {f"/{name.replace('__', '/')}": p for name, p in pages.items()}

    async def main() -> ServerFacts:
        return await facts_of(FakeClient(there), dialect, model)  # type: ignore[arg-type]

    return anyio.run(main)


@pytest.mark.parametrize("dialect", ["vllm", "sglang", "llama.cpp", "openai"])
def test_server_that_only_lists_its_models_leaves_the_rest_unknown(dialect: Dialect) -> None:
    """A missing page is no zero."""
    found = facts(dialect)
    assert (("m",), 4096, "server: /v1/models") == (
        *(found.models, found.context_tokens, found.context_source),
    )
    unknown = (found.engine_version, found.slots, found.process_started, found.server_defaults)
    assert (None,) * 4 == unknown


def test_vllm_tells_version_slots_and_start() -> None:
    """From /version and /metrics."""
    metrics = 'vllm:x{max_num_seqs="16"} 1\nprocess_start_time_seconds{a="b"} 1.7e9\n'
    found = facts("vllm", version={"version": "0.11"}, metrics=metrics)
    assert ("vLLM 0.11", 16, "2023-11-14T22:13:20Z") == (
        *(found.engine_version, found.slots, found.process_started),
    )


@pytest.mark.parametrize("page", ["get_server_info", "server_info"])
def test_sglang_tells_of_itself_under_either_name(page: str) -> None:
    """The path was renamed."""
    info = {"version": "0.5", "max_running_requests": 32, "context_length": 8192}
    found = facts("sglang", "m", **{page: info})
    assert ("SGLang 0.5", 32, 8192) == (found.engine_version, found.slots, found.context_tokens)
    assert f"server: /{page}" == found.slots_source == found.context_source


def test_llama_cpp_tells_the_context_of_one_slot_and_its_sampling_defaults() -> None:
    """net-09: what one request may use, not the whole context."""
    settings = {"n_ctx": 2048, "params": {"temperature": 0.8, "top_k": 40, "chat_format": "x"}}
    props = {
        "build_info": "b1",
        "total_slots": 4,
        "chat_template": "t",
        "default_generation_settings": settings,
    }
    found = facts("llama.cpp", props=props)
    assert ("llama.cpp b1", 4, 2048) == (found.engine_version, found.slots, found.context_tokens)
    assert {"temperature": 0.8, "top_k": 40} == found.server_defaults
    assert found.chat_template_sha256 is not None


def test_llama_cpp_slots_are_counted_where_props_do_not_tell() -> None:
    """An older server."""
    assert 3 == facts("llama.cpp", slots=[{}, {}, {}]).slots


@pytest.mark.parametrize("number", ["1e99", "1.2.3", "e", "9" * 30])
def test_start_time_that_is_no_moment_is_not_known(number: str) -> None:
    """Whatever a metrics page says."""
    found = facts("vllm", metrics=f"process_start_time_seconds {number}\n")
    assert found.process_started is None


@pytest.mark.parametrize("page", ["", "nonsense", "[]", "7", {"data": 7}, {"data": [7]}, {}])
def test_list_of_models_that_is_none_is_empty(page: Any) -> None:
    """Then no model is served, which stops a run with a clear word."""
    assert () == facts("openai", **{"v1__models": page}).models


@pytest.mark.parametrize("model", ["org/m-7b", "m-7b", "models/m-7b.gguf", "/x/models/m-7b.gguf"])
def test_model_may_be_named_by_alias_or_end_of_its_path(model: str) -> None:
    """DESIGN 6: the model named in the card is served, or an alias or path of it."""
    listed = {"data": [{"id": "/x/models/m-7b.gguf", "aliases": ["org/m-7b"]}]}
    found = facts("llama.cpp", model, **{"v1__models": listed})
    assert served_name(model, found) in ("/x/models/m-7b.gguf", "org/m-7b")


def test_model_that_is_not_served_is_refused_with_those_that_are() -> None:
    """The nearest one is told."""
    with pytest.raises(CardError) as caught:
        served_name("n", facts("openai", v1__models={"data": [{"id": "m-large"}]}))
    assert "server.model: 'n' is not served at http://127.0.0.1:9/v1; it lists: m-large" == str(
        caught.value
    )


@pytest.mark.parametrize(
    ("dialect", "pages", "expected"),
    [
        ("vllm", {"/tokenize": {"count": 7}}, 7),
        ("vllm", {"/tokenize": {"count": "7"}}, None),
        ("vllm", {}, None),
        ("llama.cpp", {"/apply-template": {"prompt": "x"}, "/tokenize": {"tokens": [1, 2]}}, 2),
        ("llama.cpp", {"/apply-template": {"prompt": "x"}, "/tokenize": {}}, None),
        ("llama.cpp", {}, None),
        ("openai", {"/tokenize": {"count": 7}}, None),
    ],
)
def test_prompt_is_counted_by_servers_that_can(
    dialect: Dialect, pages: dict[str, Any], expected: int | None
) -> None:
    """None where the server cannot: an estimate is taken then."""

    async def main() -> int | None:
        return await count_prompt(FakeClient(pages), dialect, "m", ({"content": "x"},))  # type: ignore[arg-type]

    assert expected == anyio.run(main)
