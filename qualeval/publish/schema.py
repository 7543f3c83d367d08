"""What a public record may hold. A field that is not named here is not public.

Fields have a class, because the model has not seen the operator's machine:

    opaque       numbers, hashes, flags, times: their form is checked, their text is not searched
    label        ids and words that scores are counted by: searched, and never changed, so that a
                 finding holds the file back
    model_text   what the model wrote, or a grader said of it
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from qualeval.publish.checker import Checked, Checker, Finding, Place
from qualeval.publish.rules import SEVERITY, Action, TextClass, placeholder
from qualeval.records import Answer, CutBy, ItemId, Json, Record, Share, Usage, to_json

FieldClass = Literal["opaque", "label", "model_text"]

FIELDS: dict[str, FieldClass] = {
    "id": "label",
    "repeat": "opaque",
    "request_sha256": "opaque",
    "attempts": "opaque",
    "text": "model_text",
    "reasoning": "model_text",
    "reasoning_source": "label",
    "finish_reason": "label",
    "cut_by": "opaque",
    "usage": "opaque",
    "cached_tokens": "opaque",
    "seconds": "opaque",
    "time_to_first_token": "opaque",
    "ended": "opaque",
    "stratum": "label",
    "gold": "label",
    "order": "opaque",
    "extracted": "model_text",
    "rule": "label",
    "right": "opaque",
    "partial": "opaque",
    "cut_off": "opaque",
    "reason": "model_text",
    "details": "model_text",
}
"""Every public field of an Answer, in its order. A new one is not public until it is here."""

BLIND_FIELDS = ("text", "reasoning")
"""Fields whose text can quote a question; a verdict on a letter is in our own words."""

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Moment = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT[0-9:.]{5,15}(?:Z|[+-]\d\d:\d\d)$")]


class Redaction(Record):
    """One place where something was taken out: `start` counts code points of the public field."""

    field: str
    rule: str
    start: int
    length_bucket: str


class PublishedAnswer(Record):
    """One line of a public answer file: the fields of Answer under the same names.

    A withheld record keeps its id, verdict and numbers; its text is null and `withheld` says why.
    Without `redactions` and `withheld` a line is the one of the run, byte for byte.
    """

    id: ItemId
    repeat: int
    request_sha256: Sha256 | None
    attempts: int
    text: str | None
    reasoning: str | None
    reasoning_source: str
    finish_reason: str | None
    cut_by: CutBy | None
    usage: Usage
    cached_tokens: int | None
    seconds: float | None
    time_to_first_token: float | None
    ended: Moment | None
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
    redactions: tuple[Redaction, ...] = ()
    withheld: str | None = None

    @property
    def line(self) -> str:
        """The record as a line of a file, without its feed."""
        fields = self.model_dump()
        if not self.redactions:
            del fields["redactions"]
        if self.withheld is None:
            del fields["withheld"]
        return to_json(fields)

    @property
    def whole(self) -> bool:
        """Whether all that a grader reads is as the model gave it."""
        return self.withheld is None and not any(r.field in BLIND_FIELDS for r in self.redactions)

    def answer(self) -> Answer:
        """The answer as far as it is public, for counting."""
        fields = {name: getattr(self, name) for name in FIELDS}
        fields["text"] = self.text or ""
        fields["request_sha256"] = self.request_sha256 or ""
        return Answer.model_validate(fields)


def published(
    answer: Answer, checker: Checker, part: str, *, blind: bool, show_request: bool
) -> tuple[PublishedAnswer | None, Action, list[Finding]]:
    """The public record of an answer, what it came to, and every finding.

    No record where one finding holds the whole file back. `show_request` is False where the hash of
    a request would give away what was redacted in the contract.
    """
    stored = answer.model_dump()
    fields: dict[str, object] = {name: stored[name] for name in FIELDS}
    found: list[Finding] = []
    redactions: list[Redaction] = []
    action: Action = "allowed"
    withhold: str | None = None
    for name, kind in FIELDS.items():
        if kind == "opaque" or stored[name] is None:
            continue
        text_class: TextClass = "operator_text" if kind == "label" else "model_text"
        place = Place(part, name, text_class, blind and name in BLIND_FIELDS)
        fields[name], checks = checker.check_json(stored[name], place)
        for checked in checks:
            worst = checked.action
            if kind == "label" and SEVERITY[worst] > SEVERITY["note"]:
                worst = "hold"
            found += _as_decided(checked, kind)
            action = max(action, worst, key=SEVERITY.__getitem__)
            if worst == "withhold" and withhold is None:
                own = (f.rule for f in checked.findings if f.action == "withhold")
                withhold = next(own, "gated-overlap")
            redactions += _redactions(checked)
    if action == "hold":
        return None, action, found
    if not show_request:
        fields["request_sha256"] = None
    if withhold is not None:
        fields |= {"text": None, "withheld": withhold}
        redactions = [r for r in redactions if r.field not in BLIND_FIELDS]
        if stored["reasoning"] is not None:
            fields["reasoning"] = placeholder(withhold)
    record = PublishedAnswer.model_validate(fields | {"redactions": tuple(redactions)})
    return record, action, found


def _as_decided(checked: Checked, kind: FieldClass) -> Iterator[Finding]:
    """The findings, with what really follows: a label is never redacted."""
    for finding in checked.findings:
        if kind == "label" and SEVERITY[finding.action] > SEVERITY["note"]:
            yield replace(finding, action="hold")
        elif checked.action == "withhold" and finding.action == "redact":
            yield replace(finding, action="withhold")
        else:
            yield finding


def _redactions(checked: Checked) -> Iterable[Redaction]:
    return [
        Redaction(field=f.field, rule=f.rule, start=start, length_bucket=f.length_bucket)
        for start, f in checked.shown
    ]
