"""Card + task -> items and requests: what a part will ask, decided before anything is sent."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from qualeval.card import Card, Dialect
from qualeval.errors import OptionError, did_you_mean
from qualeval.lists import ItemList, load_list
from qualeval.made_list import Making, load_or_make, made_limits
from qualeval.records import Item, Json, Request, ThinkingMode, key_of
from qualeval.tasks import TASKS
from qualeval.tasks.base import Task

Schedule = Literal["default", "packed", "parts"]

STREAM_FROM = 2048
"""From this max_tokens on replies are streamed: an idle limit finds a dead stream, and proxies
do not cut a connection that speaks."""

CACHE_FIELDS: Mapping[Dialect, tuple[str, ...]] = {
    "vllm": ("cache_salt",),
    "sglang": ("cache_salt",),
    "llama.cpp": ("cache_prompt",),
    "openai": (),
}
"""How each dialect is kept from reusing prompts: a salt per request, or a switch."""


@dataclass(frozen=True, slots=True)
class PartPlan:
    """One part as this card asks it. `limits` names every value that is not the method's."""

    task: Task
    list: ItemList
    items: tuple[Item, ...]
    model: str
    dialect: Dialect
    max_tokens: int
    seed: int
    sampling: Json
    thinking_object: Json | None
    repeats: int
    limits: tuple[str, ...]
    sandbox: str | None = None
    """What its programs are run in, where grading runs any."""

    @property
    def name(self) -> str:
        """Name of the part."""
        return self.task.name

    @property
    def thinking(self) -> ThinkingMode:
        """Whether the model is asked to think."""
        return self.task.thinking

    @property
    def salted(self) -> bool:
        """Whether each request gets a fresh salt, which is no part of its body here."""
        return "cache_salt" in CACHE_FIELDS[self.dialect]

    @property
    def size(self) -> int:
        """Answers of the whole list."""
        return len(self.list.items) * self.repeats

    def keys(self) -> Iterator[tuple[str, int]]:
        """(id, repeat) of all answers that the whole list asks for, in the order they are kept."""
        for repeat in range(self.repeats):
            for item in self.list.items:
                yield key_of(item.id, repeat)

    def fixed_fields(self) -> Json:
        """Request fields that are the same for every item."""
        fields: Json = {"model": self.model, "max_tokens": self.max_tokens}
        fields = merged(merged(fields, self.sampling), self.thinking_object or {})
        if self.max_tokens >= STREAM_FROM:
            fields |= {"stream": True, "stream_options": {"include_usage": True}}
        if "cache_prompt" in CACHE_FIELDS[self.dialect]:
            fields["cache_prompt"] = False
        return fields

    def request(self, item: Item, repeat: int) -> Request:
        """The request for one item; its seed is the card's plus the repeat."""
        messages = self.task.messages(item)
        body: Json = {"messages": [*messages], "seed": self.seed + repeat, **self.fixed_fields()}
        return Request(id=item.id, repeat=repeat, max_tokens=self.max_tokens, body=body)

    def requests(self) -> Iterator[Request]:
        """All requests in list order, made one at a time."""
        for repeat in range(self.repeats):
            for item in self.items:
                yield self.request(item, repeat)


def merged(fields: Json, more: Json) -> Json:
    """`fields` with `more` on top; objects in both are merged, as chat_template_kwargs may be."""
    result = dict(fields)
    for name, value in more.items():
        old = result.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            value = merged(old, value)
        result[name] = value
    return result


def chosen_parts(names: str | None) -> tuple[str, ...]:
    """Part names of a comma-separated option, in the order of the table; None is all there are.

    Raises OptionError with the nearest known name.
    """
    if names is None:
        return tuple(TASKS)
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    for name in wanted:
        if name not in TASKS:
            hint = did_you_mean(name, TASKS)
            raise OptionError(
                f"--parts: part '{name}' is unknown{hint}; there are: {', '.join(TASKS)}"
            )
    if not wanted:
        raise OptionError(f"--parts: names no part; there are: {', '.join(TASKS)}")
    return tuple(name for name in TASKS if name in wanted)


def plan_part(
    card: Card,
    name: str,
    folder: Path,
    lists: str | None = None,
    limit: int | None = None,
    making: Making | None = None,
    sandbox: str | None = None,
) -> PartPlan:
    """The plan of one part; `folder` is the card's, `lists` and `limit` come from the command.
    `making` is what the lists of some parts are made with, `sandbox` names what programs run in.

    Raises ListError when the list cannot be read, is not the pinned one, or may not be fetched;
    CardError when a list has to be made and nothing can count tokens.
    """
    task = TASKS[name]
    settings = card.part(name)
    choice = lists or settings.list
    if task.maker is None:
        questions, limits = load_list(task, choice, folder), []
    else:
        tokenizer = folder / card.tokenizer if card.tokenizer else None
        questions = load_or_make(task, choice, settings, tokenizer, making or Making())
        limits = made_limits(settings, questions)
    limit = limit or settings.limit
    max_tokens = settings.max_tokens or task.max_tokens
    if max_tokens != task.max_tokens:
        limits.append(f"max_tokens {max_tokens:,} instead of {task.max_tokens:,}")
    return PartPlan(
        task=task,
        list=questions,
        items=questions.items[:limit],
        model=card.server.model or "",
        dialect=card.server.dialect,
        max_tokens=max_tokens,
        seed=card.seed,
        sampling=card.sampling_for(task.thinking),
        thinking_object=card.thinking.of(task.thinking),
        repeats=settings.repeats,
        limits=tuple(limits),
        sandbox=sandbox if task.runs_code else None,
    )


def groups(plans: Iterable[PartPlan], schedule: Schedule) -> list[list[PartPlan]]:
    """Parts that share the pool at a time, heaviest answers first.

    `default`: all with thinking off together, so that no slot idles between parts, then those with
    thinking on, alone, since their seconds are a result. `packed`: all together. `parts`: one
    after another.
    """
    plans = list(plans)
    if schedule == "parts":
        return [[plan] for plan in plans]
    heaviest = sorted(plans, key=lambda plan: -plan.max_tokens)
    if schedule == "packed":
        return [heaviest] if heaviest else []
    off = [plan for plan in heaviest if plan.thinking == "off"]
    on = [[plan] for plan in heaviest if plan.thinking == "on"]
    return [group for group in (off, *on) if group]
