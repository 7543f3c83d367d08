"""Benchmark tasks, one module each; installed as `qualeval.tasks`.

A new benchmark is one file here, a grader if it needs its own kind, a list, a test, and one line in
`TASKS`, which is in the order of the table.
"""

from collections.abc import Mapping

from qualeval.tasks import gpqa, ifeval, lcb, mmlupro, ruler, think
from qualeval.tasks.base import Task

TASKS: Mapping[str, Task] = {
    "mmlupro": mmlupro.TASK,
    "gpqa": gpqa.TASK,
    "ifeval": ifeval.TASK,
    "lcb": lcb.TASK,
    "ruler": ruler.TASK,
    "think": think.TASK,
}
