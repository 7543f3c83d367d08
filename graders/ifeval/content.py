"""Checkers of what a reply says: keywords, letters, language, case, length, commas.

Each takes the text and the item's kwargs by their own names. Texts are never blank here. Where the
reference is odd it is kept, and the docstring says so; the method is in `qualeval.graders.ifeval`.
"""

import re

from qualeval.graders.ifeval.findings import (
    Finding,
    compared,
    exactly,
    no_pattern,
    pattern,
    quoted,
)
from qualeval.graders.ifeval.language import detect
from qualeval.graders.ifeval.sentences import split_sentences
from qualeval.graders.ifeval.words import count_capital_words

ENGLISH = "en"
_WORD = re.compile(r"\w+")
_AFTER_FIRST_WORD = re.compile(r"""[.,?!'"]""")


def keywords_exist(text: str, *, keywords: tuple[str, ...]) -> Finding:
    """Every keyword occurs: an unescaped pattern, any case, also inside a word."""
    missing = []
    for keyword in sorted(keywords):
        found = pattern(keyword, ignore_case=True)
        if found is None:
            return no_pattern(keyword)
        if not found.search(text):
            missing.append(quoted(keyword))
    many = len(keywords)
    why = f"missing {', '.join(missing)}" if missing else f"found {many} of {many} keywords"
    return Finding(not missing, why)


def keyword_frequency(text: str, *, keyword: str, frequency: float, relation: str) -> Finding:
    """The keyword, an unescaped pattern, occurs so often: any case, also inside words."""
    found = pattern(keyword.strip(), ignore_case=True)
    if found is None:
        return no_pattern(keyword)
    count = sum(1 for _ in found.finditer(text))
    return compared(count, relation, frequency, f"times {quoted(keyword.strip())}")


def forbidden_words(text: str, *, forbidden_words: tuple[str, ...]) -> Finding:
    """None of the words, unescaped patterns, stands between word boundaries, in any case."""
    for word in sorted(set(forbidden_words)):
        found = pattern(rf"\b{word}\b", ignore_case=True)
        if found is None:
            return no_pattern(word)
        if found.search(text):
            return Finding(False, f"found the forbidden word {quoted(word)}")
    return Finding(True, f"found none of {len(set(forbidden_words))} forbidden words")


def letter_frequency(text: str, *, letter: str, let_frequency: float, let_relation: str) -> Finding:
    """The character occurs so often in the text in small letters; it need not be a letter.

    The reference swaps a character outside a-z for a letter drawn at random; here it counts itself.
    """
    count = text.lower().count(letter.lower())
    return compared(count, let_relation, let_frequency, f"times {quoted(letter)}")


def response_language(text: str, *, language: str) -> Finding:
    """The likeliest language is the wanted one; text without any clue counts as followed."""
    found = detect(text)
    if found is None:
        return Finding(True, "language cannot be told; counted as followed")
    return Finding(found == language, f"language looks like {found}, wanted {language}")


def english_capital(text: str) -> Finding:
    """No small letter, at least one capital, and the likeliest language is English."""
    if not text.isupper():
        return Finding(False, "not all in capitals")
    return _in_english(text, "all in capitals")


def english_lowercase(text: str) -> Finding:
    """No capital, at least one small letter, and the likeliest language is English."""
    if not text.islower():
        return Finding(False, "not all in small letters")
    return _in_english(text, "all in small letters")


def _in_english(text: str, so_far: str) -> Finding:
    language = response_language(text, language=ENGLISH)
    return Finding(language.followed, f"{so_far}; {language.why}")


def capital_word_frequency(
    text: str, *, capital_frequency: float, capital_relation: str
) -> Finding:
    """So many words are all in capitals, counted as `words.count_capital_words` does."""
    count = count_capital_words(text)
    return compared(count, capital_relation, capital_frequency, "words in capitals")


def number_sentences(text: str, *, num_sentences: float, relation: str) -> Finding:
    """So many English Punkt sentences, whatever the language of the text."""
    return compared(len(split_sentences(text)), relation, num_sentences, "sentences")


def number_words(text: str, *, num_words: float, relation: str) -> Finding:
    """So many runs of word characters: `don't re-do it` is five, `a_b` one."""
    return compared(sum(1 for _ in _WORD.finditer(text)), relation, num_words, "words")


def nth_paragraph_first_word(
    text: str, *, num_paragraphs: float, nth_paragraph: float, first_word: str
) -> Finding:
    """So many paragraphs between blank lines, and the nth starts with the word.

    Blank parts are not counted but keep their place: a blank line more before the nth paragraph
    makes a right reply fail. Only leading quotes and what follows . , ? ! ' " are taken off a word.
    """
    parts = text.split("\n\n")
    count = sum(1 for part in parts if part.strip())
    nth = int(nth_paragraph)
    if nth > count:
        return Finding(False, f"found {count} paragraphs, none at place {nth}")
    words = parts[nth - 1].split(maxsplit=1)
    if not words:
        return Finding(False, f"found {count} paragraphs, place {nth} is blank")
    word = _AFTER_FIRST_WORD.split(words[0].lstrip("'").lstrip('"'), maxsplit=1)[0]
    word = "".join(map(str.lower, word))  # letter by letter: no final sigma
    paragraphs = exactly(count, num_paragraphs, "paragraphs")
    first = f"{nth} starts with {quoted(word)}, wanted {quoted(first_word.lower())}"
    return Finding(paragraphs.followed and word == first_word.lower(), f"{paragraphs.why}; {first}")


def no_comma(text: str) -> Finding:
    """There is no ASCII comma; those of other scripts are allowed."""
    return exactly(text.count(","), 0, "commas")
