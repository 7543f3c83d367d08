"""What all tasks say alike: of an answer that is wrong whatever its text says, and of details."""

from pydantic import JsonValue

from qualeval.records import Completion, Json

CUT_BY_WORDS = {
    "max_tokens": "the token limit",
    "context": "the end of the context",
    "unclosed_thinking": "thinking that never ended",
}


def wrong_unread(completion: Completion) -> tuple[str, str] | None:
    """(rule, reason) of an answer that was cut off or came in the reasoning field; None of one that
    is graded by its text. Rule 1 of the method: what was cut off is wrong, and counted apart.
    """
    if completion.cut_by is not None:
        return "cut_off", f"The answer was cut off by {CUT_BY_WORDS[completion.cut_by]}."
    if completion.misrouted:
        return "misrouted", "The answer is empty; the whole reply came in the reasoning field."
    return None


def listed(details: Json, name: str) -> list[JsonValue]:
    """A list in the details of an answer from disk. Raises KeyError, or ValueError for another
    value.
    """
    value = details[name]
    if not isinstance(value, list):
        raise ValueError(f"field 'details.{name}' must be a list")
    return value
