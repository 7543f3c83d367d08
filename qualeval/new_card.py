"""A card written by asking a server, and a card explained in words."""

import json
from collections.abc import Iterator
from pathlib import Path

import anyio

from qualeval.card import MADE_PARTS, Card, Dialect, checked_url
from qualeval.card_server import key_in
from qualeval.client import ModelClient
from qualeval.errors import CardError, OptionError, RequestError, did_you_mean
from qualeval.findings import number_of
from qualeval.preflight import no_answer
from qualeval.records import Json
from qualeval.server_facts import ServerFacts, facts_of

PATHS_OF: tuple[tuple[Dialect, str], ...] = (
    ("llama.cpp", "/props"),
    ("sglang", "/get_server_info"),
    ("sglang", "/server_info"),
    ("vllm", "/version"),
)
"""Side paths that give a server's dialect away, asked in this order."""


def ask_for_card(base_url: str, api_key_env: str | None) -> tuple[str, list[str]]:
    """The text of a card for the server at `base_url`, and what its owner should still fill in.

    Raises OptionError for an address that is none, CardError when the server wants a key or lists
    no model, ServerGoneError when nobody answers.
    """
    try:
        url = checked_url(base_url)
    except ValueError as error:
        raise OptionError(f"URL: {error}") from None
    key = key_in(api_key_env, "--api-key-env")
    facts, dialect = anyio.run(_ask, url, key)
    if not facts.models:
        raise CardError(f"{url}: lists no model")
    server: Json = {
        "base_url": url,
        "model": facts.models[0],
        "dialect": dialect,
        "slots": facts.slots,
        "slots_source": facts.slots_source,
        "context_tokens": facts.context_tokens,
        "context_source": facts.context_source,
        "api_key_env": api_key_env,
    }
    card: Json = {
        "label": facts.models[0].rsplit("/", maxsplit=1)[-1],
        "server": server,
        "sampling": {},
        "sampling_source": None,
        "seed": 42,
        "thinking": {"off": None, "on": None},
        "setup": {"hardware": None, "engine": {"name": facts.engine_version}},
    }
    notes = [
        "sampling is empty: the server's own defaults apply; give the model card's values",
        "thinking has no switch yet: for Qwen3 and GLM it is "
        '{"chat_template_kwargs": {"enable_thinking": false}} for off, true for on',
    ]
    if facts.slots is None:
        notes.insert(0, "server.slots: the server does not tell; give how many requests it takes")
    return json.dumps(card, indent=2, ensure_ascii=False) + "\n", notes


async def _ask(url: str, key: str | None) -> tuple[ServerFacts, Dialect]:
    async with ModelClient(url, api_key=key) as client:
        try:
            dialect = await _dialect_of(client)
            return await facts_of(client, dialect, ""), dialect
        except RequestError as error:
            raise no_answer(url, error, address="URL", key="--api-key-env") from None


async def _dialect_of(client: ModelClient) -> Dialect:
    await client.ask("GET", "/v1/models")
    for dialect, path in PATHS_OF:
        try:
            if isinstance(json.loads(await client.ask("GET", path)), dict):
                return dialect
        except (RequestError, ValueError):
            continue
    return "openai"


def explain(card: Card, folder: Path) -> list[str]:
    """What a card means, one line a setting, with the source of each."""
    server = card.server
    place = server.embedded or ", ".join(endpoint.base_url for endpoint in server.places())
    slots = server.slots or sum(endpoint.slots or 0 for endpoint in server.places())
    lines = [
        f"label     {card.label}",
        f"server    {place} ({server.dialect}), model {server.model}",
        f"slots     {slots or _no_slots(card)}{_source(server.slots_source)}",
        f"context   {server.context_tokens or 'not given: the server is asked'}"
        f"{_source(server.context_source)}",
        f"sampling  {json.dumps(card.sampling) if card.sampling else 'none sent'}"
        f"{_source(card.sampling_source)}",
        f"seed      {card.seed}",
    ]
    for mode in ("off", "on"):
        switch = card.thinking.of(mode)
        said = json.dumps(switch) if switch is not None else "nothing sent (warned in each row)"
        lines.append(f"thinking  {mode}: {said}")
    for name, part in card.parts.items():
        changed = part.model_dump(exclude_defaults=True)
        lines.append(f"part      {name}: {json.dumps(changed) if changed else 'as published'}")
    if faults := list(_missing_files(card, folder)):
        raise CardError("\n".join(faults))
    deviations = len(card.setup.deviations) if card.setup else 0
    if deviations:
        lines.append(f"setup     run with {number_of(deviations, 'deviation')} from the recipe")
    lacks = (
        "" if slots or server.dialect not in TELL_NO_SLOTS else ", but no run starts without slots"
    )
    return [*lines, f"sha256    {card.sha256}", f"the card is good{lacks}"]


def _missing_files(card: Card, folder: Path) -> Iterator[str]:
    """A fault for each file that the card names and that cannot be what it is named for."""
    if card.tokenizer and not (folder / card.tokenizer).is_file():
        yield f"tokenizer: there is no file {folder / card.tokenizer}"
    for name, part in card.parts.items():
        if part.list in LISTS_BY_NAME:
            continue
        if name in MADE_PARTS:
            yield f"parts.{name}.list: takes no list of its own; set lengths and per_task"
        elif not (folder / part.list).is_file():
            hint = did_you_mean(part.list, LISTS_BY_NAME)
            yield f"parts.{name}.list: there is no file {folder / part.list}{hint}"


LISTS_BY_NAME = ("official", "sample")
"""Values of a part's `list` that are no path."""

TELL_NO_SLOTS = ("vllm", "openai")
"""Dialects whose servers do not say how many requests they work on at once."""


def _no_slots(card: Card) -> str:
    if card.server.dialect in TELL_NO_SLOTS:
        return f"NOT GIVEN, and {card.server.dialect} does not tell: give server.slots"
    return "not given: the server is asked"


def _source(source: str | None) -> str:
    return f" (source: {source})" if source else " (source: not stated)"
