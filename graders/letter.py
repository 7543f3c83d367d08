r"""Read one option letter from a reply, and say by which rule.

These are the letter rules of qualeval suite 1. The caller has removed the reasoning and decides
about a cut-off reply; only the visible text is read here. Nothing is guessed, nothing is random.

1.  A matching copy is made one character at a time, so that every place in it leads back to the raw
    text: NFKC of the single character (full-width, circled and maths letters become plain), no
    invisible characters, one kind of line break, space, quote and dash. A Roman numeral character
    stays a number. A control character or half of a surrogate pair is a space.
2.  Wrappers are peeled off the whole reply: code fence, ``\boxed{}``, ``\text{}``, ``\mathbf{}``
    and their like, ``$``, ``\( \)``, ``*``, ``_``, backtick, quotes, brackets, simple HTML tags,
    leaked end tokens, marks of a heading, quote or list; after the letter also ``. , : ; !``.
3.  ``bare``: one capital letter is left. ``bare_lowercase``: one small letter.
    ``bare_lookalike``: one Cyrillic or Greek twin (А В С Е Н І Ј, Α Β Ε Η Ι). Small letters and
    twins count nowhere else, but for 4a.
4.  Otherwise letters are collected from:
    a. ``anchored``: "answer", "option", "choice" or 答案, then optionally "is", "are", "would be",
       wrappers and ``: = - >``, then a capital letter that no letter, digit or apostrophe follows.
       A small letter counts when the text ends there or punctuation follows. Twins are read as
       Latin inside the anchor word. ``<answer>B`` and ``{"answer": "B"}`` are such anchors.
    b. ``boxed``: each ``\boxed{}`` whose content is a letter, alone or with a label mark and text.
    c. ``first_line``: the first line is one capital letter.
    d. The first line is a letter, then ``. ) : ] ,`` or closing bold, then text:
       ``letter_with_text`` when the text is that option or a beginning of it,
       ``letter_text_conflict`` (wrong) when it is another option, else ``letter_first_line``.
    "or", "and", a comma or a slash with one more letter behind it collects both. A or I before a
    space and a small-letter word is an article or a pronoun ("Answer: I don't know"): no letter.
5.  One distinct letter counts. More are wrong, ``several_letters:BC``. None is ``no_letter``,
    ``empty``, or ``refusal`` (a label only, by the opening words).
6.  A letter beyond the options is wrong, ``out_of_range:J``.
7.  ``last_line_wins`` (replies after thinking): of several letters the one that an anchor or a box
    gives on the last line with words on it counts, ``last_line``.

Where these leave room, a letter is credited only if a careful reader would call it the one answer:

8.  A letter that is asked ("Answer: B?"), denied ("not option B", "Option B is wrong"), supposed
    ("if the answer is B"), left open ("B or something"), put up as a correction ("Wait, C") or
    alone on a later line is *doubtful*: it never counts itself, but makes "several" of another.
9.  A letter that begins a formula, an abbreviation or a compound is none: ``E = m``, ``H \ll E``,
    ``F(x)``, ``C++``, ``X-ray``, ``D.C.``, and "I, II" counts in Roman numerals.
10. A letter that heads an option list (text follows, and the next label, on this line or the next,
    is the next letter with the same mark and text) echoes the prompt and answers nothing.
11. "I," at the start of a reply is a pronoun. Letters that fill the first line ("A or B", "B B")
    are all collected. The whole text of another option is a conflict even when it begins this one.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

VERSION = "letter 1"

_LONGEST_NFKC = 3  # "(B)" can be one character; what gets longer is no letter and only costs time
_WORD_PART = "ʰ"  # stands for a combining mark: A with an accent is a word, not the letter A
_FOLDED = {
    **dict.fromkeys("\n\r\v\f\x85\u2028\u2029", "\n"),
    **dict.fromkeys("“”„«»‹›「」『』", '"'),
    **dict.fromkeys("‘’‚‛ʼ′´", "'"),
    **dict.fromkeys("‐‑‒–−", "-"),
    **dict.fromkeys("【〔〈《", "["),
    **dict.fromkeys("】〕〉》", "]"),
    **{"→": ">", "。": ".", "、": ",", "—": " - "},  # a long dash parts words, a hyphen joins them
    # The grapheme joiner and the variation selectors show nothing; their category does not say so.
    **dict.fromkeys(map(chr, (0x34F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))), ""),
    "\N{REPLACEMENT CHARACTER}": " ",
    # Dark circled and squared letters have no NFKC form.
    **{chr(first + i): chr(65 + i) for first in (0x1F150, 0x1F170) for i in range(26)},
}
_TWINS = dict(zip("АВСЕНІЈΑΒΕΗΙ", "ABCEHIJABEHI", strict=True))
_TO_LATIN = str.maketrans(_TWINS | dict(zip("ОΟаеорсіѕһοαι", "OOaeopcishoai", strict=True)))

# The patterns. Each repetition is bounded, or possessive over alternatives that differ in their
# first character, so that none looks at a character more than a fixed number of times.
_COMMAND = (
    r"\\{1,2}(?:boxed|fbox|text(?:bf|it|rm|sf|tt)?|math(?:bf|it|rm|sf|tt)|bm|boldsymbol|emph) ?\{"
)
_TAG = r"<(?:b|i|u|p|em|code|mark|strong)>"
_OPEN = rf"(?:{_COMMAND}|\\[(\[]|{_TAG}|- " + r"""|[\s*_`"'()\[\]{}<>$#|:])"""
_GAP = rf"(?:{_COMMAND}|\\[(\[]|{_TAG}" + r"""|[\s*_`"'()\[\]{}<>$#|:=-])"""
_CLOSE = r"""(?:\\[)\]]|</\w{1,12}>|<\|\w{1,24}\|>|[\s*_`"'()\[\]{}<>$|.,:;!])"""
_SHUT = r"""[ *_`"')\]}$]{0,6}"""  # what may stand between a letter and the words after it
_END = r"(?![^\W_])"  # no letter or digit follows

_FENCE = r"(?:\s*+```[a-z]{1,12}\n)?+"
_BARE = re.compile(rf"{_FENCE}{_OPEN}*+(?P<letter>[^\W\d_]){_CLOSE}*+")
_BARE_LINE = re.compile(
    rf"^(?:(?!\n){_OPEN})*+(?P<letter>[A-Z])(?:(?!\n){_CLOSE})*+$", re.MULTILINE
)
_LEADING = re.compile(rf"{_FENCE}{_OPEN}*+(?P<letter>[A-Z]){_END}")
_TEXT_FOLLOWS = re.compile(r"""[*_`"'$]{0,4}[.):\],]|\*\*|__""")
_CLOSED = re.compile(rf"{_CLOSE}*+")
_WORD = re.compile(r"[^\W_]")
_ANCHORED = re.compile(
    rf"(?:(?<![^\W_])(?<!/)(?i:answer|option|choice)(?i:s|\(s\))?+{_END}|答案)"
    rf"{_GAP}{{0,24}}+(?:(?:(?i:is|are|would\sbe){_END}|[是为為选選]){_GAP}{{0,24}}+)?"
    rf"(?P<letter>[A-Za-z]){_END}"
)
_BOXED = re.compile(rf"\\boxed\s?\{{(?P<open>{_OPEN}{{0,8}}+)(?P<letter>[A-Z]){_END}")
_LABEL = re.compile(r"(?<![^\W_])(?P<letter>[A-Z])[*_`]{0,3}(?P<mark>[.):\]])(?=[^\w\n]{0,6}\w)")
_JOINED = re.compile(
    rf"{_SHUT}(?:(?:[,/;&+] {{0,2}}(?i:or |and )?|(?i:and/or|or|and) )"
    r"(?:(?:also|maybe|perhaps|possibly|option|choice|answer) )?"
    r"""[*_`"'(\[{$]{0,4}[A-Za-z](?![^\W_]|')"""
    # Without such a word or mark a second letter is one only when the line holds nothing else.
    r"""|[ .:>-]{1,3}[*_`"'(\[{$]{0,4}[A-Z](?=[^\w\n]{0,8}(?:\n|\Z|[A-Z](?!\w))))"""
)
_SMALL_WORD = re.compile(r""" [*_`"'(]{0,3}[a-z]""")
_LIST_GOES_ON = re.compile(r" (?:or|and)\b")
_LIST_ENDS = re.compile(r" (?:or|and|are|is|both|also)\b")
_SMALL_STANDS = re.compile(r"\s*+\Z|[^\w\s]|_")
_NO_OPTION = re.compile(
    r"'\w|\.[A-Za-z](?![A-Za-z])|[(\[+#^]|-\w|_[\w{]"
    r"| ?[=≈≠≤≥≪≫±×]| ?[<>][ A-Z\d=]| ?\\(?![)\]])"
    r"|(?:,| and| or| &) ?(?:and |or )?[IVX]{2,4}(?![^\W_])"  # Roman numerals: "I, II and III"
)
_DOUBT_AFTER = re.compile(
    rf"[.:]?{_SHUT}(?:\?|(?<=\s)or\b|(?<=[AI] )and\b|(?<=\s)(?:(?:is|are|was|ca|does)n't|cannot)\b"
    r"|(?<=\s)(?:is |are |was |seems |looks |can |could |does )(?:clearly |also |be )?"
    r"(?:not|wrong|incorrect|false|ruled out|eliminated|excluded|out)\b)"
)
_DENIAL_WINDOW = 48  # characters before an anchor in which a denial is looked for
_DENIED = re.compile(
    r"not|nor|cannot|\w+n't|never|incorrect|wrong|false|than|unlike|except|if|whether|suppose"
    r"|assum(?:e|ing)|(?:exclud|eliminat)(?:e|es|ed|ing)|reject(?:s|ed|ing)?"
)
_PASSED_OVER = frozenset(
    ("think", "believe", "that", "the", "my", "be", "a", "an", "correct", "right", "best")
)
_CORRECTED = re.compile(
    r"(?i:\b(?:wait|actually|correction|scratch that|i mean|or maybe|or perhaps)\b)[\s,.:;!*-]{1,4}"
    r"(?i:(?:it's|it is|it should be|that's|make that|rather|no)[\s,:]{1,3})?"
    rf"(?P<letter>[A-Z]){_END}"
)
_REFUSAL = re.compile(
    r"i (?:cannot|can't|can not|won't|will not|am (?:unable|sorry|not able)|apologi[sz]e)\b"
    r"|i'm (?:sorry|unable|not able)\b|sorry\b|as an ai\b|unfortunately,? i\b",
    re.IGNORECASE,
)
_REASONS = {
    "bare": "The whole reply is the letter {}.",
    "bare_lowercase": "The whole reply is one small letter, read as {}.",
    "bare_lookalike": "The whole reply is one letter of another alphabet that looks like {}.",
    "anchored": "The reply names {} as its answer.",
    "boxed": "The reply puts {} in a box.",
    "first_line": "The first line is the letter {}.",
    "letter_with_text": "The first line is {} with the text of that option.",
    "letter_first_line": "The first line is {} with words of the model's own.",
    "last_line": "The reply names several letters, and on its last line {}.",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: the letter that counts or None, by which rule, where in the raw text, why."""

    letter: str | None
    rule: str
    span: tuple[int, int] | None
    reason: str


class _Candidate(NamedTuple):
    letter: str
    rule: str
    at: int  # index in the matching copy
    doubtful: bool = False


def read_letter(
    text: str | None, options: Sequence[str], *, last_line_wins: bool = False
) -> Reading:
    """Return the one option letter that `text` gives as its answer, by the rules of this module.

    Option i of `options` has the letter chr(65 + i). Any string is read, in linear time.
    """
    raw = text or ""
    copy = _matching_copy(raw).rstrip()  # only at the end, so that places stay as they are
    if not copy:
        return Reading(None, "empty", None, "The reply holds nothing visible.")
    bare = _bare(copy)
    found = [bare] if bare else list(_candidates(copy, options))
    if not found:
        if _REFUSAL.match(copy.lstrip()):
            return Reading(None, "refusal", None, "The reply opens as a refusal, without a letter.")
        return Reading(None, "no_letter", None, "The reply gives no letter as its answer.")
    last_line = _last_line(copy) if last_line_wins else len(copy)
    chosen, rule, reason = _resolve(found, len(options), last_line)
    span = _raw_span(raw, chosen.at) if chosen else None
    return Reading(chosen.letter if chosen and rule in _REASONS else None, rule, span, reason)


def _resolve(
    found: Sequence[_Candidate], option_count: int, last_line: int
) -> tuple[_Candidate | None, str, str]:
    """Return the candidate that the verdict is about, the rule and the reason (rules 5 to 7)."""
    letters = sorted({candidate.letter for candidate in found})
    if len(letters) > 1:
        final = [c for c in found if c.at >= last_line and c.rule in ("anchored", "boxed")]
        if len({candidate.letter for candidate in final}) != 1:
            reason = f"The reply names several letters: {', '.join(letters)}."
            return None, "several_letters:" + "".join(letters), reason
        found = [candidate._replace(rule="last_line") for candidate in final]
    sure = [candidate for candidate in found if not candidate.doubtful]
    if not sure:
        reason = f"{found[0].letter} is named, but not as a definite answer."
        return None, "no_letter", reason
    letter = sure[0].letter
    if ord(letter) - ord("A") >= option_count:
        reason = f"The reply gives {letter}, but the question has {option_count} options."
        return sure[0], f"out_of_range:{letter}", reason
    for candidate in sure:
        if candidate.rule == "letter_text_conflict":
            reason = f"The first line is {letter} with the text of another option."
            return candidate, candidate.rule, reason
    return sure[0], sure[0].rule, _REASONS[sure[0].rule].format(letter)


def _matching_copy(text: str) -> str:
    """Return the copy that the patterns read; `_raw_span` leads back from it."""
    return text.translate({ord(character): _fold(character) for character in set(text)})


def _raw_span(text: str, at: int) -> tuple[int, int]:
    """Return where in `text` the character stands that became the one at `at` in the copy."""
    lengths = {character: len(_fold(character)) for character in set(text)}
    index = -1
    while at >= 0:
        index += 1
        at -= lengths[text[index]]
    return index, index + 1


def _fold(character: str) -> str:
    if character in _FOLDED:
        return _FOLDED[character]
    category = unicodedata.category(character)
    if category == "Cf":
        return ""
    if category in ("Cc", "Cs", "Zs"):
        return " "
    if category.startswith("M"):
        return _WORD_PART
    plain = unicodedata.normalize("NFKC", character)
    return character if category == "Nl" or len(plain) > _LONGEST_NFKC else plain


def _last_line(copy: str) -> int:
    """Return where the last line with a letter or digit on it begins."""
    after = next(i for i, character in enumerate(reversed(copy)) if character.isalnum())
    return copy.rfind("\n", 0, len(copy) - after) + 1


def _bare(copy: str) -> _Candidate | None:
    match = _BARE.fullmatch(copy)
    if match is None:
        return None
    letter, at = match["letter"], match.start("letter")
    if letter in _TWINS:
        return _Candidate(_TWINS[letter], "bare_lookalike", at)
    if not letter.isascii():
        return None
    return _Candidate(letter.upper(), "bare" if letter.isupper() else "bare_lowercase", at)


def _candidates(copy: str, options: Sequence[str]) -> Iterator[_Candidate]:
    """Yield every letter of rule 4 and every doubtful one of rule 8, strongest source first."""
    heads = _list_heads(copy)
    yield from _anchored(copy, heads)
    yield from _boxed(copy)
    yield from _first_line(copy, options, heads)
    lone = {match["letter"]: match.start("letter") for match in _BARE_LINE.finditer(copy)}
    for letter, at in lone.items():
        yield _Candidate(letter, "bare_line", at, doubtful=True)
    for match in _CORRECTED.finditer(copy):
        if not _is_word(copy, match.start("letter"), _LIST_GOES_ON):
            yield _Candidate(match["letter"], "corrected", match.start("letter"), doubtful=True)


def _list_heads(copy: str) -> set[int]:
    """Return where letters head an option list (rule 10)."""
    heads: set[int] = set()
    for label, following in pairwise(_LABEL.finditer(copy)):
        is_next = ord(following["letter"]) == ord(label["letter"]) + 1
        if is_next and label["mark"] == following["mark"]:
            between = copy[label.end() : following.start()].split("\n")
            if sum(1 for line in between if _WORD.search(line)) <= 1:
                heads.add(label.start("letter"))
    return heads


def _anchored(copy: str, heads: set[int]) -> Iterator[_Candidate]:
    for match in _ANCHORED.finditer(copy.translate(_TO_LATIN)):
        letter, at, end = match["letter"], match.start("letter"), match.end()
        if letter != copy[at] or at in heads or not _stands_alone(copy, at):
            continue
        if letter.islower() and not _SMALL_STANDS.match(copy, end):
            continue
        joined = _joined(copy, at)
        if not joined and _is_word(copy, at, _LIST_GOES_ON):
            continue
        doubtful = bool(_DOUBT_AFTER.match(copy, end)) or _is_denied(copy, match.start())
        for place in (at, *joined):
            yield _Candidate(copy[place].upper(), "anchored", place, doubtful)


def _is_denied(copy: str, at: int) -> bool:
    """Whether the words right before an anchor, on its line, deny or only suppose it."""
    before = copy[max(0, at - _DENIAL_WINDOW) : at].rpartition("\n")[2].casefold()
    before = before.replace("rule out", "exclude").replace("ruled out", "excluded")
    for word in reversed(before.split()):
        plain = word.strip("*_\"'(")
        if plain not in _PASSED_OVER:
            return _DENIED.fullmatch(plain) is not None
    return False


def _boxed(copy: str) -> Iterator[_Candidate]:
    for match in _BOXED.finditer(copy):
        at = match.start("letter")
        joined = _joined(copy, at)
        if _stands_alone(copy, at) and (joined or _fills_box(copy, at, match["open"].count("{"))):
            for place in (at, *joined):
                yield _Candidate(copy[place], "boxed", place)


def _fills_box(copy: str, at: int, depth: int) -> bool:
    """Whether the box ends behind the letter, or a label mark parts the letter from its text."""
    for character in copy[at + 1 : at + 16]:
        depth -= character == "}"
        if depth < 0 or character in ".:)]":
            return True
        if character not in " }*_$`\"'\\":
            return False
    return False


def _first_line(copy: str, options: Sequence[str], heads: set[int]) -> Iterator[_Candidate]:
    match = _LEADING.match(copy)
    if match is None or match.start("letter") in heads:
        return
    letter, at = match["letter"], match.start("letter")
    end = (copy + "\n").index("\n", at)
    joined = _joined(copy, at)
    is_closed = _CLOSED.fullmatch(copy, (at, *joined)[-1] + 1, end)
    mark = _TEXT_FOLLOWS.match(copy, at + 1, end)
    rule = "first_line"
    if mark and (joined or not is_closed):
        rule = _text_rule(copy[mark.end() : end], letter, options)
    if rule in ("letter_with_text", "letter_text_conflict"):
        joined = []
    elif is_closed:
        rule = "first_line"
    elif mark is None or not _stands_alone(copy, at) or (letter == "I" and mark[0] == ","):
        return
    doubtful = rule == "letter_first_line" and bool(_DOUBT_AFTER.match(copy, at + 1))
    for place in (at, *joined):
        yield _Candidate(copy[place], rule, place, doubtful)


def _text_rule(text: str, letter: str, options: Sequence[str]) -> str:
    keys = [_text_key(_matching_copy(option)) for option in options]
    own = "".join(keys[ord(letter) - ord("A") :][:1])
    said = _text_key(text)
    if said == own:
        return "letter_with_text"
    if said in keys:
        return "letter_text_conflict"
    return "letter_with_text" if own.startswith(said) else "letter_first_line"


def _text_key(text: str) -> str:
    wrappers = " *_`\"'$"
    return " ".join(text.casefold().split()).lstrip(wrappers).rstrip(wrappers + ".")


def _joined(copy: str, at: int) -> list[int]:
    """Return where the letters stand that "or", "and", a comma or a slash ties to the one at."""
    is_small, places = copy[at].islower(), list[int]()
    while len(places) < 26 and (match := _JOINED.match(copy, at + 1)):
        at = match.end() - 1
        if copy[at].islower() != is_small or _is_word(copy, at, _LIST_ENDS):
            break
        places.append(at)
    return places


def _is_word(copy: str, at: int, exception: re.Pattern[str]) -> bool:
    """Whether A or I is an article or a pronoun: a space and a small-letter word follow."""
    is_word = copy[at] in "AI" and _SMALL_WORD.match(copy, at + 1)
    return bool(is_word) and not exception.match(copy, at + 1)


def _stands_alone(copy: str, at: int) -> bool:
    """Whether the letter begins no formula, abbreviation or compound (rule 9)."""
    is_prime = copy[at + 1 : at + 2] == "'" and copy[at - 1 : at] != "'"
    return not is_prime and not _NO_OPTION.match(copy, at + 1)
