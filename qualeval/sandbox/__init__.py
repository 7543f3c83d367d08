"""Runs programs that nobody trusts: code + stdin + limits -> bytes, status, usage.

    from qualeval.sandbox import Limits, choose_sandbox

    with choose_sandbox().sandbox() as sandbox:
        ran = sandbox.run("print(int(input()) * 2)", b"21", Limits(cpu_seconds=2))
        ran.status, ran.stdout        # "exited", b"42\\n"

A program is a process of its own, in namespaces of its own where the machine has them: no network,
no file of the machine, no environment, an empty /tmp, limits on everything. Needs nothing but
Linux; uses bubblewrap where it is installed.
"""

from qualeval.sandbox.ladder import RUNGS, Chosen, Rung, check_rung, choose_sandbox
from qualeval.sandbox.sandbox import Sandbox
from qualeval.sandbox.values import Limits, Ran, RunCode, RunStatus

__all__ = [
    "RUNGS",
    "Chosen",
    "Limits",
    "Ran",
    "RunCode",
    "RunStatus",
    "Rung",
    "Sandbox",
    "check_rung",
    "choose_sandbox",
]
