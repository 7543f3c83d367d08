"""LiveCodeBench, the 40 newest tasks: the model writes a program, and the program runs.

Jain et al. 2024 (arXiv 2403.07974), data set livecodebench/code_generation_lite. Right when the
program passes every test, public and private, each in a process of its own inside a sandbox; the
verdict is the one that a real judge gives. Prompt and list are our own.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from qualeval.graders import code as judging
from qualeval.records import Answer, Completion, Item, Json, ThinkingMode, Verdict
from qualeval.sandbox.values import RunCode
from qualeval.tasks import lcb_rows
from qualeval.tasks.base import Newest, OneRow, Row, Source
from qualeval.tasks.lcb_rows import ProblemItem
from qualeval.tasks.verdicts import wrong_unread

SCRIPT = """\
Solve the following programming problem in Python 3.

{problem}

Write a complete program. It reads its input from standard input and writes its answer to \
standard output, in exactly the format that the problem asks for and nothing besides. It must be \
fast enough for the largest input that the problem allows.

Explain your idea in a few sentences at most. Then give the whole program in one code block that \
opens with ```python and closes with ```. Use no other code block."""

FUNCTION = """\
Solve the following programming problem in Python 3.

{problem}

Complete this code. Keep all names and parameters as they are: it is called from outside with the \
arguments, and what it returns is the answer. It reads no input. It must be fast enough for the \
largest input that the problem allows.

```python
{starter_code}
```

Explain your idea in a few sentences at most. Then give the whole code, completed, in one code \
block that opens with ```python and closes with ```. Use no other code block."""

TEMPLATE = f"[standard input]\n{SCRIPT}\n\n[function]\n{FUNCTION}"
"""Both prompts, as they are hashed into the contract."""

SOURCE = Source(
    name="lcb",
    dataset="livecodebench/code_generation_lite",
    config=None,
    split="test",
    id_field="question_id",
    columns=lcb_rows.COLUMNS,
    canonical=lcb_rows.canonical,
    stratum=lcb_rows.difficulty,
    clean=lcb_rows.clean,
    leak_policy="no_prompt",
)

DRAW = Newest(
    size=40,
    date_field="contest_date",
    files=r"test\d*\.jsonl",
    required=lcb_rows.REQUIRED,
    releases=lcb_rows.RELEASES,
    tests=lcb_rows.count_tests,
)


MEASURED = ("cpu_ms", "wall_ms", "max_rss_mib")

RULES = ("accepted", "wrong_answer", "time_limit", "memory_limit", "output_limit") + (
    "runtime_error",
    "compile_error",
    "no_code",
    "misrouted",
    "cut_off",
)
"""What may decide an answer."""


@dataclass(frozen=True, slots=True)
class CodeTask(OneRow):
    """The part `lcb`."""

    name: str = "lcb"
    title: str = "LiveCodeBench"
    subtitle: str = "40 newest tasks, the code runs"
    max_tokens: int = 4096
    thinking: ThinkingMode = "off"
    grader: str = judging.VERSION
    grader_notes: tuple[str, ...] = judging.DEVIATIONS
    template: str = TEMPLATE
    runs_code: bool = True
    verdict_fields: tuple[str, ...] = (
        "right",
        "verdict",
        "failed_test",
        "cpu_ms",
        "wall_ms",
        "sandbox",
    )
    source: Source = SOURCE
    draw: Newest = DRAW

    def prepare(self) -> None:
        """Nothing: whoever runs programs is handed to `grade`."""

    def official_item(self, row: Row) -> ProblemItem:
        """The item of a proved row; its private tests stay packed."""
        return lcb_rows.official_item(row)

    def item(self, row: Row) -> ProblemItem:
        """The item of a row in the published format, with every test looked at."""
        return lcb_rows.item(row)

    def messages(self, item: Item) -> tuple[Json, ...]:
        """One user message: the problem, what to write, and in which form."""
        assert isinstance(item, ProblemItem)
        problem = item.question_content.strip()
        if item.function is None:
            return ({"role": "user", "content": SCRIPT.format(problem=problem)},)
        given = item.starter_code.strip("\n")
        if not given.strip():
            given = f"class Solution:\n    def {item.function}(self, ...):\n        ..."
        content = FUNCTION.format(problem=problem, starter_code=given)
        return ({"role": "user", "content": content},)

    def lasting(self, verdict: Json) -> Json:
        """A verdict without times and memory; and without the test at which time ran out, which may
        be another one the next time.
        """
        details = verdict.get("details")
        if not isinstance(details, dict):
            return verdict
        passing: tuple[str, ...] = MEASURED
        if verdict.get("rule") == "time_limit":
            passing += ("failed_test", "tests")
            verdict = verdict | {"reason": "time ran out"}
        kept = {name: value for name, value in details.items() if name not in passing}
        return verdict | {"details": kept}

    def beside(self, answer: Answer) -> Mapping[str, tuple[int, int]]:
        """How the programs fared, by verdict."""
        return {
            f"programs: {word.replace('_', ' ')}": (int(answer.rule == word), 1) for word in RULES
        }

    def programs_in(self, text: str) -> judging.Extraction:
        """What of a reply may be its program."""
        return judging.extract(text)

    def grade(self, item: Item, completion: Completion, run_code: RunCode | None = None) -> Verdict:
        """Right when the program in a finished answer passes every test. An answer that was cut
        off is wrong and never run.

        Raises ValueError without `run_code`: nobody can say what a program does without running it;
        and SandboxError when one could not be run.
        """
        assert isinstance(item, ProblemItem)
        if run_code is None:
            raise ValueError("a program is judged by running it: pass run_code")
        if unread := wrong_unread(completion):
            return _unrun(*unread)
        extraction = self.programs_in(completion.text)
        tests = (judging.Test(given, expected) for given, expected in lcb_rows.tests(item))
        graded = judging.grade(extraction.candidates, tests, item.function, run_code)
        return _verdict(graded, extraction.blocks)


def _unrun(rule: str, reason: str) -> Verdict:
    """The verdict on an answer in which no program was looked for."""
    cut_off = rule == "cut_off"
    word = "cut_off" if cut_off else "no_code"
    details: Json = {"verdict": word, "failed_test": None, "tests": 0}
    details |= {"cpu_ms": 0, "wall_ms": 0, "max_rss_mib": 0}
    return Verdict(right=False, cut_off=cut_off, rule=rule, reason=reason, details=details)


def _verdict(graded: judging.Graded, blocks: int) -> Verdict:
    judged, chosen = graded.judged, graded.chosen
    return Verdict(
        right=judged.verdict == "accepted",
        cut_off=False,
        extracted=chosen.code if chosen else None,
        rule=judged.verdict,
        reason=f"{judged.reason[:1].upper()}{judged.reason[1:]}.",
        details={
            "verdict": judged.verdict,
            "failed_test": judged.failed_test,
            "tests": judged.tests,
            "cpu_ms": judged.cpu_ms,
            "wall_ms": judged.wall_ms,
            "max_rss_mib": judged.max_rss_mib,
            "extraction": chosen.how if chosen else None,
            "blocks": blocks,
            "same_as_official": chosen.same_as_official if chosen else None,
        },
    )


@dataclass(frozen=True, slots=True)
class ProgramTask(CodeTask):
    """The same for answers that are programs, with nothing around them."""

    def programs_in(self, text: str) -> judging.Extraction:
        """All of it, where there is any."""
        if not text.strip():
            return judging.Extraction((), 0)
        program = judging.Candidate(text.removeprefix("\ufeff"), "", "given", False)
        return judging.Extraction((program,), 0)


TASK = CodeTask()
PROGRAM_TASK = ProgramTask()
