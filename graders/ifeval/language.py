"""The language of a text by langdetect, the same on every call, thread, process and machine.

The reference asks `langdetect.detect`, which draws n-grams from a generator of its own. Here the
detector is seeded with 0, its profiles are loaded once, in sorted order (the package takes the
order of the folder, which a file system may change), and nothing global of the package is touched.
"""

import re
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING

from qualeval.graders.ifeval.errors import Once, PackagedDataError

if TYPE_CHECKING:
    from langdetect.detector_factory import DetectorFactory  # type: ignore[import-untyped]

SEED = 0
_CODES = (
    "af ar bg bn ca cs cy da de el en es et fa fi fr gu he hi hr hu id it ja kn ko lt lv mk ml mr"
    " ne nl no pa pl pt ro ru sk sl so sq sv sw ta te th tl tr uk ur vi zh-cn zh-tw"
)
CODES = tuple(_CODES.split())
PROFILES_SHA256 = "ce6dd69bb0ccd47833528c115c450d8f25b5f8e4ce608884e52983569bbd2504"

# langdetect blanks links and addresses, then reads 10,000 characters. `_head` keeps enough of a
# long text for that, so that a reply of 1 MB costs no more than a page.
_LINK = re.compile(r"https?://[-_.?&~;+=/#0-9A-Za-z]{1,2076}")
_ADDRESS = re.compile(r"[-_.0-9A-Za-z]{1,64}@[-_0-9A-Za-z]{1,255}[-_.0-9A-Za-z]{1,255}")
_READ = 10_000
_MARGIN = 2_084 + 575  # longest link and address: what a cut at the end can change
_HEAD = 1 << 15


def detect(text: str) -> str | None:
    """Return the code of the likeliest language, `unknown`, or None when nothing can be told."""
    from langdetect.lang_detect_exception import (  # type: ignore[import-untyped]
        ErrorCode,
        LangDetectException,
    )

    try:
        detector = _factory().create()
        detector.append(_head(text))
        return str(detector.detect())
    except LangDetectException as error:
        if error.code != ErrorCode.CantDetectError:
            raise PackagedDataError(f"language profiles: {error}") from error
        return None


def load() -> None:
    """Load the profiles now; raises `PackagedDataError` when they are not the pinned ones."""
    _factory()


def _head(text: str) -> str:
    """Return a beginning of `text` that langdetect judges as it judges the whole."""
    size = _HEAD
    while size < len(text):
        head = text[:size]
        left = len(_ADDRESS.sub(" ", _LINK.sub(" ", head))) - _MARGIN
        # A letter and a mark above it may become one character: hence the factor 2.
        if left > 2 * _READ:
            return head
        size *= 2
    return text


def _load_factory() -> "DetectorFactory":
    try:
        from langdetect.detector_factory import DetectorFactory

        folder = files("langdetect") / "profiles"
        profiles = [(folder / code).read_text(encoding="utf-8") for code in CODES]
    except (ImportError, OSError) as error:
        raise PackagedDataError(
            f"language profiles: {error}; install 'langdetect==1.0.9'"
        ) from error
    digest = sha256("\n".join(profiles).encode()).hexdigest()
    if digest != PROFILES_SHA256:
        raise PackagedDataError(
            f"language profiles: sha256 {digest[:12]} is not the pinned {PROFILES_SHA256[:12]}; "
            "install 'langdetect==1.0.9'"
        )
    factory = DetectorFactory()
    factory.load_json_profile(profiles)
    factory.set_seed(SEED)  # of this factory; the class keeps its own
    return factory


_factory = Once(_load_factory)
