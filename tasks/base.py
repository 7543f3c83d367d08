"""What a task is: small enough to check in two minutes; nothing about HTTP, files or slots."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from qualeval.records import Answer, Completion, Item, ItemId, Json, ThinkingMode, Verdict
from qualeval.sandbox.values import RunCode

Row = Mapping[str, Any]
"""One row of a data set as it is stored there."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Rows that a list may be drawn from, and how many were left out for which reason."""

    rows: tuple[Row, ...]
    left_out: Mapping[str, int]


def row_of(*columns: str) -> Callable[[Row], Json]:
    """A canonical row made of these columns as stored; no value is changed."""
    return lambda row: {column: row[column] for column in columns}


LeakPolicy = Literal["open", "no_prompt", "gated"]
"""What may be published of a question: its text; no text, since its rights are not clear; no text,
and nothing that quotes it.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """A data set on the hub that official lists are drawn from.

    `columns` are kept in the list cache; `canonical` makes of a row what is hashed to pin it;
    `stratum` is what lists are drawn by. `clean` leaves out rows that cannot be asked.
    """

    name: str
    dataset: str
    config: str | None
    split: str
    id_field: str
    columns: tuple[str, ...]
    canonical: Callable[[Row], Json]
    stratum: Callable[[Row], str]
    clean: Callable[[Iterable[Row]], Pool]
    leak_policy: LeakPolicy = "open"
    archive_password: str | None = None

    @property
    def gated(self) -> bool:
        """Whether its text must never leave the machine."""
        return self.leak_policy == "gated"


@dataclass(frozen=True, slots=True)
class Draw:
    """How the official list of a task is drawn from its source: sorted by the sha256 of
    `qualeval/<namespace>/v1/42/<id>` within each stratum, `size` rows in all (None: every row).
    """

    namespace: str
    size: int | None


@dataclass(frozen=True, slots=True)
class Newest:
    """An official list of the `size` newest rows of a source: `date_field` descending, then id
    ascending as text, out of the rows that the source's `clean` keeps.

    No pin of it can be shipped. The first fetch or import writes one, the lock, which holds from
    then on. `files` is the pattern of the names that the rows have on the hub, `required` are the
    columns that a row must have, `releases` tell a release by its number of rows, and `tests`
    counts what a row is checked by.
    """

    size: int
    date_field: str
    files: str
    required: tuple[str, ...]
    releases: Mapping[int, str]
    tests: Callable[[Item], int]


class OneRow:
    """What a task is that has a list, and one row in the table."""

    __slots__ = ()

    @property
    def maker(self) -> None:
        """Its list is fetched or brought, not made."""
        return None

    def row_of(self, id: ItemId) -> str | None:
        """All items count in one row."""
        return None

    def row_names(self, row: str, items: int) -> tuple[str, str]:
        """There are no rows to name."""
        raise ValueError(f"this part has no row '{row}'")

    def prompt_tokens(self, item: Item) -> int | None:
        """Not known without a tokenizer."""
        return None


class ReadOnly:
    """What a task is whose grader only reads the answer."""

    __slots__ = ()

    @property
    def runs_code(self) -> bool:
        """No program of the model is run."""
        return False

    def lasting(self, verdict: Json) -> Json:
        """All of a verdict comes out again."""
        return verdict


Count = Callable[[str], int]
"""Tokens of a text by the model's own tokenizer, without special tokens."""


class Maker(Protocol):
    """Makes the items of a part whose texts depend on the model's tokenizer."""

    def __call__(
        self,
        lengths: Sequence[int],
        per_task: int,
        *,
        count: Count,
        tokenizer_sha256: str | None,
    ) -> Iterator[Item]:
        """The items, length by length."""


class Task(Protocol):
    """One benchmark: its row, its limits, its items, its prompt, its grader."""

    @property
    def name(self) -> str:
        """Name of the part."""

    @property
    def title(self) -> str:
        """First line of its row in the table."""

    @property
    def subtitle(self) -> str:
        """Second line of its row: what is asked, for the published list and limits."""

    @property
    def max_tokens(self) -> int:
        """Tokens an answer may have, reasoning included."""

    @property
    def thinking(self) -> ThinkingMode:
        """Whether the model is asked to think."""

    @property
    def grader(self) -> str:
        """Name and version of the grader."""

    @property
    def grader_notes(self) -> tuple[str, ...]:
        """Where the grader knowingly leaves a reference; stated in the contract."""

    @property
    def template(self) -> str:
        """The prompt with its slots; hashed into the contract."""

    @property
    def verdict_fields(self) -> tuple[str, ...]:
        """Fields of a verdict, or of its details, that `grade-file` writes beside the id."""

    def beside(self, answer: Answer) -> Mapping[str, tuple[int, int]]:
        """Counts (k, n) that one answer adds to figures shown beside the score; often none."""

    @property
    def source(self) -> Source:
        """Where official rows come from."""

    @property
    def draw(self) -> Draw | Newest:
        """How the official list was drawn."""

    def prepare(self) -> None:
        """Load what grading needs. Raises QualevalError when something is missing, so that a run
        finds out before it has cost server time.
        """

    @property
    def maker(self) -> Maker | None:
        """What makes the items where no list is fetched; None for lists."""

    def row_of(self, id: ItemId) -> str | None:
        """Key of the table row that an item counts in; None where the part is one row."""

    def row_names(self, row: str, items: int) -> tuple[str, str]:
        """Title and subtitle of a row that holds so many items."""

    def prompt_tokens(self, item: Item) -> int | None:
        """Tokens of an item's prompt without the template, where they are known."""

    def official_item(self, row: Row) -> Item:
        """The item that a row of the source makes. Raises ValueError when it makes none."""

    def item(self, row: Row) -> Item:
        """The item that a row of a user's or a sample list makes. Raises ValueError."""

    def messages(self, item: Item) -> tuple[Json, ...]:
        """The chat messages that ask the item."""

    @property
    def runs_code(self) -> bool:
        """Whether grading runs programs that the model wrote, and needs `run_code` for it."""

    def lasting(self, verdict: Json) -> Json:
        """The fields of a verdict (or of an answer) without what is measured, such as times: what
        another grading has to find again.
        """

    def grade(self, item: Item, completion: Completion, run_code: RunCode | None = None) -> Verdict:
        """The verdict on a completion: a function of both, and of what `run_code` says of the
        programs in it. Raises SandboxError when a program could not be run: then there is no
        verdict.
        """
