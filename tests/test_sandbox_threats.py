"""The threats of the method, part 7: real programs that try, and ordinary ones that must work."""

from functools import cache

import hostile
import pytest
from threat_programs import FORGERIES, ORDINARY, POISONS, SECRET, THREATS, Forgery

from qualeval.graders import code as judging
from qualeval.sandbox import RUNGS, choose_sandbox

NOT_THERE = {"landlock": {"ordinary files_in_tmp": "no file can be written on this rung"}}
"""What a rung does not offer, and why."""

each_rung = pytest.mark.parametrize("rung", list(RUNGS))


@cache
def held(rung: str) -> hostile.Held:
    """All programs on a rung, run once, inside an outer process namespace."""
    return hostile.in_outer_namespace(rung)


def faults(rung: str) -> dict[str, str | None]:
    if why := held(rung).skipped:
        pytest.skip(why)
    return held(rung).faults


@each_rung
@pytest.mark.parametrize("name", [threat.name for threat in THREATS])
def test_a_hostile_program_is_contained(rung: str, name: str) -> None:
    assert faults(rung)[name] is None


@each_rung
@pytest.mark.parametrize("name", [f"after {poison.name}" for poison in POISONS])
def test_the_next_program_sees_nothing_of_the_one_before(rung: str, name: str) -> None:
    assert faults(rung)[name] is None


@each_rung
@pytest.mark.parametrize("name", [f"ordinary {program.name}" for program in ORDINARY])
def test_an_ordinary_program_works(rung: str, name: str) -> None:
    fault = faults(rung)[name]
    if why := NOT_THERE.get(rung, {}).get(name):
        assert fault is not None, f"it works: {why}"
    else:
        assert fault is None


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.name)
def test_a_program_cannot_make_its_verdict_right(forgery: Forgery) -> None:
    """lcb-15, lcb-16: nothing of the expected output is anywhere that it can look."""
    output = f'"{SECRET}"' if forgery.function else f"{SECRET}\n"
    with choose_sandbox().sandbox() as sandbox:
        tests = [judging.Test("1\n", output)]
        judged = judging.judge(forgery.code, tests, forgery.function, sandbox.run)
    assert forgery.verdict == judged.verdict


def test_the_threats_are_as_many_as_the_method_names() -> None:
    assert len(THREATS) + len(POISONS) >= 30
    for programs in (THREATS, POISONS, ORDINARY):
        names = [program.name for program in programs]
        assert len(names) == len(set(names))
