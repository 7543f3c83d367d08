"""The text of the long-text prompts: all of it ours, all of it drawn by sha256.

Nothing is downloaded and nothing is random: the same item has the same words on every machine. A
`Draft` is a prompt without its filling. Its `units` (sentences, or coded words) fill it: `taken` of
them in the order of `stream`, and a few that close the last gap. These two are all it takes to make
a text again; a tokenizer is needed to find them (`ruler_length`), not to use them.
"""

import hashlib
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import Protocol

SENTENCES = (
    "The baker opens before the first train leaves.",
    "A grey cat sleeps under the stairs of the old library.",
    "Rain fell on the harbour all morning.",
    "Nobody remembers who planted the pear tree behind the school.",
    "The ferry was late again.",
    "Two gardeners argue about the best time to cut roses.",
    "Fresh bread stands on the window sill.",
    "The mill has not turned since the river changed its bed.",
    "Children draw boats on the pavement with yellow chalk.",
    "The postman walks.",
    "An old map of the valley hangs crooked in the hall.",
    "The lighthouse keeper writes long letters and sends none of them.",
    "Somebody left a blue umbrella at the station.",
    "In autumn the hills smell of smoke and wet leaves.",
    "The choir sings better when the windows are open.",
    "A carpenter mends the broken bench beside the pond.",
    "Snow lay on the roofs until the end of the month.",
    "The market closes early on quiet days.",
    "Her brother repairs clocks and never knows what time it is.",
    "Geese cross the field in a line.",
    "The teacher forgot her glasses on the piano.",
    "A small bridge leads over the brook to the orchard.",
    "Most of the houses in this street have green doors.",
    "The soup was too hot to eat.",
    "Wind moves the laundry between the two towers.",
    "The doctor rides a bicycle without a bell.",
    "Every summer the circus puts up its tent near the bakery.",
    "The shepherd counts slowly and begins anew.",
    "Fog hides the far end of the pier.",
    "There is always a chess board on the table in the inn.",
    "The tailor sews by the light of one lamp.",
    "Moss grows on the north side of the wall.",
)
"""What stands around the needles. Each is a line of its own, so that every border is the same."""

# No English word of six letters has one of these pairs in its middle.
_PAIRS = ("vk", "zk", "kz", "vz", "zv", "zf", "vg", "jv", "vj", "zj", "jz", "kj")
_FIRST, _VOWELS, _LAST = "bdfghklmnprstvz", "aeiou", "klmnprt"
DEPTHS = 10  # places that a needle can be at; ten items of a task have each of them once
NEEDLE_EVERY = 256  # tokens of a multikey prompt for each distractor
LEAST_WORDS = 80  # from here on the third word of a coded text is well ahead of the fourth


def digest(seed: str) -> bytes:
    """What everything is drawn by."""
    return hashlib.sha256(f"qualeval/ruler/v1/42/{seed}".encode()).digest()


def draw(seed: str, below: int) -> int:
    """A whole number from 0 to `below` - 1."""
    return int.from_bytes(digest(seed)) % below


def shuffled(seed: str, size: int) -> list[int]:
    """The numbers from 0 to `size` - 1 in a drawn order."""
    return sorted(range(size), key=[digest(f"{seed}/{i}") for i in range(size)].__getitem__)


def name(seed: str) -> str:
    """A name of six letters that is no word."""
    rest, letters = int.from_bytes(digest(seed)), ""
    for choices in (_FIRST, _VOWELS, _PAIRS, _VOWELS, _LAST):
        rest, chosen = divmod(rest, len(choices))
        letters += choices[chosen]
    return letters


def names(seed: str, size: int) -> list[str]:
    """Different names; of equal length, so that none is inside another."""
    return _different((name(f"{seed}/name/{n}") for n in count()), size)


def numbers(seed: str, size: int) -> list[str]:
    """Different numbers of seven digits."""
    return _different(
        (str(1_000_000 + draw(f"{seed}/number/{n}", 9_000_000)) for n in count()), size
    )


def _different(drawn: Iterator[str], size: int) -> list[str]:
    """The first `size` different values of an endless stream."""
    found: dict[str, None] = {}
    while len(found) < size:
        found[next(drawn)] = None
    return list(found)


# Coded words are of three lengths: were all as long in tokens as each other, only multiples of that
# could be filled. The letters added to a name keep it different from the others.
CODED = tuple(word + ("", "o", "ul")[n % 3] for n, word in enumerate(names("coded", 16)))


# Words around the coded ones, so that each of these stands between two spaces.
BEGINS, ENDS = "Here the coded text begins", "and here it ends."


@dataclass(frozen=True, slots=True)
class Context:
    """Where a unit stands: it is counted between `before` and `after`, as in a prompt."""

    before: str
    after: str
    gap: str

    def text(self, unit: str | None) -> str:
        """The context, with or without the unit."""
        return self.before + (unit + self.gap if unit else "") + self.after


class Draft(Protocol):
    """A prompt without its filling."""

    @property
    def id(self) -> str:
        """The id of its item, by which all of it is drawn."""

    @property
    def expected(self) -> tuple[str, ...]:
        """Every value that a right answer names."""

    @property
    def distractors(self) -> tuple[str, ...]:
        """Values of the same kind that a right answer does not name."""

    @property
    def units(self) -> Sequence[str]:
        """What may fill it."""

    @property
    def context(self) -> Context:
        """Where units stand."""

    @property
    def least(self) -> int:
        """How many units it needs to be a fair question."""

    def stream(self) -> Iterator[int]:
        """Units in the order in which they are taken, without end."""

    def closing(self, turn: int) -> list[int]:
        """Units that may close the last gap, each once; another order every turn."""

    def text(self, taken: int, closing: Sequence[int]) -> str:
        """The whole prompt, filled."""


@dataclass(frozen=True, slots=True)
class LinesDraft:
    """Needles, each with its depth from 0 to 1, among sentences: a line each."""

    id: str
    head: str
    needles: tuple[tuple[float, str], ...]
    question: str
    expected: tuple[str, ...]
    distractors: tuple[str, ...]
    units: Sequence[str] = SENTENCES
    context: Context = Context(f"{SENTENCES[0]}\n", SENTENCES[1], "\n")
    least: int = 0

    def stream(self) -> Iterator[int]:
        """All sentences in a drawn order, then all of them in another."""
        for block in count():
            yield from shuffled(f"{self.id}/lines/{block}", len(self.units))

    def closing(self, turn: int) -> list[int]:
        """Any sentence."""
        return shuffled(f"{self.id}/closing/{turn}", len(self.units))

    def text(self, taken: int, closing: Sequence[int]) -> str:
        """Head, the sentences with the needles at their depths, question."""
        filling = [self.units[unit] for unit in (*islice(self.stream(), taken), *closing)]
        lines: list[str] = []
        done = 0
        for depth, needle in sorted(self.needles, key=lambda placed: placed[0]):
            place = int(depth * len(filling))
            lines += filling[done:place]
            lines.append(needle)
            done = place
        lines += filling[done:]
        return f"{self.head}\n\n" + "\n".join(lines) + f"\n\n{self.question}"


@dataclass(frozen=True, slots=True)
class WordsDraft:
    """Coded words, most frequent first in `ranks`, in a drawn order after each other."""

    id: str
    head: str
    ranks: tuple[int, ...]
    question: str
    expected: tuple[str, ...]
    distractors: tuple[str, ...]
    units: Sequence[str] = CODED
    context: Context = Context(f"{BEGINS} ", ENDS, " ")
    least: int = LEAST_WORDS

    def stream(self) -> Iterator[int]:
        """Words by Zipf's law, the share of rank r being 1 / (r + 1)² of the first one's fourfold.

        Each next word is the one that lacks most to its share (Sainte-Laguë), in whole numbers, so
        that the ranks hold at any length. The law and the square are RULER's, which puts dots in
        the place of its first word.
        """
        heap = [((rank + 2) ** 2, rank, 1) for rank in range(len(self.ranks))]
        while True:
            _, rank, odd = heap[0]
            yield self.ranks[rank]
            heapq.heapreplace(heap, ((odd + 2) * (rank + 2) ** 2, rank, odd + 2))

    def closing(self, turn: int) -> list[int]:
        """Rare words only: they never come near the three that are asked."""
        rare = self.ranks[5:]
        return [rare[place] for place in shuffled(f"{self.id}/closing/{turn}", len(rare))]

    def text(self, taken: int, closing: Sequence[int]) -> str:
        """Head, all words in a drawn order, question."""
        words = [self.units[unit] for unit in (*islice(self.stream(), taken), *closing)]
        order = shuffled(f"{self.id}/words", len(words))
        coded = " ".join((BEGINS, *(words[place] for place in order), ENDS))
        return f"{self.head}\n\n{coded}\n\n{self.question}"


def depth(index: int, needle: int, needles: int) -> float:
    """The depth of one of an item's needles, which stand in order.

    Over ten items each of the DEPTHS times `needles` depths occurs once, in steps of three so that
    the first few items reach from top to bottom.
    """
    return (needle * DEPTHS + index * 3 % DEPTHS + 0.5) / (needles * DEPTHS)


def anywhere(seed: str, size: int) -> list[float]:
    """Drawn depths, in order."""
    return sorted(draw(f"{seed}/depth/{n}", 10_000) / 10_000 for n in range(size))
