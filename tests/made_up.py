"""Made-up values for unit tests: a card, a task, a contract, answers. Nothing here is asked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from qualeval.card import Card, parse_card
from qualeval.contract import Conditions, ListCondition, PromptCondition, new_contract
from qualeval.records import (
    SUITE,
    Answer,
    Contract,
    FailedRequest,
    InFlight,
    Session,
    Summary,
    ThinkingMode,
    Usage,
)
from qualeval.summarize import summarize
from qualeval.tasks import mmlupro

MOMENT = "2026-11-30T12:00:00.000Z"


def card(**fields: Any) -> Card:
    """A small good card, with `fields` on top."""
    server = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "dialect": "vllm", "slots": 4}
    return parse_card({"label": "made up", "server": server, **fields}, "card")


@dataclass(frozen=True, slots=True)
class StandInTask:
    """What a summary needs of a task: names and limits."""

    name: str
    title: str
    subtitle: str
    max_tokens: int = 48
    thinking: ThinkingMode = "off"
    shown: Mapping[str, tuple[int, int]] | None = None

    def beside(self, answer: Answer) -> Mapping[str, tuple[int, int]]:
        """The same figures for every answer."""
        return self.shown or {}

    def __getattr__(self, name: str) -> Any:
        return getattr(mmlupro.TASK, name)


LETTERS = StandInTask("mmlupro", "MMLU-Pro", "400 fixed questions, letter only")


def session(**fields: Any) -> Session:
    """One session that ended well, with `fields` on top."""
    known: dict[str, Any] = {
        "command": "qualeval run card.json",
        "started": MOMENT,
        "ended": "2026-11-30T12:01:00.000Z",
        "qualeval": "0.1.0",
        "card_sha256": "0" * 64,
        "items": 1_000_000,
        "slots": 4,
        "slots_source": "card",
        "schedule": "default",
        "alone": True,
        "endpoints": ("http://127.0.0.1:9/v1",),
        "server": {"models": ["m"], "process_started": "2026-11-30T11:00:00Z"},
        "setup": None,
        "in_flight": InFlight(mean=3.5, most=4),
        "wall_time": 60.0,
    }
    return Session.model_validate(known | fields)


def conditions(task: StandInTask, items: int, **fields: Any) -> Conditions:
    """The conditions of a part with so many items, with `fields` on top."""
    known: dict[str, Any] = {
        "suite": SUITE,
        "part": task.name,
        "list": ListCondition(id="list", kind="official", sha256="0" * 64, items=items),
        "prompt": PromptCondition(template="{question}", sha256="0" * 64),
        "request": {},
        "sampling": {"temperature": 1.0},
        "sampling_source": "model card",
        "seed": 42,
        "repeats": 1,
        "max_tokens": task.max_tokens,
        "limits": (),
        "thinking": task.thinking,
        "thinking_object": {"chat_template_kwargs": {"enable_thinking": task.thinking == "on"}},
        "prompt_cache": "off: a fresh cache_salt in every request",
        "model": "m",
        "dialect": "vllm",
        "grader": "letter 1",
    }
    return Conditions.model_validate(known | fields)


def contract(
    task: StandInTask, items: int, sessions: Iterable[Session] = (), **fields: Any
) -> Contract:
    """A contract with these sessions, or with one that ended well."""
    made = new_contract(conditions(task, items, **fields))
    return made.model_copy(update={"sessions": tuple(sessions) or (session(),)})


def answer(id: int | str, **fields: Any) -> Answer:
    """A right answer of 2 tokens, with `fields` on top."""
    known: dict[str, Any] = {
        "id": id,
        "repeat": 0,
        "request_sha256": "0" * 64,
        "attempts": 1,
        "text": "B",
        "reasoning": None,
        "reasoning_source": "none",
        "finish_reason": "stop",
        "cut_by": None,
        "usage": Usage(prompt_tokens=100, completion_tokens=2),
        "cached_tokens": None,
        "seconds": 0.5,
        "time_to_first_token": None,
        "ended": "2026-11-30T12:00:30.000Z",
        "stratum": None,
        "gold": "B",
        "order": None,
        "extracted": "B",
        "rule": "bare",
        "right": True,
        "partial": None,
        "cut_off": False,
        "reason": "The whole reply is the letter B.",
        "details": None,
    }
    return Answer.model_validate(known | fields)


WRONG: dict[str, Any] = {"right": False, "extracted": "C", "text": "C"}
CUT: dict[str, Any] = {
    "right": False,
    "cut_off": True,
    "cut_by": "max_tokens",
    "finish_reason": "length",
    "extracted": None,
    "rule": "cut_off",
}


def answers(right: int, wrong: int = 0, cut: int = 0, **fields: Any) -> list[Answer]:
    """So many right, wrong and cut-off answers, with ids from 0 up."""
    kinds: list[dict[str, Any]] = [{}] * right + [WRONG] * wrong + [CUT] * cut
    return [answer(number, **(kind | fields)) for number, kind in enumerate(kinds)]


def failure(id: int | str, repeat: int = 0, kind: str = "timeout") -> FailedRequest:
    """A request that was given up."""
    return FailedRequest(
        id=id, repeat=repeat, kind=kind, message="no reply", attempts=5, ended=MOMENT
    )


def summary(
    given: Iterable[Answer],
    *,
    task: StandInTask = LETTERS,
    n: int | None = None,
    failures: Iterable[FailedRequest] = (),
    sessions: Iterable[Session] = (),
    **fields: Any,
) -> Summary:
    """The summary of these answers to a list of `n` items (as many as answers, if not given)."""
    given = list(given)
    made = contract(task, len(given) if n is None else n, sessions, **fields)
    return summarize(task, "made up", made, [*given, *failures])


def thinking(task: StandInTask) -> StandInTask:
    """The same task with thinking on."""
    return replace(task, thinking="on", max_tokens=16_384)
