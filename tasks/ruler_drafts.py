"""What the four long-text tasks ask, and what lies hidden in their texts."""

from collections.abc import Callable, Mapping

from qualeval.tasks.ruler_text import (
    CODED,
    NEEDLE_EVERY,
    Draft,
    LinesDraft,
    WordsDraft,
    anywhere,
    depth,
    digest,
    names,
    numbers,
    shuffled,
)

HEAD = "{label} is the label of this text. {about}"
QUESTIONS = {
    "niah_multikey": "What is the pass number of {name} in the text above? Reply with that number "
    "only.",
    "niah_multivalue": "Which four pass numbers does {name} have in the text above? Reply with the "
    "four numbers only, separated by commas.",
    "vt": "Which four variables have the value {number} by the text above, whether it is given to "
    "them directly or through other variables? Reply with the four names only, separated by "
    "commas.",
    "fwe": "Which three coded words occur most often in the coded text above? Reply with the three "
    "words only, separated by commas.",
}
NEEDLES = {
    "niah_multikey": "The pass number of {name} is {number}.",
    "niah_multivalue": "One of the pass numbers of {name} is {number}.",
    "vt": "Variable {name} is set to {number}.",
    "vt, hop": "Variable {name} is set to the value of variable {earlier}.",
}
ABOUT = {
    "niah_multikey": "Pass numbers of several names stand in it; you will be asked for one.",
    "niah_multivalue": "Pass numbers of two names stand in it; you will be asked for those of one.",
    "vt": "Variables are set in it; you will be asked which of them have a certain value.",
    "fwe": "It is made of coded words; you will be asked for the most frequent ones.",
}


def _draft_multikey(id: str, index: int, target: int) -> Draft:
    """One number of many; the others stand anywhere."""
    others = max(3, target // NEEDLE_EVERY)
    keys, values = names(id, others + 1), numbers(id, others + 1)
    places = (depth(index, 0, 1), *anywhere(id, others))
    needle = NEEDLES["niah_multikey"]
    lines = (
        needle.format(name=key.title(), number=value)
        for key, value in zip(keys, values, strict=True)
    )
    return LinesDraft(
        id,
        _head(id, "niah_multikey"),
        tuple(zip(places, lines, strict=True)),
        QUESTIONS["niah_multikey"].format(name=keys[0].title()),
        expected=(values[0],),
        distractors=tuple(values[1:]),
    )


def _draft_multivalue(id: str, index: int, target: int) -> Draft:
    """Four numbers of one name; another name has four as well."""
    asked, other = (key.title() for key in names(id, 2))
    values = numbers(id, 8)
    places = [*(depth(index, needle, 4) for needle in range(4)), *anywhere(id, 4)]
    needle = NEEDLES["niah_multivalue"]
    lines = [
        needle.format(name=asked if n < 4 else other, number=value)
        for n, value in enumerate(values)
    ]
    return LinesDraft(
        id,
        _head(id, "niah_multivalue"),
        tuple(zip(places, lines, strict=True)),
        QUESTIONS["niah_multivalue"].format(name=asked),
        expected=tuple(values[:4]),
        distractors=tuple(values[4:]),
    )


def _draft_vt(id: str, index: int, target: int) -> Draft:
    """A chain of four variables, and three such chains beside it."""
    keys, values = [key.upper() for key in names(id, 16)], numbers(id, 4)
    needles: list[tuple[float, str]] = []
    for chain, number in enumerate(values):
        places = anywhere(f"{id}/chain/{chain}", 4)
        for hop in range(4):
            name, earlier = keys[chain * 4 + hop], keys[chain * 4 + hop - 1]
            line = NEEDLES["vt, hop" if hop else "vt"]
            place = places[hop] if chain else depth(index, hop, 4)
            needles.append((place, line.format(name=name, number=number, earlier=earlier)))
    return LinesDraft(
        id,
        _head(id, "vt"),
        tuple(needles),
        QUESTIONS["vt"].format(number=values[0]),
        expected=tuple(keys[:4]),
        distractors=tuple(keys[4:]),
    )


def _draft_fwe(id: str, index: int, target: int) -> Draft:
    """The three most frequent of sixteen coded words."""
    ranks = tuple(shuffled(f"{id}/ranks", len(CODED)))
    words = [CODED[rank] for rank in ranks]
    return WordsDraft(
        id,
        _head(id, "fwe"),
        ranks,
        QUESTIONS["fwe"],
        expected=tuple(words[:3]),
        distractors=tuple(words[3:]),
    )


DRAFTS: Mapping[str, Callable[[str, int, int], Draft]] = {
    "niah_multikey": _draft_multikey,
    "niah_multivalue": _draft_multivalue,
    "vt": _draft_vt,
    "fwe": _draft_fwe,
}


def _head(id: str, task: str) -> str:
    """The first line, another one for every prompt: no two share a beginning worth caching."""
    return HEAD.format(label=digest(f"{id}/label").hex()[:8], about=ABOUT[task])


def draft_of(task: str, index: int, target: int) -> Draft:
    """Prompt number `index` of a task for a length, without its filling."""
    return DRAFTS[task](f"{task}-{target}-{index}", index, target)
