"""IFEval: does a reply follow its verifiable instructions? The reference's verdicts, reproduced.

The method is "Instruction-Following Evaluation for Large Language Models" (Zhou et al. 2023,
arXiv 2311.07911): 25 instruction types, each checked strictly (the reply as it is) and loosely (any
of eight texts: the reply without its first line, last line or both, each with and without its
stars). Verdicts equal those of the published checker with NLTK 3.9.1's sentence rules and
langdetect seeded with 0, its oddities included; each oddity is named where it is checked. They
leave it where it would draw at random or stop:

* a character outside a-z in `letter_frequency` is counted itself, not swapped for a random letter;
* a kwarg that is missing or unusable is an `InstructionError`, never a random threshold;
* a keyword that is no valid pattern is not followed; so is JSON nested too deep to be read.

A blank reply follows nothing. Nothing here reads the network, the clock or a random source:
`grade` is a pure function, safe to call from any thread.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qualeval.graders.ifeval import language, sentences
from qualeval.graders.ifeval.errors import InstructionError, PackagedDataError
from qualeval.graders.ifeval.table import INSTRUCTION_TYPES, Instruction, read_item

__all__ = [
    "INSTRUCTION_TYPES",
    "VERSION",
    "Grade",
    "InstructionError",
    "InstructionVerdict",
    "PackagedDataError",
    "check_item",
    "grade",
    "prepare",
]

VERSION = "ifeval 1"


@dataclass(frozen=True, slots=True)
class InstructionVerdict:
    """One instruction: followed strictly, followed loosely, and what was found."""

    instruction_id: str
    strict: bool
    loose: bool
    why: str


@dataclass(frozen=True, slots=True)
class Grade:
    """All instructions of one reply; a prompt is followed when every instruction is."""

    strict_prompt: bool
    loose_prompt: bool
    instructions: tuple[InstructionVerdict, ...]


def prepare() -> None:
    """Load language profiles and sentence tables now, about half a second, once per process.

    `grade` loads them itself when it needs them; called before a run, this raises
    `PackagedDataError` before server time is spent.
    """
    language.load()
    sentences.load()


def check_item(instruction_ids: Sequence[str], kwargs: Sequence[Mapping[str, object]]) -> None:
    """Raise `InstructionError` unless a reply to this item can be graded."""
    read_item(instruction_ids, kwargs)


def grade(
    reply: str | None,
    instruction_ids: Sequence[str],
    kwargs: Sequence[Mapping[str, object]],
) -> Grade:
    """Return the verdicts on one reply; raises `InstructionError` for an item `check_item` refuses.

    `kwargs` holds one mapping per instruction; keys whose value is None are as good as absent.
    """
    instructions = read_item(instruction_ids, kwargs)
    text = reply or ""
    texts = _loose_texts(text)
    verdicts = tuple(_verdict(instruction, text, texts) for instruction in instructions)
    return Grade(
        strict_prompt=all(verdict.strict for verdict in verdicts),
        loose_prompt=all(verdict.loose for verdict in verdicts),
        instructions=verdicts,
    )


def _verdict(
    instruction: Instruction, text: str, loose_texts: Mapping[str, str]
) -> InstructionVerdict:
    if not text.strip():
        return InstructionVerdict(instruction.instruction_id, False, False, "the reply is blank")
    strict = instruction.check(text)
    why = strict.why
    loose = strict.followed
    if not strict.followed:
        for loose_text, change in loose_texts.items():
            finding = instruction.check(loose_text)
            if finding.followed:
                loose = True
                why = f"{why}; {change}: {finding.why}"
                break
    return InstructionVerdict(instruction.instruction_id, strict.followed, loose, why)


def _loose_texts(text: str) -> dict[str, str]:
    """Return the texts of the loose check that are neither blank nor the reply itself.

    Text -> what was changed. Lines end at a line feed; a text with lines cut is stripped, the whole
    is not, and nothing is stripped again once the stars are gone.
    """
    without_first = text.partition("\n")[2]
    cuts = {
        "": text,
        "without first line": without_first.strip(),
        "without last line": text.rpartition("\n")[0].strip(),
        "without first and last line": without_first.rpartition("\n")[0].strip(),
    }
    texts: dict[str, str] = {}
    for change, cut in cuts.items():
        texts.setdefault(cut, change)
    for change, cut in cuts.items():
        texts.setdefault(cut.replace("*", ""), f"{change}, without stars".removeprefix(", "))
    return {loose: change for loose, change in texts.items() if loose.strip() and loose != text}
