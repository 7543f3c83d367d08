"""What the test server says: options, script, chat replies with faults, pages of each dialect.

Everything here is pure: values in, bytes out. `model_server` decides when the bytes leave.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, NamedTuple

Json = dict[str, Any]
"""A JSON object, as `json.loads` gives it."""

DIALECTS = ("vllm", "sglang", "llama.cpp", "openai")
FAULTS = (
    *("reset", "hang", "garbage", "html", "error_200", "bad_utf8", "partial_lines"),
    *("no_choices", "null_choices", "empty_message", "null_content", "done_without_finish"),
    *("cut_stream", "stall_stream", "error_event", "cut_body", "slow_body"),
)
REASONING_FIELDS = ("reasoning", "reasoning_content", "tags", "closing_tag")
AS_BODY = {"cut_stream": "cut_body", "stall_stream": "slow_body", "error_event": "error_200"}
AS_STREAM = {"cut_body": "cut_stream"}
"""A fault of a stream is the nearest one of a body where no stream is asked for, and back."""

ITEM = re.compile(r"\[\[item:([^\]]+)\]\]")
OPTION = re.compile(r"^[ \t]*([A-Z])\. ", re.MULTILINE)
BAD_BYTE = "\x1aBAD"
"""Stands in a text for a byte that is not UTF-8 until the text is encoded."""

ENCODER = json.JSONEncoder(ensure_ascii=False)

TOKEN_UNITS: dict[str, Callable[[str], int]] = {
    "chars4": lambda text: (len(text) + 3) // 4,
    "chars": len,
    "words": lambda text: len(text.split()),
}


# ------------------------------------------------------------------ options and script


@dataclass(frozen=True, slots=True)
class Step:
    """What one attempt at one item gets. What is not set is as a healthy server would do it."""

    text: str | None = None
    """Default: a letter by hash among the options of the prompt, else "OK"."""
    reasoning: str | None = None
    """Sent whatever the thinking switch says."""
    reasoning_field: str | None = None
    finish_reason: str | None = "default"
    """null and any word are sent as they are; "absent" leaves the key out."""
    completion_tokens: int | None = None
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    service_seconds: float | None = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    """Sent as it is in place of the reply; characters up to U+00FF are one byte each."""
    fault: str | None = None
    framing: Literal["chunked", "close"] = "chunked"
    """How a stream is delimited: with "close" an HTTP client cannot see that it was cut."""
    pieces: int = 3
    """Events that a streamed text is cut into, spread evenly over the service time."""

    def __post_init__(self) -> None:
        _check("fault", self.fault, (None, *FAULTS))
        _check("reasoning_field", self.reasoning_field, (None, *REASONING_FIELDS))
        _check("framing", self.framing, ("chunked", "close"))


@dataclass(frozen=True, slots=True)
class Think:
    """A model that can think: the switch in chat_template_kwargs decides, else `default`."""

    default: bool = True
    reasoning: str = "Let me think about this."
    field: str = "reasoning_content"

    def __post_init__(self) -> None:
        _check("think.field", self.field, REASONING_FIELDS)


class Script:
    """Steps by item. Step k answers the k-th attempt at its item, the last one repeats."""

    def __init__(self, raw: Json | None) -> None:
        raw = raw or {}
        if unknown := set(raw) - {"default", "items"}:
            raise ValueError(f"script: unknown keys {sorted(unknown)}; expected default, items")
        self._default = _steps(raw.get("default", {}))
        self._items: dict[str, list[Step]] = {
            key: _steps(steps) for key, steps in raw.get("items", {}).items()
        }

    def item_of(self, text: str) -> str:
        """The id in `[[item:ID]]`, else the first key that the text holds, else its hash."""
        if found := ITEM.search(text):
            return found[1]
        for key in self._items:
            if key in text:
                return key
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def step(self, item: str, use: int) -> Step:
        """The step of use number `use`, counted from 0."""
        steps = self._items.get(item, self._default)
        return steps[min(use, len(steps) - 1)]


@dataclass(slots=True)
class Options:
    """One server. Unknown names are errors, so that a typing error in a test is seen."""

    slots: int = 4
    queue_limit: int | None = None
    """Requests that may wait for a slot; one more gets 429."""
    retry_after: str = "1"
    """The header value of that 429."""
    dialect: str = "vllm"
    model: str = "test-model"
    aliases: Sequence[str] = ()
    model_path: str = "/models/test-model"
    require_model: bool = False
    context: int = 65536
    """Tokens of one slot: max_model_len, n_ctx. A request that does not fit gets 400."""
    enforce_context: bool = True
    token_unit: str = "chars4"
    template_tokens: int = 0
    """Added to the tokens of a chat prompt, as a chat template would."""
    version: str = "0.11.2"
    api_key: str | None = None
    service: float | Json = 0.0
    """Seconds, or {"mean", "sigma", "seed", "by": "order" | "item"}: lognormal by item."""
    script: Json | None = None
    record_bodies: bool = True
    loading_seconds: float = 0.0
    loading_requests: int = 0
    down: Json | None = None
    """{"after": K answers, "seconds": S or null for ever}."""
    reject_fields: Sequence[str] = ()
    ignore_max_tokens: bool = False
    think: Json | None = None
    cached_tokens: int | None = None
    """For every step that does not say; null: not reported."""
    port: int = 0

    def __post_init__(self) -> None:
        _check("dialect", self.dialect, DIALECTS)
        _check("token_unit", self.token_unit, tuple(TOKEN_UNITS))
        Script(self.script)
        Think(**(self.think or {}))
        if isinstance(self.service, dict):
            _check("service.by", self.service.get("by", "order"), ("order", "item"))
            if wrong := (set(self.service) - {"by"}) ^ {"mean", "sigma", "seed"}:
                raise ValueError(f"service: missing or unknown {sorted(wrong)}")


def _check(name: str, value: object, allowed: Sequence[object]) -> None:
    if value not in allowed:
        raise ValueError(f"{name}: {value!r} is not one of {', '.join(map(str, allowed))}")


def _steps(raw: Json | Sequence[Json]) -> list[Step]:
    steps = [Step(**step) for step in ([raw] if isinstance(raw, dict) else raw)]
    if not steps:
        raise ValueError("script: an item needs at least one step")
    return steps


# ------------------------------------------------------------------ one chat request and its reply


class Ask(NamedTuple):
    """A chat request, as far as the reply depends on it."""

    text: str
    model: str
    stream: bool
    usage_in_stream: bool
    max_tokens: int | None
    thinking: bool | None
    """The switch of the request; None when it is not there."""


class Wire(NamedTuple):
    """A reply as bytes. A part leaves at its share of the service time; then `after` happens."""

    status: int | None
    parts: list[tuple[float, bytes]]
    after: Literal["keep", "close", "reset", "hang"] = "keep"


class Reply(NamedTuple):
    """What the model said, before a fault spoils it."""

    text: str | None
    reasoning: str | None
    reasoning_field: str
    finish_reason: str | None
    usage: Json


def ask_of(body: Json) -> Ask:
    """Read a parsed request body; ValueError says what a server would refuse."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise ValueError("messages: a list with at least one message is needed")
    text = ""
    for message in messages:
        if message.get("role") == "user":
            content = message.get("content")
            text = content if isinstance(content, str) else "".join(p["text"] for p in content)
    limit = body.get("max_tokens", body.get("max_completion_tokens"))
    if limit is not None and not isinstance(limit, int):
        raise ValueError(f"max_tokens: {limit!r} is no integer")
    template = body.get("chat_template_kwargs") or {}
    return Ask(
        text,
        str(body.get("model", "")),
        bool(body.get("stream")),
        bool((body.get("stream_options") or {}).get("include_usage")),
        limit,
        template.get("enable_thinking", template.get("thinking")),
    )


def default_text(prompt: str) -> str:
    """The same letter for the same prompt, from the options it shows (`A. text`); else "OK"."""
    letters = sorted(set(OPTION.findall(prompt)))
    if not letters:
        return "OK"
    digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).digest()
    return str(letters[int.from_bytes(digest[:8], "big") % len(letters)])


def compose(options: Options, step: Step, ask: Ask) -> Reply:
    """The reply of a healthy server: cut at max_tokens, counted, reasoning in its place."""
    think = Think(**options.think) if options.think is not None else None
    text: str | None = default_text(ask.text) if step.text is None else step.text
    reasoning = step.reasoning
    if reasoning is None and think and (think.default if ask.thinking is None else ask.thinking):
        reasoning = think.reasoning
    place = step.reasoning_field or (think.field if think else "reasoning_content")
    if step.fault == "partial_lines" and step.text is None:
        text = f"{text}\u2028\u0085"
    elif step.fault == "bad_utf8":
        text = f"{text} {BAD_BYTE}"
    finish, spent = step.finish_reason, step.completion_tokens
    if finish == "default" and spent is None and not options.ignore_max_tokens:
        text, reasoning, finish, spent = _cut(options.token_unit, text, reasoning, ask.max_tokens)
    elif finish == "default":
        finish = "stop"
    if spent is None:
        count = TOKEN_UNITS[options.token_unit]
        spent = count(text or "") + count(reasoning or "")
        if ask.max_tokens is not None and not options.ignore_max_tokens:
            spent = ask.max_tokens if finish == "length" else min(spent, ask.max_tokens)
    text, reasoning = _place(text, reasoning, place)
    return Reply(text, reasoning, place, finish, _usage(options, step, ask, spent))


def _cut(
    unit: str, text: str | None, reasoning: str | None, limit: int | None
) -> tuple[str | None, str | None, str, int]:
    """Cut at `limit` tokens, reasoning first; content is null when the reasoning used them all."""
    count = TOKEN_UNITS[unit]
    said, thought = count(text or ""), count(reasoning or "")
    if limit is None or said + thought <= limit:
        return text, reasoning, "stop", said + thought
    if reasoning is not None and thought >= limit:
        return None, reasoning[: len(reasoning) * limit // thought], "length", limit
    kept = limit - thought
    return (text or "")[: len(text or "") * kept // max(said, 1)], reasoning, "length", limit


def _place(text: str | None, reasoning: str | None, place: str) -> tuple[str | None, str | None]:
    """Reasoning as a field of its own, or as tags in the content."""
    if reasoning is None or place not in ("tags", "closing_tag"):
        return text, reasoning
    opening = "<think>" if place == "tags" else ""
    return opening + reasoning + ("" if text is None else f"</think>\n{text}"), None


def prompt_tokens(options: Options, text: str) -> int:
    """Tokens of a chat prompt with its template."""
    return TOKEN_UNITS[options.token_unit](text) + options.template_tokens


def _usage(options: Options, step: Step, ask: Ask, spent: int) -> Json:
    prompt = step.prompt_tokens
    if prompt is None:
        prompt = prompt_tokens(options, ask.text)
    usage: Json = {
        "prompt_tokens": prompt,
        "completion_tokens": spent,
        "total_tokens": prompt + spent,
    }
    cached = options.cached_tokens if step.cached_tokens is None else step.cached_tokens
    if cached is not None:
        usage["prompt_tokens_details"] = {"cached_tokens": cached}
    return usage


# ------------------------------------------------------------------ bytes


def encode(value: object) -> bytes:
    """JSON with every character as it is, so that U+2028 and U+0085 are really on the wire."""
    raw = ENCODER.encode(value).encode("utf-8", "surrogatepass")
    return raw.replace(b"\\u001aBAD", b"\xff") if b"\\u001aBAD" in raw else raw


def response(
    status: int,
    body: bytes,
    kind: str = "application/json",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """A whole HTTP reply."""
    return b"%s%s" % (_head(status, kind, f"Content-Length: {len(body)}", headers or {}), body)


def error(
    status: int,
    message: str,
    kind: str = "invalid_request_error",
    headers: Mapping[str, str] | None = None,
    **more: object,
) -> bytes:
    """A whole error reply in OpenAI's form."""
    detail = {"message": message, "type": kind, "code": status, **more}
    return response(status, encode({"error": detail}), headers=headers)


def _head(status: int, kind: str, framing: str, headers: Mapping[str, str]) -> bytes:
    more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    text = f"HTTP/1.1 {status} Status\r\nContent-Type: {kind}\r\n{framing}\r\n{more}\r\n"
    return text.encode("latin-1")


def wire(options: Options, step: Step, ask: Ask) -> Wire:
    """The bytes that answer `ask` by this step, and what becomes of the connection."""
    fault = step.fault
    if fault in (nearest := AS_STREAM if ask.stream else AS_BODY):
        fault = nearest[fault]
        step = replace(step, fault=fault)
    if fault in ("reset", "hang"):
        return Wire(None, [], "reset" if fault == "reset" else "hang")
    if step.body is not None:
        whole = response(step.status, _raw(step.body), headers=step.headers)
        return Wire(step.status, [(1.0, whole)])
    if step.status != 200:
        whole = error(step.status, f"scripted {step.status}", "scripted", step.headers)
        return Wire(step.status, [(1.0, whole)])
    if fault == "html":
        page = b"<html><body>proxy login</body></html>"
        return Wire(200, [(1.0, response(200, page, "text/html", step.headers))])
    reply = compose(options, step, ask)
    if ask.stream and fault != "error_200":
        return _stream(step, ask, reply)
    return _plain(step, _completion(ask, reply))


def _raw(text: str) -> bytes:
    """Bytes of a scripted body: one a character, or UTF-8 when a character needs more."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _completion(ask: Ask, reply: Reply) -> Json:
    message: Json = {"role": "assistant", "content": reply.text}
    if reply.reasoning is not None:
        message[reply.reasoning_field] = reply.reasoning
    choice: Json = {"index": 0, "message": message, "finish_reason": reply.finish_reason}
    if reply.finish_reason == "absent":
        del choice["finish_reason"]
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1767225600,
        "model": ask.model,
        "choices": [choice],
        "usage": reply.usage,
    }


def _plain(step: Step, payload: Json) -> Wire:
    """One JSON body, spoiled as the fault says."""
    fault = step.fault
    if fault is None:
        return Wire(200, [(1.0, response(200, encode(payload), headers=step.headers))])
    choice = payload["choices"][0]
    if fault == "error_200":
        payload = {"error": {"message": "scripted error", "type": "server_error", "code": 500}}
    elif fault in ("no_choices", "null_choices"):
        payload["choices"] = [] if fault == "no_choices" else None
    elif fault == "empty_message":
        choice["message"] = {}
    elif fault == "null_content":
        choice["message"]["content"] = None
    elif fault == "done_without_finish":
        choice["finish_reason"] = None
    body = b"upstream said: this is no JSON" if fault == "garbage" else encode(payload)
    whole = response(200, body, headers=step.headers)
    if fault == "slow_body":
        return Wire(200, [(1.0, whole[: -len(body)])], "hang")
    if fault == "cut_body":
        return Wire(200, [(1.0, whole[: -(len(body) // 2)])], "close")
    if fault == "partial_lines":
        head = _head(200, "application/json", "Transfer-Encoding: chunked", step.headers)
        return Wire(200, [(1.0, head + _odd_chunks(body) + b"0\r\n\r\n")])
    return Wire(200, [(1.0, whole)])


# ------------------------------------------------------------------ server-sent events


def _stream(step: Step, ask: Ask, reply: Reply) -> Wire:
    """The events of one reply, each at its share of the service time."""
    chunked = step.framing == "chunked"
    framing = "Transfer-Encoding: chunked" if chunked else "Connection: close"
    parts = [(0.0, _head(200, "text/event-stream", framing, step.headers))]
    if step.fault == "slow_body":
        return Wire(200, parts, "hang")
    frame = _odd_chunks if step.fault == "partial_lines" else _chunk
    for share, event in _spoil(step.fault, _events(step, ask, reply)):
        line = b"data: " + event + b"\n\n"
        parts.append((share, frame(line) if chunked else line))
    if step.fault == "stall_stream":
        return Wire(200, parts, "hang")
    if step.fault == "cut_stream" or not chunked:
        return Wire(200, parts, "close")
    return Wire(200, [*parts, (1.0, b"0\r\n\r\n")])


def _events(step: Step, ask: Ask, reply: Reply) -> list[tuple[float, bytes]]:
    """(share of the service time, JSON) of each event of a healthy stream."""
    deltas: list[Json] = []
    for name, text in ((reply.reasoning_field, reply.reasoning), ("content", reply.text)):
        size = max(1, -(-len(text or "") // step.pieces))
        deltas += [{name: (text or "")[i : i + size]} for i in range(0, len(text or ""), size)]
    if step.fault == "null_content":
        deltas = [{"content": None}]
    elif step.fault == "empty_message":
        deltas = [{}]
    event = partial(_event, ask, step.fault)
    events = [(0.0, event({"role": "assistant", "content": ""}))]
    events += [((i + 1) / len(deltas), event(delta)) for i, delta in enumerate(deltas)]
    if step.fault != "done_without_finish":
        events.append((1.0, event({}, reply.finish_reason)))
    if ask.usage_in_stream:
        events.append((1.0, event(None, usage=reply.usage)))
    return [*events, (1.0, b"[DONE]")]


def _event(
    ask: Ask,
    fault: str | None,
    delta: Json | None,
    finish: str | None = None,
    usage: Json | None = None,
) -> bytes:
    choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
    if finish == "absent":
        del choice["finish_reason"]
    choices: list[Json] | None = [] if delta is None or fault == "no_choices" else [choice]
    payload: Json = {
        "id": "chatcmpl-test",
        "object": "chat.completion.chunk",
        "created": 1767225600,
        "model": ask.model,
        "choices": None if fault == "null_choices" else choices,
    }
    return encode(payload if usage is None else payload | {"usage": usage})


def _spoil(fault: str | None, events: list[tuple[float, bytes]]) -> list[tuple[float, bytes]]:
    """Faults in the middle of a stream: after the role and the first piece of text."""
    if fault in ("cut_stream", "stall_stream"):
        return events[:2]
    if fault == "error_event":
        detail = {"message": "scripted error", "type": "server_error", "code": 500}
        return [*events[:2], (1.0, encode({"error": detail})), events[-1]]
    if fault == "garbage":
        return [*events[:2], (1.0, b'{"choices": [{"delta'), events[-1]]
    return events


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _odd_chunks(data: bytes) -> bytes:
    """HTTP chunks that end inside lines and inside every multibyte character."""
    return b"".join(_chunk(p) for p in re.findall(rb"[\x80-\xff]|[\x00-\x7f]{1,7}", data))


# ------------------------------------------------------------------ pages of each dialect


class Live(NamedTuple):
    """What the pages show of the running server."""

    busy: int
    queued: int
    started: float
    """Unix time at which the server came up."""


def page(options: Options, live: Live, method: str, path: str, body: Json) -> bytes:
    """A whole reply for any path but the chat one; 404 where this dialect has no such page."""
    build = PAGES.get((options.dialect, method, path)) or PAGES.get(("*", method, path))
    if build is None:
        return error(404, f"Not Found: {method} {path}", "not_found_error")
    content = build(options, live, body)
    if isinstance(content, str):
        return response(200, content.encode(), "text/plain; version=0.0.4")
    return response(200, encode(content))


def _models(options: Options, live: Live, body: Json) -> Json:
    entry = {"object": "model", "created": int(live.started), "owned_by": options.dialect}
    if options.dialect == "llama.cpp":
        meta = {"n_ctx_train": options.context, "n_vocab": 49152}
        more = {"id": options.model, "aliases": list(options.aliases), "meta": meta}
        return {"object": "list", "data": [entry | more]}
    if options.dialect != "openai":
        entry |= {"root": options.model_path, "max_model_len": options.context}
    names = (options.model, *options.aliases)
    return {"object": "list", "data": [{"id": name} | entry for name in names]}


def _vllm_metrics(options: Options, live: Live, body: Json) -> str:
    label = f'engine="0",model_name="{options.model}"'
    return (
        "# HELP process_start_time_seconds Start time of the process since unix epoch.\n"
        "# TYPE process_start_time_seconds gauge\n"
        f"process_start_time_seconds {live.started!r}\n"
        "# TYPE vllm:cache_config_info gauge\n"
        'vllm:cache_config_info{block_size="16",cache_dtype="auto",enable_prefix_caching="True",'
        'num_gpu_blocks="4096"} 1.0\n'
        f"vllm:num_requests_running{{{label}}} {float(live.busy)}\n"
        f"vllm:num_requests_waiting{{{label}}} {float(live.queued)}\n"
    )


def _vllm_tokenize(options: Options, live: Live, body: Json) -> Json:
    if "messages" in body:
        count = prompt_tokens(options, ask_of(body).text)
    else:
        count = TOKEN_UNITS[options.token_unit](str(body.get("prompt", "")))
    tokens = list(range(count))
    return {"count": count, "max_model_len": options.context, "tokens": tokens, "token_strs": None}


def _sglang_info(options: Options, live: Live, body: Json) -> Json:
    return {
        "version": options.version,
        "model_path": options.model_path,
        "served_model_name": options.model,
        "context_length": options.context,
        "max_running_requests": options.slots,
        "max_total_num_tokens": options.context * options.slots,
        "internal_states": [{"effective_max_running_requests_per_dp": options.slots}],
    }


def _llama_props(options: Options, live: Live, body: Json) -> Json:
    params = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05}
    return {
        "default_generation_settings": {"id": 0, "n_ctx": options.context, "params": params},
        "total_slots": options.slots,
        "model_alias": options.model,
        "model_path": options.model_path,
        "build_info": options.version,
        "chat_template": "{{ messages }}",
    }


def _llama_slots(options: Options, live: Live, body: Json) -> list[Json]:
    return [
        {"id": i, "n_ctx": options.context, "is_processing": i < live.busy}
        for i in range(options.slots)
    ]


def _llama_tokenize(options: Options, live: Live, body: Json) -> Json:
    count = TOKEN_UNITS[options.token_unit](str(body.get("content", "")))
    return {"tokens": list(range(count))}


PAGES: dict[tuple[str, str, str], Callable[[Options, Live, Json], Json | list[Json] | str]] = {
    ("*", "GET", "/v1/models"): _models,
    ("vllm", "GET", "/health"): lambda options, live, body: "",
    ("vllm", "GET", "/version"): lambda options, live, body: {"version": options.version},
    ("vllm", "GET", "/metrics"): _vllm_metrics,
    ("vllm", "POST", "/tokenize"): _vllm_tokenize,
    ("sglang", "GET", "/health"): lambda options, live, body: "",
    ("sglang", "GET", "/get_server_info"): _sglang_info,
    ("sglang", "GET", "/server_info"): _sglang_info,
    ("sglang", "GET", "/get_model_info"): lambda options, live, body: {
        "model_path": options.model_path,
        "tokenizer_path": options.model_path,
        "is_generation": True,
    },
    ("llama.cpp", "GET", "/health"): lambda options, live, body: {"status": "ok"},
    ("llama.cpp", "GET", "/props"): _llama_props,
    ("llama.cpp", "GET", "/slots"): _llama_slots,
    ("llama.cpp", "POST", "/tokenize"): _llama_tokenize,
    ("llama.cpp", "POST", "/apply-template"): lambda options, live, body: {
        "prompt": ask_of(body).text
    },
}
