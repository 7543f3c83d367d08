"""Lists that are made for a model instead of fetched: their texts depend on its tokenizer.

Tokens are counted by the card's `tokenizer` file, or else by the server's `/tokenize` where it has
one. What was made is kept in the run as rows of some hundred bytes, from which the texts are made
again without either.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from qualeval.card import Dialect, PartSettings
from qualeval.client import ModelClient
from qualeval.errors import CardError, ListError
from qualeval.lists import ItemList, items_of_file
from qualeval.pins import list_sha256
from qualeval.server_facts import count_text
from qualeval.tasks.base import Count, Maker, Task
from qualeval.tasks.ruler_items import LENGTHS, PER_TASK, RulerItem, row_of_item
from qualeval.tasks.ruler_length import WHERE, counter, file_sha256

SAMPLE_LENGTHS = (1024,)
SAMPLE_PER_TASK = 2

ESTIMATED = "estimated at 4 characters a token"
"""What stands for a tokenizer where a sample list is made and nothing counts tokens."""


@dataclass(frozen=True, slots=True)
class Counting:
    """What counts tokens, and whose it is: the sha256 of a file, or None for a server."""

    count: Count
    tokenizer_sha256: str | None


ESTIMATE = Counting(lambda text: -(-len(text) // 4), ESTIMATED)


def counting_of_file(path: Path) -> Counting:
    """A tokenizer.json. Raises CardError saying where to find one."""
    return Counting(counter(path), file_sha256(path))


@contextmanager
def counting_of_server(
    base_url: str, dialect: Dialect, model: str, api_key: str | None
) -> Iterator[Counting]:
    """A server's `/tokenize`. Raises CardError when this server has none."""
    from anyio.from_thread import start_blocking_portal

    with start_blocking_portal() as portal:
        client = portal.call(lambda: _opened(ModelClient(base_url, api_key=api_key)))

        def count(text: str) -> int:
            found = portal.call(count_text, client, dialect, model, text)
            if found is None:
                raise CardError(
                    f"tokenizer: is not given, and {base_url} does not count tokens for us; "
                    f"{WHERE}; or leave the part out (--parts)"
                )
            return found

        try:
            yield Counting(count, None)
        finally:
            portal.call(client.__aexit__, None, None, None)


async def _opened(client: ModelClient) -> ModelClient:
    return await client.__aenter__()


@dataclass(frozen=True, slots=True)
class Making:
    """What lists are made with beside a card: the run that may hold a copy of one, and a server
    that counts tokens, asked only when it is needed.
    """

    kept_in: Path | None = None
    counting: Callable[[], Counting] | None = None


def load_or_make(
    task: Task, choice: str, settings: PartSettings, tokenizer: Path | None, making: Making
) -> ItemList:
    """The list of a made part: the one kept in the run if it is what is asked for, else a new one.

    Raises ListError for a list of the user's own, CardError when nothing can count tokens; a sample
    list is then made by an estimate, and says so.
    """
    if choice not in ("official", "sample"):
        raise ListError(f"part '{task.name}': takes no list of its own; set lengths and per_task")
    lengths = settings.lengths or (SAMPLE_LENGTHS if choice == "sample" else LENGTHS)
    per_task = settings.per_task or (SAMPLE_PER_TASK if choice == "sample" else PER_TASK)
    counting, sha256 = making.counting, None
    if tokenizer is not None:
        by_file = counting_of_file(tokenizer)
        counting, sha256 = (lambda: by_file), by_file.tokenizer_sha256
    items = _kept_items(task, making.kept_in, lengths, per_task, sha256)
    if items is None:
        assert task.maker is not None
        try:
            by = _called(counting)
            items = _made_items(task.maker, lengths, per_task, by)
        except CardError:
            if choice != "sample" or tokenizer is not None:
                raise
            items = _made_items(task.maker, lengths, per_task, ESTIMATE)
    counted_by = _counted_by(items)
    return ItemList(
        id=f"sample/{task.name}" if choice == "sample" else f"qualeval/{task.name}-lite/v1",
        kind="sample" if choice == "sample" else "official",
        items=items,
        sha256=list_sha256(item.sha256 for item in items),
        origin={"from": "made"},
        kept_rows=tuple(row_of_item(item) for item in items),
        tokenizer_sha256=None if counted_by == ESTIMATED else counted_by,
        token_counts=_token_counts(counted_by),
    )


def _counted_by(items: tuple[RulerItem, ...]) -> str | None:
    """sha256 of the tokenizer.json that items were made by, None where a server counted, or
    ESTIMATED.
    """
    made = items[0].made if items else None
    return made.tokenizer_sha256 if made else None


def _token_counts(counted_by: str | None) -> str:
    """Who counted, in words for the contract."""
    if counted_by is None:
        return "server /tokenize"
    return ESTIMATED if counted_by == ESTIMATED else "tokenizer.json"


def _kept_items(
    task: Task,
    folder: Path | None,
    lengths: tuple[int, ...],
    per_task: int,
    tokenizer_sha256: str | None,
) -> tuple[RulerItem, ...] | None:
    """The items in the run's own copy; None when there is none, or it is of another tokenizer."""
    kept = folder / f"{task.name}.items.jsonl" if folder else None
    if kept is None or not kept.exists():
        return None
    items = tuple(item for item in items_of_file(task, kept) if isinstance(item, RulerItem))
    made = [item.made for item in items if item.made is not None]
    of_this = all(tokenizer_sha256 in (None, one.tokenizer_sha256) for one in made)
    targets = [one.target for one in made]
    wanted = [target for target in lengths for _ in range(4 * per_task)]
    return items if of_this and targets == wanted else None


def _called(counting: Callable[[], Counting] | None) -> Counting:
    if counting is None:
        raise CardError(f"tokenizer: is not given, and no server is asked here; {WHERE}")
    return counting()


def _made_items(
    maker: Maker,
    lengths: tuple[int, ...],
    per_task: int,
    by: Counting,
) -> tuple[RulerItem, ...]:
    made = maker(lengths, per_task, count=by.count, tokenizer_sha256=by.tokenizer_sha256)
    return tuple(item for item in made if isinstance(item, RulerItem))


def made_limits(settings: PartSettings, made: ItemList) -> list[str]:
    """What is not the method's about a made list."""
    found = []
    if settings.lengths and settings.lengths != LENGTHS:
        asked = ", ".join(f"{length:,}" for length in settings.lengths)
        found.append(f"lengths {asked} instead of {', '.join(f'{n:,}' for n in LENGTHS)}")
    if settings.per_task and settings.per_task != PER_TASK:
        found.append(f"{settings.per_task} a task instead of {PER_TASK}")
    if made.token_counts == ESTIMATED:
        found.append(f"lengths {ESTIMATED}")
    return found
