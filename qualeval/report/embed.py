"""Values -> text that can stand inside an HTML page and do nothing there."""

import base64
import hashlib
import json
import re

_UNSAFE = re.compile(
    "[<>&\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


def embedded(value: object) -> str:
    """JSON of `value` for a data block of a page: no character in it can end the block, open a
    comment or turn the text around, and half a surrogate pair comes out as it went in.

    HTML standard, 4.12.1.3 "Restrictions for contents of script elements". Raises ValueError for a
    number that JSON has not.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _UNSAFE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def policy(style: str, script: str) -> str:
    """The Content-Security-Policy of a page that holds exactly this style and this script.

    CSP level 3: nothing is fetched from anywhere, no other script or style runs, no attribute does.
    """
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_source_hash(style)}'",
            f"script-src '{_source_hash(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _source_hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return "sha256-" + base64.b64encode(digest).decode()
