"""What a model server says of itself: models, engine, slots, context, start time, defaults.

Each dialect has side paths of its own; a path that is missing leaves its facts unknown (None),
which is never the same as zero or off. Nothing here sends a chat request.
"""

import json
import re
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from qualeval.card import Dialect
from qualeval.client import ModelClient
from qualeval.errors import CardError, RequestError, did_you_mean
from qualeval.records import Json, Record, sha256_text

SAMPLING_DEFAULTS = (
    "temperature",
    "top_k",
    "top_p",
    "min_p",
    "typical_p",
    "repeat_penalty",
    "repeat_last_n",
) + ("presence_penalty", "frequency_penalty", "dry_multiplier", "xtc_probability", "mirostat")


class ServerFacts(Record):
    """One endpoint's own words. `context_tokens` is what one request may use."""

    endpoint: str
    models: tuple[str, ...]
    engine_version: str | None = None
    slots: int | None = None
    slots_source: str | None = None
    context_tokens: int | None = None
    context_source: str | None = None
    process_started: str | None = None
    server_defaults: Json | None = None
    chat_template_sha256: str | None = None


async def facts_of(client: ModelClient, dialect: Dialect, model: str) -> ServerFacts:
    """Ask one endpoint. Raises RequestError when it does not even list its models."""
    listed = _object(await client.ask("GET", "/v1/models")).get("data")
    entries = (
        [entry for entry in listed if isinstance(entry, dict)] if isinstance(listed, list) else []
    )
    facts: dict[str, Any] = {"models": tuple(_names(entries))}
    entry = next((e for e in entries if model in _names([e])), entries[0] if entries else {})
    context = entry.get("max_model_len") or _at(entry, "meta", "n_ctx")
    if isinstance(context, int):
        facts |= {"context_tokens": context, "context_source": "server: /v1/models"}
    if dialect == "vllm":
        facts |= await _vllm(client)
    elif dialect == "sglang":
        facts |= await _sglang(client)
    elif dialect == "llama.cpp":
        facts |= await _llama_cpp(client)
    known = {name: value for name, value in facts.items() if value is not None}
    return ServerFacts(endpoint=client.base_url, **known)


async def _vllm(client: ModelClient) -> dict[str, Any]:
    version = _object(await _quiet(client, "/version")).get("version")
    metrics = await _quiet(client, "/metrics")
    slots = re.search(r'\bmax_num_seqs="(\d{1,6})"', metrics)
    return {
        "engine_version": f"vLLM {version}" if version else None,
        "process_started": _process_start(metrics),
        "slots": int(slots.group(1)) if slots else None,
        "slots_source": "server: /metrics" if slots else None,
    }


async def _sglang(client: ModelClient) -> dict[str, Any]:
    path = "/get_server_info"
    info = _object(await _quiet(client, path))
    if not info:
        path = "/server_info"  # what newer ones call it
        info = _object(await _quiet(client, path))
    facts: dict[str, Any] = {"process_started": _process_start(await _quiet(client, "/metrics"))}
    if isinstance(info.get("version"), str):
        facts["engine_version"] = f"SGLang {info['version']}"
    if isinstance(info.get("max_running_requests"), int):
        facts |= {"slots": info["max_running_requests"], "slots_source": f"server: {path}"}
    context = info.get("context_length")
    if isinstance(context, int):
        facts |= {"context_tokens": context, "context_source": f"server: {path}"}
    return facts


async def _llama_cpp(client: ModelClient) -> dict[str, Any]:
    props = _object(await _quiet(client, "/props"))
    facts: dict[str, Any] = {"process_started": _process_start(await _quiet(client, "/metrics"))}
    if isinstance(props.get("build_info"), str):
        facts["engine_version"] = f"llama.cpp {props['build_info']}"
    if isinstance(props.get("total_slots"), int):
        facts |= {"slots": props["total_slots"], "slots_source": "server: /props"}
    else:
        slots = _parsed(await _quiet(client, "/slots"))
        if isinstance(slots, list) and slots:
            facts |= {"slots": len(slots), "slots_source": "server: /slots"}
    context = _at(props, "default_generation_settings", "n_ctx")
    if isinstance(context, int) and context > 0:
        facts |= {"context_tokens": context, "context_source": "server: /props, one slot"}
    params = _at(props, "default_generation_settings", "params")
    if isinstance(params, dict):
        facts["server_defaults"] = {n: params[n] for n in SAMPLING_DEFAULTS if n in params}
    if isinstance(props.get("chat_template"), str):
        facts["chat_template_sha256"] = sha256_text(props["chat_template"])
    return facts


def served_name(model: str, facts: ServerFacts) -> str:
    """The name to send for the card's model: itself, or the id whose path ends with it.

    Raises CardError that lists what the server has.
    """
    if model in facts.models:
        return model
    for name in facts.models:
        path = PurePosixPath(name)
        if model in (path.name, path.stem, "/".join(path.parts[-2:])):
            return name
    listed = ", ".join(facts.models) or "none"
    raise CardError(
        f"server.model: '{model}' is not served at {facts.endpoint}"
        f"{did_you_mean(model, facts.models)}; it lists: {listed}"
    )


async def count_prompt(
    client: ModelClient, dialect: Dialect, model: str, messages: tuple[Json, ...]
) -> int | None:
    """Tokens of a chat prompt with its template, counted by the server; None when it cannot."""
    try:
        if dialect == "vllm":
            body: Json = {"model": model, "messages": list(messages)}
            count = _object(await client.ask("POST", "/tokenize", body, seconds=60)).get("count")
            return count if isinstance(count, int) else None
        if dialect == "llama.cpp":
            filled = await client.ask("POST", "/apply-template", {"messages": list(messages)})
            content = {"content": _object(filled).get("prompt"), "add_special": True}
            tokens = _object(await client.ask("POST", "/tokenize", content, seconds=60)).get(
                "tokens"
            )
            return len(tokens) if isinstance(tokens, list) else None
    except RequestError:
        return None
    return None


async def count_text(client: ModelClient, dialect: Dialect, model: str, text: str) -> int | None:
    """Tokens of a bare text, without special tokens; None for a server that does not count."""
    bodies: dict[Dialect, Json] = {
        "vllm": {"model": model, "prompt": text, "add_special_tokens": False},
        "llama.cpp": {"content": text, "add_special": False},
    }
    if dialect not in bodies:
        return None
    try:
        reply = _object(await client.ask("POST", "/tokenize", bodies[dialect], seconds=120))
    except RequestError:
        return None
    tokens, count = reply.get("tokens"), reply.get("count")
    return count if isinstance(count, int) else len(tokens) if isinstance(tokens, list) else None


async def _quiet(client: ModelClient, path: str) -> str:
    """The text at a path that a server may not have; empty when it has not."""
    try:
        return await client.ask("GET", path)
    except RequestError:
        return ""


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _object(text: str) -> dict[str, Any]:
    value = _parsed(text)
    return value if isinstance(value, dict) else {}


def _at(value: Any, *path: str) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _names(entries: list[dict[str, Any]]) -> list[str]:
    """Ids, aliases and roots of listed models, ids first."""
    ids = [str(entry["id"]) for entry in entries if entry.get("id")]
    aliases = [str(name) for entry in entries for name in entry.get("aliases") or ()]
    roots = [str(entry["root"]) for entry in entries if entry.get("root")]
    return list(dict.fromkeys([*ids, *aliases, *roots]))


def _process_start(metrics: str) -> str | None:
    found = re.search(
        r"^process_start_time_seconds(?:\{[^}\n]*\})? ([0-9.eE+]{1,30})$", metrics, re.M
    )
    if found is None:
        return None
    try:
        moment = datetime.fromtimestamp(float(found.group(1)), UTC)
    except (ValueError, OverflowError, OSError):  # no moment that a calendar has
        return None
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")
