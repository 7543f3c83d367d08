"""Before the first request: is the model there, how many slots, does the longest prompt fit?

Asks each endpoint what it says of itself; sends no chat request. What is wrong here stops the run
while it has cost nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import anyio

from qualeval.card import Card, Endpoint
from qualeval.client import ModelClient
from qualeval.errors import CardError, RequestError, ServerGoneError
from qualeval.plan import PartPlan
from qualeval.records import Item, Json
from qualeval.retry import PROBE_EVERY
from qualeval.server_facts import ServerFacts, count_prompt, facts_of, served_name

BYTES_PER_TOKEN = 4
"""Where no tokenizer counts: an estimate that English text rarely falls below."""

TEMPLATE_TOKENS = 64
"""Room for the chat template where nothing counts it."""


@dataclass(frozen=True, slots=True)
class Place:
    """An endpoint that is ready: its facts, how many requests it takes at once, who says so."""

    endpoint: Endpoint
    facts: ServerFacts
    slots: int
    slots_source: str | None
    model: str

    def identity(self) -> Json:
        """The facts as stored in a session."""
        return self.facts.model_dump(mode="json")


async def look_at(card: Card, clients: Sequence[ModelClient]) -> list[Place]:
    """One Place per endpoint of the card, asked through `clients` in the same order.

    A server that is still loading is waited for, `retries.max_wait` seconds at most. Raises
    CardError when the model is not served or slots are unknown, ServerGoneError when none answers.
    """
    places = []
    for endpoint, client in zip(card.server.places(), clients, strict=True):
        facts = await _facts_when_loaded(card, client)
        model = served_name(card.server.model or "", facts)
        slots, source = endpoint.slots, card.server.slots_source
        if slots is None:
            slots, source = facts.slots, facts.slots_source
        if not slots:
            raise CardError(
                f"server.slots: is missing, and {endpoint.base_url} does not tell; "
                "give how many requests it works on at once (vLLM: --max-num-seqs)"
            )
        places.append(Place(endpoint, facts, slots, source, model))
    return places


async def _facts_when_loaded(card: Card, client: ModelClient) -> ServerFacts:
    deadline = anyio.current_time() + card.retries.max_wait
    while True:
        try:
            return await facts_of(client, card.server.dialect, card.server.model or "")
        except RequestError as error:
            loading = error.kind == "http_503" and anyio.current_time() + PROBE_EVERY < deadline
            if not loading:
                raise no_answer(client.base_url, error) from None
        await anyio.sleep(PROBE_EVERY)


def no_answer(
    base_url: str,
    error: RequestError,
    *,
    address: str = "server.base_url",
    key: str = "server.api_key_env",
) -> ServerGoneError | CardError:
    """What to tell whom a server refused or did not answer. `address` and `key` name the places
    where its address and the variable with its key were given.
    """
    if error.kind in ("http_401", "http_403"):
        return CardError(
            f"{key}: {base_url} refuses the key ({error}); "
            "name the environment variable that holds it"
        )
    if error.kind == "http_404":
        return CardError(f"{address}: {base_url} has no /models; most servers need /v1")
    return ServerGoneError(f"{base_url} does not answer: {error}; is the server running?")


def slots_warnings(places: Sequence[Place]) -> list[str]:
    """What differs between the card's word and the server's, one line each."""
    found = []
    for place in places:
        told = place.facts.slots
        if told is not None and told != place.slots:
            found.append(
                f"{place.endpoint.base_url}: the card says {place.slots} slots, "
                f"the server {told} ({place.facts.slots_source})"
            )
    return found


async def refuse_what_does_not_fit(
    card: Card, plans: Sequence[PartPlan], places: Sequence[Place], clients: Sequence[ModelClient]
) -> list[str]:
    """Raise CardError when a part's longest prompt + template + max_tokens is more than a slot has.

    Returns one line per part that was checked by an estimate or not at all.
    """
    known = [p.facts.context_tokens for p in places if p.facts.context_tokens is not None]
    if not known and card.server.context_tokens is not None:
        known = [card.server.context_tokens]
    if not known:
        return ["context per slot is not known: it was not checked that all prompts fit"]
    context = min(known)
    notes: list[str] = []
    too_long: dict[str, str] = {}
    for plan in plans:
        longest = _longest(plan)
        messages = plan.task.messages(longest)
        tokens = await count_prompt(clients[0], plan.dialect, places[0].model, messages)
        how = "counted by the server"
        if tokens is None and (bare := plan.task.prompt_tokens(longest)) is not None:
            tokens, how = bare + TEMPLATE_TOKENS, "counted, and room for the template"
        if tokens is None:
            tokens, how = _bytes_of(messages) // BYTES_PER_TOKEN + TEMPLATE_TOKENS, "estimated"
            notes.append(f"{plan.name}: longest prompt estimated at {tokens:,} tokens")
        need = tokens + plan.max_tokens
        if need > context:
            too_long[plan.name] = (
                f"part '{plan.name}' needs {need:,} tokens in a slot (longest prompt {tokens:,} "
                f"{how}, max_tokens {plan.max_tokens:,}), but a slot has {context:,}"
            )
    if too_long:
        fitting = [plan.name for plan in plans if plan.name not in too_long]
        hint = f"; run the rest with --parts {','.join(fitting)}" if fitting else ""
        raise CardError(
            "\n".join(too_long.values())
            + "\ngive the server a larger context per slot (llama.cpp divides its context by its "
            f"slots), or set parts.<part>.max_tokens in the card{hint}"
        )
    return notes


def _longest(plan: PartPlan) -> Item:
    """The item with the longest prompt: by tokens where they are known, else by bytes."""
    return max(
        plan.items,
        key=lambda item: (
            plan.task.prompt_tokens(item) or _bytes_of(plan.task.messages(item)) // BYTES_PER_TOKEN
        ),
    )


def _bytes_of(messages: tuple[Json, ...]) -> int:
    return sum(len(str(message["content"]).encode("utf-8", "replace")) for message in messages)
