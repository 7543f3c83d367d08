"""Judges programs: finds the code in a reply, runs every test, compares outside the sandbox.

    reply -> extract -> candidates -> grade: choose (compiled in the sandbox) -> judge -> Judged

The verdict is the one a real judge gives, after the method of LiveCodeBench (Jain et al. 2024,
arXiv 2403.07974); `DEVIATIONS` says where it knowingly leaves the official grader. How a program is
run is passed in (`RunCode`), so nothing here starts a process, and the same program, tests and runs
give the same verdict.
"""

from qualeval.graders.code.extraction import Candidate, Extraction, extract
from qualeval.graders.code.judge import (
    BUDGET_SECONDS,
    DEVIATIONS,
    VERSION,
    Graded,
    Judged,
    Test,
    VerdictWord,
    grade,
    judge,
)

__all__ = [
    "BUDGET_SECONDS",
    "DEVIATIONS",
    "VERSION",
    "Candidate",
    "Extraction",
    "Graded",
    "Judged",
    "Test",
    "VerdictWord",
    "extract",
    "grade",
    "judge",
]
