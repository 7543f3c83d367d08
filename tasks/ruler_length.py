"""Exact lengths: fill a draft until the whole text has as many tokens as wanted.

Tokens of parts do not add up (a full stop and a line break can be one token), so every unit is
counted once where it stands, between two neighbours as in a prompt. Then whole texts are counted:
the draft without filling, to know the gap; the filled one, which is the proof. Units of several
lengths close the gap exactly, each used once; no padding. What is still off moves the aim and is
counted again, at most ROUNDS times. Where a length cannot be hit, the nearest below is kept.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qualeval.errors import CardError
from qualeval.tasks.ruler_text import Context, Draft

Count = Callable[[str], int]
"""Tokens of a text, special tokens not counted."""

ROUNDS = 6
PATIENCE = 3  # rounds that may end above before the aim is lowered by more than what was too much
CLOSING = 3  # longest units that the gap first has room for when it is closed; one more each round
UNBELIEVABLE = 64  # tokens short, after all rounds: not a border but a counter that does not count
WHERE = (
    "a model's tokenizer.json lies beside its weights, in the folder that is served or among the "
    "files of its repository on the hub"
)


@dataclass(slots=True)
class Meter:
    """A tokenizer as one run uses it: counts texts, and each unit only once.

    `calls` is the number of texts counted so far; with a server's /tokenize each is a round trip.
    """

    count: Count
    calls: int = 0
    _costs: dict[tuple[Context, str], int] = field(default_factory=dict)
    _bare: dict[Context, int] = field(default_factory=dict)

    def __call__(self, text: str) -> int:
        """Tokens of a text."""
        self.calls += 1
        return self.count(text)

    def cost(self, unit: str, context: Context) -> int:
        """Tokens that a unit adds where it stands. Raises CardError when it adds none."""
        if (context, unit) not in self._costs:
            if context not in self._bare:
                self._bare[context] = self(context.text(None))
            cost = self(context.text(unit)) - self._bare[context]
            if cost < 1:
                raise CardError(
                    f"tokenizer: counts {cost} tokens for {unit!r}: this is no tokenizer for text, "
                    f"or it cuts texts; {WHERE}"
                )
            self._costs[context, unit] = cost
        return self._costs[context, unit]

    @classmethod
    def of(cls, count: "Count | Meter") -> "Meter":
        """A meter of a counter; one that is a meter already stays what it is."""
        return count if isinstance(count, cls) else cls(count)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A filled text with its count; `rounds` is how many whole texts were counted for it."""

    text: str
    taken: int
    closing: tuple[int, ...]
    tokens: int
    rounds: int


def counter(path: Path) -> Count:
    """Counts by a tokenizer.json: special tokens off, truncation and padding in it switched off.

    Raises CardError saying where to find the file.
    """
    from tokenizers import Tokenizer

    if not path.is_file():
        raise CardError(f"tokenizer: there is no file {path}; {WHERE}")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exceptions
        raise CardError(
            f"tokenizer: {path} cannot be read as a tokenizer.json ({error}); {WHERE}"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return count


def file_sha256(path: Path) -> str:
    """sha256 of a tokenizer.json, which tells whose lengths these are."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def fit(draft: Draft, target: int, meter: Meter) -> Fitted:
    """The draft filled to exactly `target` tokens, or to the nearest below that was found.

    Raises CardError when the target is too short for the draft, or the counts make no sense.
    """
    fixed = meter(draft.text(0, ()))
    if fixed > target:
        raise CardError(
            f"lengths: {target:,} tokens are too few for '{draft.id}': "
            f"its fixed text alone has {fixed:,}"
        )
    costs = [meter.cost(unit, draft.context) for unit in draft.units]
    aim, best = target - fixed, None
    for turn in range(1, ROUNDS + 1):
        taken, closing = _filling(draft, max(aim, 0), turn, costs)
        if taken < draft.least:
            raise CardError(
                f"lengths: {target:,} tokens are too few for '{draft.id}': "
                f"they hold fewer than the {draft.least} units that it needs"
            )
        text = draft.text(taken, closing)
        tokens = meter(text)
        if tokens <= target and (best is None or tokens > best.tokens):
            best = Fitted(text, taken, closing, tokens, turn)
        if tokens == target:
            break
        aim += target - tokens
        if best is None and turn >= PATIENCE:
            aim -= max(costs) * 2 ** (turn - PATIENCE)
    if best is None or target - best.tokens > max(UNBELIEVABLE, max(costs)):
        raise CardError(
            f"tokenizer: no text of {target:,} tokens could be made for '{draft.id}', nor one "
            f"just below; the last one counted {tokens:,}. Does the tokenizer cut texts?"
        )
    return Fitted(best.text, best.taken, best.closing, best.tokens, turn)


def _filling(
    draft: Draft, budget: int, turn: int, costs: Sequence[int]
) -> tuple[int, tuple[int, ...]]:
    """How many units to take, and the units that close what is then left of the budget."""
    order = draft.closing(turn)
    room = (CLOSING + turn - 1) * max(costs[unit] for unit in order)
    taken = 0
    for unit in draft.stream():
        if budget - costs[unit] < room:
            break
        budget -= costs[unit]
        taken += 1
    return taken, _closing(budget, order, costs)


def _closing(budget: int, order: Sequence[int], costs: Sequence[int]) -> tuple[int, ...]:
    """Units, each once, that cost the budget exactly, or as near below as can be.

    `by[s]` is the unit with which a sum of s was first reached; the sum before it was reached with
    earlier units only, so no unit is used twice.
    """
    by: list[int | None] = [None] * (budget + 1)
    for unit in order:
        cost = costs[unit]
        for total in range(budget, cost - 1, -1):
            if by[total] is None and (total == cost or by[total - cost] is not None):
                by[total] = unit
        if by[budget] is not None:
            break
    total = max((total for total in range(1, budget + 1) if by[total] is not None), default=0)
    chosen = []
    while total:
        last = by[total]
        assert last is not None
        chosen.append(last)
        total -= costs[last]
    return tuple(chosen)
