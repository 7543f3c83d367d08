"""The values that travel from card to summary, frozen and closed.

    Item -> Request -> Completion -> Verdict -> Answer -> Summary, under one Contract a part

Every record is a pydantic model that refuses unknown fields. Shares run from 0 to 1, times are
seconds, moments are UTC in ISO 8601, hashes are lower-case hex sha256.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictInt, StrictStr

SUITE = "qualeval suite 1"
"""Name and version of lists, prompts, limits and verdict rules; raised when one of them changes."""

NOT_COMPARABLE = "not comparable with results on other lists or prompts"

PART_NAMES = ("mmlupro", "gpqa", "ifeval", "lcb", "ruler", "think")
"""The parts of the method in the order of its table."""

ItemId = StrictInt | StrictStr
ThinkingMode = Literal["off", "on"]
CutBy = Literal["max_tokens", "context", "unclosed_thinking"]
Status = Literal["ok", "incomplete"]
Json = dict[str, JsonValue]
Share = Annotated[float, Field(ge=0, le=1)]


class Record(BaseModel):
    """Base of all records: frozen, unknown fields refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Item(Record):
    """One question of a list. Tasks subclass it with what their prompt and grader need.

    `sha256` is the hash of the canonical row the question came from; `order` is, where options were
    reordered, the source slot shown at each letter.
    """

    id: ItemId
    stratum: str | None = None
    gold: JsonValue = None
    order: tuple[int, ...] | None = None
    sha256: str


class Request(Record):
    """One chat request: `body` is what is sent, apart from the fresh cache salt."""

    id: ItemId
    repeat: int = 0
    max_tokens: int
    body: Json

    @property
    def sha256(self) -> str:
        """Hash of the body in canonical form; a salt is never part of it."""
        return sha256_of(self.body)


class Usage(Record):
    """Token counts as the server reported them; None is "not reported", never 0."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None


class Completion(Record):
    """What came back for one request.

    `text` is the visible answer, `reasoning` what was thought before it, `reasoning_source` the
    field it came from (`reasoning`, `reasoning_content`, `content parts`), `tags` when it was cut
    out of the content, both joined by `+`, or `none`. `finish_reason` is as sent. `cut_by` is None
    for a finished answer. `seconds` runs from sending to the last byte.
    """

    text: str
    reasoning: str | None = None
    reasoning_source: str = "none"
    finish_reason: str | None
    cut_by: CutBy | None = None
    usage: Usage = Usage()
    cached_tokens: int | None = None
    seconds: float | None = None
    time_to_first_token: float | None = None
    attempts: int = 1
    ended: str | None = None

    @property
    def cut_off(self) -> bool:
        """True when the answer did not end by itself; such an answer is wrong."""
        return self.cut_by is not None

    @property
    def misrouted(self) -> bool:
        """True when a finished answer sits in the reasoning field and the content is empty."""
        from_field = self.reasoning_source not in ("none", "tags")
        return from_field and not self.cut_off and not self.text.strip()


class Verdict(Record):
    """What the grader decided and why.

    `rule` is the short name of the rule that decided, `reason` one sentence that a person can
    check. `partial` is a share shown beside the score and never mixed into it. `details` holds what
    one kind of grading knows beyond that.
    """

    right: bool
    cut_off: bool
    extracted: str | None = None
    rule: str
    reason: str
    partial: Share | None = None
    details: Json | None = None


class RawReply(Record):
    """One line of `<part>.gen.jsonl`: the key of an answer and its completion, ungraded."""

    id: ItemId
    repeat: int
    request_sha256: str
    attempts: int
    text: str
    reasoning: str | None
    reasoning_source: str
    finish_reason: str | None
    cut_by: CutBy | None
    usage: Usage
    cached_tokens: int | None
    seconds: float | None
    time_to_first_token: float | None
    ended: str | None

    @classmethod
    def of(cls, request: Request, completion: Completion) -> "RawReply":
        """The line for `completion`, the reply to `request`."""
        key = {"id": request.id, "repeat": request.repeat, "request_sha256": request.sha256}
        return cls.model_validate(key | dict(completion))

    def completion(self) -> Completion:
        """The completion inside, as the grader takes it."""
        fields = {name: getattr(self, name) for name in Completion.model_fields}
        return Completion.model_validate(fields)


class Answer(RawReply):
    """One line of `<part>.jsonl`: a raw reply, its item's facts and the verdict, side by side."""

    stratum: str | None
    gold: JsonValue
    order: tuple[int, ...] | None
    extracted: str | None
    rule: str
    right: bool
    partial: Share | None
    cut_off: bool
    reason: str
    details: Json | None

    @classmethod
    def of_verdict(cls, raw: RawReply, item: Item, verdict: Verdict) -> "Answer":
        """The answer to `item` made of its raw reply and verdict."""
        facts = {"stratum": item.stratum, "gold": item.gold, "order": item.order}
        return cls.model_validate(dict(raw) | facts | dict(verdict))


class FailedRequest(Record):
    """One line of `<part>.errors.jsonl`: a request that was given up, never a wrong answer."""

    id: ItemId
    repeat: int
    kind: str
    message: str
    attempts: int
    ended: str

    @classmethod
    def unjudged(cls, raw: RawReply, kind: str, message: str) -> "FailedRequest":
        """Stands for the answer to a request that was answered, and whose reply has no verdict."""
        facts = {"id": raw.id, "repeat": raw.repeat, "attempts": raw.attempts, "ended": raw.ended}
        why = {"kind": kind, "message": message}
        return cls.model_validate(facts | why | ({} if raw.ended else {"ended": ""}))


class InFlight(Record):
    """Requests at the server at once while a part ran: time-weighted mean, and most."""

    mean: float
    most: int


class Session(Record):
    """One start of the command on a part. Nothing here can make a resumed run be refused."""

    command: str
    started: str
    ended: str | None = None
    qualeval: str
    card_sha256: str
    items: int
    slots: int
    slots_source: str | None
    schedule: str
    alone: bool
    endpoints: tuple[str, ...]
    server: Json
    setup: Json | None
    in_flight: InFlight | None = None
    wall_time: float | None = None

    @property
    def servers(self) -> list[Json]:
        """What each server said of itself, in the order of the card's endpoints."""
        replicas = self.server.get("replicas")
        more = replicas if isinstance(replicas, list) else []
        return [self.server, *(one if isinstance(one, dict) else {} for one in more)]


class Contract(Record):
    """`<part>.contract.json`: every condition that could move the number, and who ran when."""

    conditions: Json
    conditions_sha256: str
    sessions: tuple[Session, ...] = ()


NO_SANDBOX = "NONE"
"""How a contract's `sandbox` begins where programs ran without one."""

INFRA_ERROR = "infra_error"
"""Kind of a FailedRequest that was answered, but whose verdict could not be had: our fault."""


NOT_JUDGED = "not_judged"
"""Kind of a FailedRequest that was answered, but whose program was not run yet."""


class Count(Record):
    """k of n."""

    right: int
    n: int


class AmongFinished(Record):
    """Right answers among the finished ones. Not a score: the cut ones are no random sample."""

    label: str = "of finished answers only, not a score"
    right: int
    n: int
    accuracy: Share | None
    ci_low: Share | None
    ci_high: Share | None


class CutOffRate(Record):
    """Share of answers that were cut off, with its 95 % Wilson interval."""

    share: Share
    ci_low: Share
    ci_high: Share


class CacheCheck(Record):
    """Whether the server reused a prompt: three states, and 0 is never printed for "not told"."""

    state: Literal["none cached", "cached tokens seen", "not reported by this server"]
    answers_with_cached_tokens: int | None
    cached_tokens: int | None


class Summary(Record):
    """`<part>.summary.json`: the numbers of one row. All None where a part is incomplete.

    `margin` is half the width of the interval from `ci_low` to `ci_high`, which is not centred on
    `accuracy`. `beside` are figures of other kinds, never mixed into the score. `rows` are the
    rows of the table where a part has several, each a summary of its own. `wall_time`,
    `median_seconds` are seconds. `bounds` are the shares that answers which are cut off or missing
    could at least and at most still give. `not_judged` replies have programs that were not run yet.
    `release` and `dates` tell which rows a list of the newest ones has.
    """

    part: str
    title: str
    subtitle: str
    label: str
    model: str
    suite: str = SUITE
    status: Status
    incomplete_because: str | None
    list: str
    sample_list: bool
    limits: tuple[str, ...]
    n: int
    repeats: int
    answered: int
    right: int
    accuracy: Share | None
    margin: Share | None
    ci_low: Share | None
    ci_high: Share | None
    ci_method: str | None
    confidence: float = 0.95
    cut_off: int
    cut_by: dict[str, int]
    cut_off_rate: CutOffRate | None
    errors: int
    error_kinds: dict[str, int]
    not_judged: int = 0
    among_finished: AmongFinished | None
    bounds: tuple[Share, Share]
    strata: dict[str, Count]
    beside: dict[str, Count]
    rules: dict[str, int]
    median_completion_tokens: float | None
    median_seconds: float | None
    in_flight: InFlight | None
    alone: bool
    schedule: str
    wall_time: float | None
    started: str | None
    finished: str | None
    server_starts: tuple[str | None, ...]
    cache_check: CacheCheck
    items_with_reasoning: int
    misrouted: int
    thinking: ThinkingMode
    thinking_object: Json | None
    max_tokens: int
    seed: int
    sampling: Json
    sampling_source: str | None
    prompt_cache: str
    sandbox: str | None = None
    release: str | None = None
    dates: tuple[str, str] | None = None
    conditions_sha256: str
    warnings: tuple[str, ...]
    rows: tuple["Summary", ...] = ()

    @property
    def replies(self) -> int:
        """Replies that were graded, could not be, or were not waited for."""
        return self.answered + self.error_kinds.get(INFRA_ERROR, 0) + self.not_judged


class Totals(Record):
    """Requests over all parts with thinking off, and how many of their answers were cut off."""

    requests: int
    cut_off: int
    share: Share | None


class RunSummary(Record):
    """`summary.json`: the summaries of all parts of a run. There is no overall score."""

    suite: str = SUITE
    label: str
    parts: dict[str, Summary]
    totals_thinking_off: Totals
    one_server_start: Literal["yes", "no", "not known"]


def key_of(id: ItemId, repeat: int) -> tuple[str, int]:
    """The key of an answer: ids are compared as text."""
    return str(id), repeat


def canonical(value: object) -> str:
    """JSON with sorted keys, no spaces and unescaped UTF-8: the form that is hashed."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256_of(value: object) -> str:
    """sha256 of the canonical JSON of `value` (lone surrogates hash by their escapes)."""
    return sha256_text(canonical(value))


def sha256_text(text: str) -> str:
    """sha256 of a text as UTF-8; half a surrogate pair, which UTF-8 has not, counts escaped."""
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def to_json(record: Record | Mapping[str, object]) -> str:
    """One line of pure-ASCII JSON: no character of a reply can end the line or fail to encode."""
    fields = record.model_dump() if isinstance(record, Record) else record
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def now() -> str:
    """This moment in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def seconds_between(start: str, end: str) -> float:
    """Seconds from one moment to another, both as `now` writes them."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def count_words(values: Sequence[str]) -> dict[str, int]:
    """How often each word occurs, most frequent first, ties by name."""
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
