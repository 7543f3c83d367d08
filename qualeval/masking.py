"""Keys, passwords and addresses with credentials, found in text about to be stored or shown.

Used on server error bodies, log lines and card values. What goes on a public page is checked by
more than this: see `qualeval.publish`.
"""

import re
from collections.abc import Iterable

PLACEHOLDER = "⟦redacted:key⟧"

_TOKEN = re.compile(
    r"\b(?:sk-[A-Za-z0-9_\-]{8,}|hf_[A-Za-z0-9]{16,}|gh[opsu]_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}|nvapi-[A-Za-z0-9_\-]{16,}|AKIA[A-Z0-9]{16}"
    r"|eyJ[A-Za-z0-9_\-]{10,2000}\.[A-Za-z0-9_\-]{10,2000}\.[A-Za-z0-9_\-]{5,2000})"
)
_USER_INFO = re.compile(r"(?<=://)[^/\s?#\"'<>]{1,2000}@")
_ASSIGNED = re.compile(
    r"(?i)((?:api[-_]?key|access[-_]?token|auth[-_]?token|password|secret)[\"']?\s{0,4}[=:]\s{0,4}[\"']?"
    r"|--api-key[\s=]{1,4}|\bbearer\s{1,4})(?![\"'\s$<{])([^\s\"',;&}]{4,})"
)


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` with the given secrets and everything that has the form of one replaced."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, PLACEHOLDER)
    text = _USER_INFO.sub(PLACEHOLDER + "@", text)
    text = _ASSIGNED.sub(lambda match: match.group(1) + PLACEHOLDER, text)
    return _TOKEN.sub(PLACEHOLDER, text)


def holds_secret(text: str) -> bool:
    """True when `mask` would change the text: it carries a key or a password in clear."""
    return mask(text) != text


def excerpt(text: str, secrets: Iterable[str] = (), length: int = 200) -> str:
    """The masked first `length` characters of a server's text, on one line."""
    return " ".join(mask(text, secrets).split())[:length]
