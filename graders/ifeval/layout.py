"""Checkers of how a reply looks: markdown, wrapping, parts, first and last words.

Patterns of the reference that take time in the square of the text (a run of blank lines, brackets
that never close) are written as scans that give the same count; tests hold them to the patterns.
"""

import json
import re

from qualeval.graders.ifeval.findings import (
    Finding,
    at_least,
    exactly,
    no_pattern,
    pattern,
    quoted,
)

ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")
# A line begins after white space that does not leave it; one character more may be the line break.
_STAR_BULLET = re.compile(r"^[^\S\n]*\*[^*].*$", re.MULTILINE)
_DASH_BULLET = re.compile(r"^[^\S\n]*-.*$", re.MULTILINE)
_SINGLE_STARS = re.compile(r"\*([^\n*]*)\*")
_DOUBLE_STARS = re.compile(r"\*\*([^\n*]*)\*\*")
_DIVIDER = re.compile(r"\s?\*\*\*\s?")
_POSTSCRIPTS = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}


def number_placeholders(text: str, *, num_placeholders: float) -> Finding:
    """At least so many [..], each on one line; links, `[ ]` and `[1]` count."""
    return at_least(sum(map(_bracketed, text.split("\n"))), num_placeholders, "placeholders")


def _bracketed(line: str) -> int:
    count = 0
    opened = line.find("[")
    while opened >= 0:
        closed = line.find("]", opened)
        if closed < 0:
            break
        count += 1
        opened = line.find("[", closed)
    return count


def postscript(text: str, *, postscript_marker: str) -> Finding:
    """The marker occurs anywhere, in any case; `P.S.` needs its second dot, `e.p.s.` has it."""
    marker = postscript_marker.strip()
    found = pattern(_POSTSCRIPTS.get(marker, rf"\s?{marker.lower()}"), ignore_case=False)
    if found is None:
        return no_pattern(marker)
    there = found.search(text.lower()) is not None
    return Finding(there, f"{'found' if there else 'missing'} the postscript {quoted(marker)}")


def number_bullet_lists(text: str, *, num_bullets: float) -> Finding:
    """Exactly so many lines that start with `*` (not `**`) or with `-`.

    A rule `---` and `-5 degrees` count, numbers and the sign • do not; a line of one `*` takes the
    next line with it.
    """
    stars = sum(1 for _ in _STAR_BULLET.finditer(text))
    dashes = sum(1 for _ in _DASH_BULLET.finditer(text))
    return exactly(stars + dashes, num_bullets, "bullet points")


def constrained_response(text: str) -> Finding:
    """One of the three fixed answers occurs, letter for letter, anywhere."""
    there = [answer for answer in ANSWERS if answer in text]
    return Finding(bool(there), f"found {quoted(there[0])}" if there else "found no fixed answer")


def number_highlighted_sections(text: str, *, num_highlights: float) -> Finding:
    """At least so many *..* and **..**, not blank, each on one line; `***x***` counts twice."""
    inside = [*_SINGLE_STARS.findall(text), *_DOUBLE_STARS.findall(text)]
    return at_least(sum(1 for part in inside if part.strip()), num_highlights, "highlights")


def multiple_sections(text: str, *, section_spliter: str, num_sections: float) -> Finding:
    """At least so many times splitter and digits, also in running text; more is fine."""
    splitter = section_spliter.strip()
    found = pattern(rf"\s?{splitter}\s?\d+\s?", ignore_case=False)
    if found is None:
        return no_pattern(splitter)
    return at_least(len(found.split(text)) - 1, num_sections, f"sections {quoted(splitter)}")


def number_paragraphs(text: str, *, num_paragraphs: float) -> Finding:
    """Exactly so many parts between `***`; blank first and last parts are not counted.

    A blank part between fails, so `******` fails; the stars of `***bold***` divide as well.
    """
    parts = [bool(part.strip()) for part in _DIVIDER.split(text)]
    if not all(parts[1:-1]):
        return Finding(False, "a part between two dividers is blank")
    return exactly(sum(parts), num_paragraphs, "paragraphs")


def json_format(text: str) -> Finding:
    """The text, less one code fence round it, is what Python's `json` reads: also 42 and NaN."""
    body = text.strip()
    for fence in _FENCES:
        body = body.removeprefix(fence)
    try:
        json.loads(body.removesuffix("```").strip())
    except ValueError as error:
        place = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        return Finding(False, f"not JSON{place}")
    except RecursionError:
        return Finding(False, "brackets nested too deep to read; counted as not JSON")
    return Finding(True, "JSON")


def title(text: str) -> Finding:
    """A line holds <<..>> with something between, from its first << to its last >>."""
    there = any(map(_titled, text.split("\n")))
    return Finding(there, "found a title" if there else "found no title in << >>")


def _titled(line: str) -> bool:
    start, end = line.find("<<"), line.rfind(">>")
    # One character at least between the marks, then all marks at both ends are taken off.
    return 0 <= start <= end - 3 and bool(line[start : end + 2].lstrip("<").rstrip(">").strip())


def repeat_prompt(text: str, *, prompt_to_repeat: str) -> Finding:
    """The reply starts with the request, in any case; nothing need follow."""
    there = text.strip().lower().startswith(prompt_to_repeat.strip().lower())
    return Finding(there, f"{'starts' if there else 'does not start'} with the request")


def two_responses(text: str) -> Finding:
    """Two different parts between six stars; blank ends are allowed, a blank middle is not."""
    parts = [part.strip() for part in text.split("******")]
    if not all(parts[1:-1]):
        return Finding(False, "a part between two dividers is blank")
    filled = [part for part in parts if part]
    if len(filled) == 2 and filled[0] == filled[1]:
        return Finding(False, "found 2 responses, both the same")
    return exactly(len(filled), 2, "responses")


def end_checker(text: str, *, end_phrase: str) -> Finding:
    """The reply ends with the phrase, in any case, also inside a word; outer " are taken off."""
    there = text.strip().strip('"').lower().endswith(end_phrase.strip().lower())
    return Finding(there, f"{'ends' if there else 'does not end'} with {quoted(end_phrase)}")


def quotation(text: str) -> Finding:
    """First and last character are ASCII double quotes, and not the same one."""
    body = text.strip()
    there = len(body) > 1 and body[0] == body[-1] == '"'
    return Finding(there, f'{"wrapped" if there else "not wrapped"} in " "')
