"""Capital words, counted over the tokens that the IFEval reference counts them over.

The reference takes the sentences of Punkt and cuts each into words with the word splitter of NLTK
3.9.1 (Penn Treebank rules with additions). Only tokens made of capitals are counted, so this
module does not build that splitter's tokens: it puts a space wherever the splitter would cut next
to a letter, in the splitter's order, and lets punctuation that no later rule looks at become space.

`DON'T` counts twice (`DO`, `N'T`), so does `CANNOT`; `I`, `A`, `3D` and `U.S.` count once.
"""

import re

from qualeval.graders.ifeval.sentences import split_sentences

_OPENED = (
    " ` "  # an opening quotation mark; unlike a closing one it never belongs to the last period
)
_OPENING_MARKS = re.compile("[«“‘„]|`+")
_QUOTE_AFTER_BRACKET = re.compile(r"""([ (\[{<])(?:"|'')""")
_QUOTED_LETTER = re.compile(r"'(?=(?![mtsdn])\w\b)", re.IGNORECASE)
_BETWEEN = (
    "\x1e"  # white space that is not a blank; in a reply it becomes a line feed, the same to all
)
_LAST_PERIOD = re.compile(r"""(?<=[^.\x1e])\.(?=[])}>"'»”’ ]*+[^\S\x1e]*+(?:\x1e|\Z))""")
_COMMA = re.compile(r"[:,](\D|$)")
_MARKS = re.compile(r"\.{2,}|[;@#$%&?!]")
_QUOTE_AND_SPACE = re.compile(r"(?<=[^'])' ")
_BRACKETS_AND_CLOSING_MARKS = re.compile(r"""[*\[\](){}<>"»”’]|--|''""")
_POSSESSIVE = re.compile(r"(?<=[^' ])(?='[sSmMdD]? )")
_CLITIC = re.compile(r"(?<=[^' ])(?=(?:'ll|'LL|'re|'RE|'ve|'VE|n't|N'T) )")
_TWO_IN_ONE = re.compile(
    r"\b(can(?=not\b)|d(?='ye\b)|gim(?=me\b)|gon(?=na\b)|got(?=ta\b)|lem(?=me\b)|more(?='n\b)"
    r"|wan(?=na\s))(not|'ye|me|na|ta|'n)",
    re.IGNORECASE,
)
_TIS = re.compile(r" ('t)(is)\b", re.IGNORECASE)
_TWAS = re.compile(r" ('t)(was)\b", re.IGNORECASE)


def count_capital_words(text: str) -> int:
    """Return how many words of `text` have capitals and no small letter."""
    return sum(map(str.isupper, _cut(split_sentences(text)).split()))


def _cut(sentences: list[str]) -> str:
    """Return all sentences as one text with white space at every cut that touches a letter."""
    text = _BETWEEN.join(map(_begin, sentences))
    text = _OPENING_MARKS.sub(_OPENED, text)
    text = _QUOTE_AFTER_BRACKET.sub(r"\1" + _OPENED, text)
    text = _QUOTED_LETTER.sub("' ", text)
    text = _LAST_PERIOD.sub(" . ", text)
    text = _COMMA.sub(r" \1", text)
    text = _MARKS.sub(" ", text)
    text = _QUOTE_AND_SPACE.sub(" ' ", text)
    text = _BRACKETS_AND_CLOSING_MARKS.sub(" ", text)
    text = " " + " ".join(text.split()) + " "
    text = _POSSESSIVE.sub(" ", text)
    text = _CLITIC.sub(" ", text)
    text = _TWO_IN_ONE.sub(r" \1 \2 ", text)
    text = _TIS.sub(r" \1 \2 ", text)
    return _TWAS.sub(r" \1 \2 ", text)


def _begin(sentence: str) -> str:
    sentence = sentence.replace(_BETWEEN, "\n")
    return _OPENED + sentence[1:] if sentence.startswith('"') else sentence
