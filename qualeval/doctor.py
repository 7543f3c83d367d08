"""A handful of requests that find what would spoil a run, before it costs anything.

Findings are `ok`, `warn` (a run works, but a row will carry a note) or `fail` (a run would stop or
measure something else).
"""

import secrets
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import anyio

from qualeval.card import Card
from qualeval.card_server import CardServer
from qualeval.client import ModelClient
from qualeval.errors import CardError, QualevalError, RequestError
from qualeval.plan import CACHE_FIELDS, merged
from qualeval.preflight import Place, look_at, slots_warnings
from qualeval.records import Completion, Json, Request, ThinkingMode
from qualeval.server_facts import count_prompt

QUESTION = "Which is larger, 17 or 23? Reply with the number only."
LONGER = " ".join(f"Line {i}: the number {i} is followed by {i + 1}." for i in range(40))
TOKENS = 256


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    state: Literal["ok", "warn", "fail"]
    what: str
    detail: str


def examine(card: Card, folder: Path) -> list[Finding]:
    """Ask the card's server. A fault that ends the examination is its last finding."""
    with (
        TemporaryDirectory() as scratch,
        CardServer(card, folder, Path(scratch) / "server.log") as server,
    ):
        try:
            key = server.api_key()
        except CardError as error:
            return [Finding("fail", "key", str(error))]
        return anyio.run(_examine, server.reached(), key, folder, server.engine_version)


async def _examine(
    card: Card, key: str | None, folder: Path, engine_version: str | None
) -> list[Finding]:
    findings: list[Finding] = []
    for endpoint in card.server.places():
        async with ModelClient(endpoint.base_url, api_key=key, timeouts=card.timeouts) as client:
            one = card.server.model_copy(
                update={"base_url": endpoint.base_url, "slots": endpoint.slots, "endpoints": None}
            )
            of_one = card.model_copy(update={"server": one})
            visit = _Visit(of_one, folder, client, findings, engine_version)
            try:
                await visit.all()
            except QualevalError as error:
                findings.append(Finding("fail", "stopped", str(error)))
    return findings


class _Visit:
    """One endpoint, looked at from all sides."""

    def __init__(
        self,
        card: Card,
        folder: Path,
        client: ModelClient,
        findings: list[Finding],
        engine_version: str | None,
    ) -> None:
        self.engine_version = engine_version
        self.card = card
        self.folder = folder
        self.client = client
        self.findings = findings

    def note(self, state: Literal["ok", "warn", "fail"], what: str, detail: str) -> None:
        self.findings.append(Finding(state, what, detail))

    async def all(self) -> None:
        (place,) = await look_at(self.card, [self.client])
        self._facts(place)
        off = await self._ask(place, "off")
        on = await self._ask(place, "on")
        bare = await self._ask(place, None)
        self._thinking(off, on, bare)
        self._usage(off)
        first, second = [await self._ask(place, "off", LONGER) for _ in range(2)]
        self._seed(first, second)
        self._cache(first, second)
        await self._tokenizer(place, off, first)

    def _facts(self, place: Place) -> None:
        facts = place.facts
        self.note("ok", "model", f"{place.model} at {facts.endpoint}")
        version = facts.engine_version or self.engine_version
        self.note("ok", "engine", version or "version not told")
        for line in slots_warnings([place]):
            self.note("warn", "slots", line)
        self.note("ok", "slots", f"{place.slots} ({place.slots_source or 'source not stated'})")
        context = facts.context_tokens or self.card.server.context_tokens
        state: Literal["ok", "warn"] = "ok" if context else "warn"
        said = f"{context:,} tokens in a slot" if context else "not told; say server.context_tokens"
        self.note(state, "context", f"{said} ({facts.context_source or 'card'})")
        start = facts.process_started
        self.note("ok" if start else "warn", "server start", start or "not told")
        if not self.card.sampling_for("off"):
            defaults = facts.server_defaults or "not told"
            self.note("warn", "sampling", f"none sent; the server's own apply: {defaults}")

    async def _ask(
        self, place: Place, mode: ThinkingMode | None, question: str = QUESTION
    ) -> Completion:
        """One small chat request; `mode` None sends no switch at all."""
        fields: Json = {"model": place.model, "max_tokens": TOKENS, "seed": self.card.seed}
        fields = merged(fields, self.card.sampling_for(mode or "off"))
        if mode is not None:
            fields = merged(fields, self.card.thinking.of(mode) or {})
        messages: Json = {"messages": [{"role": "user", "content": question}]}
        cache_fields = CACHE_FIELDS[self.card.server.dialect]
        extra = {"cache_salt": secrets.token_hex(16)} if "cache_salt" in cache_fields else {}
        switch: Json = {"cache_prompt": False} if "cache_prompt" in cache_fields else {}
        request = Request(id="doctor", max_tokens=TOKENS, body=messages | fields | switch)
        try:
            return await self.client.complete(request, extra)
        except RequestError as error:
            raise CardError(
                f"a small request (thinking {mode or 'unset'}) failed: {error}"
            ) from None

    def _thinking(self, off: Completion, on: Completion, bare: Completion) -> None:
        astray = [mode for mode, reply in (("off", off), ("on", on)) if reply.misrouted]
        for mode in astray:
            why = "the answer came in the reasoning field; check the server's reasoning parser"
            self.note("fail", f"thinking {mode}", why)
        default = "thinks" if bare.reasoning else "does not think"
        self.note("ok", "thinking default", f"without a switch the model {default}")
        if off.reasoning and "off" not in astray:
            why = f"the reply has reasoning ({off.reasoning_source}); the switch does not work"
            self.note("fail", "thinking off", why)
        elif not off.reasoning:
            self.note("ok", "thinking off", "no reasoning in the reply")
        if on.reasoning and "on" not in astray:
            self.note("ok", "thinking on", f"reasoning came in: {on.reasoning_source}")
        elif not on.reasoning:
            why = "no reasoning in the reply; the part 'think' would measure an answer without it"
            self.note("warn", "thinking on", why)

    def _usage(self, completion: Completion) -> None:
        tokens = completion.usage.completion_tokens
        if tokens is None:
            self.note("warn", "usage", "not reported: median tokens will be unknown")
        else:
            self.note("ok", "usage", f"{tokens} completion tokens, {completion.seconds} s")

    def _seed(self, first: Completion, second: Completion) -> None:
        same = first.text == second.text
        said = "the same request gave the same text twice"
        differs = "the same request gave two texts: the seed is ignored, or batches change it"
        self.note("ok" if same else "warn", "seed", said if same else differs)

    def _cache(self, first: Completion, second: Completion) -> None:
        counts = [first.cached_tokens, second.cached_tokens]
        if None in counts:
            self.note("warn", "prompt cache", "cached tokens are not reported by this server")
        elif any(counts):
            self.note("warn", "prompt cache", f"{max(c or 0 for c in counts)} cached tokens seen")
        else:
            self.note("ok", "prompt cache", "the same prompt twice: no cached tokens")

    async def _tokenizer(self, place: Place, short: Completion, long: Completion) -> None:
        """The server's count of two prompts against the card's own tokenizer, template aside."""
        used = short.usage.prompt_tokens
        messages: tuple[Json, ...] = ({"role": "user", "content": QUESTION},)
        counted = await count_prompt(self.client, self.card.server.dialect, place.model, messages)
        if counted is None:
            self.note("warn", "token count", "this server does not count prompts for us")
        elif used is not None and counted != used:
            # A thinking switch may change the template, so a small gap is no fault.
            self.note("warn", "token count", f"/tokenize says {counted}, usage says {used}")
        else:
            self.note("ok", "token count", f"{counted} tokens for a short prompt")
        if self.card.tokenizer is None:
            return
        local = difference_by(self.folder / self.card.tokenizer)
        if used is None or long.usage.prompt_tokens is None:
            self.note("warn", "tokenizer", "cannot be compared: usage is not reported")
        elif long.usage.prompt_tokens - used != local:
            there = long.usage.prompt_tokens - used
            why = f"another tokenizer: {there} tokens between two prompts there, {local} here"
            self.note("fail", "tokenizer", why)
        else:
            self.note("ok", "tokenizer", "counts as the server does")


def difference_by(path: Path) -> int:
    """Tokens that LONGER has more than QUESTION by a tokenizer.json. Raises CardError."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exceptions for a bad or missing file
        raise CardError(f"tokenizer: {path} cannot be read as a tokenizer.json: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    long, short = (tokenizer.encode(t, add_special_tokens=False) for t in (LONGER, QUESTION))
    return len(long.ids) - len(short.ids)
