"""Which texts may not leave: lists that are gated, as far as they are on this machine.

Nothing is fetched. A user's own list in a gated part counts as that list, because it may well be a
copy of it; the sample lists are ours and free.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from qualeval.contract import Conditions
from qualeval.errors import ListError
from qualeval.list_rows import rows_of_user_file
from qualeval.lists import official_list
from qualeval.pins import rows_path
from qualeval.publish.overlap import Protected
from qualeval.recheck import list_not_here
from qualeval.tasks import TASKS
from qualeval.tasks.letters import LetterItem


def protected_texts(
    run: Path, names: Sequence[str], parts: Mapping[str, Conditions]
) -> tuple[Protected, dict[str, str]]:
    """The protected texts at hand, and for each part whose list is not, why it is blind.

    `parts` are the conditions of those of the run's parts whose contract can be read.
    """
    protected, blind = Protected(), dict[str, str]()
    for name, task in TASKS.items():
        if not task.source.gated:
            continue
        here = parts.get(name)
        if here is not None and here.list.kind == "file":
            if why := _add_own_list(protected, run / f"{name}.items.jsonl"):
                blind[name] = why
        elif here is not None and here.list.kind == "official":
            if why := list_not_here(name, here) or _add_official(protected, name):
                blind[name] = why
        elif name in names and here is None:
            blind[name] = "its contract cannot be read"
        elif rows_path(task.source).exists():
            _add_official(protected, name)
    return protected, blind


def _add_official(protected: Protected, name: str) -> str | None:
    try:
        items = official_list(TASKS[name]).items
    except ListError as error:
        return str(error).partition("\n")[0]
    for item in items:
        assert isinstance(item, LetterItem)
        for text in (item.question, *item.options):
            protected.add(text)
    return None


def _add_own_list(protected: Protected, path: Path) -> str | None:
    try:
        for _, row in rows_of_user_file(path):
            protected.add_row(row)
    except ListError:
        return f"its own list {path.name} cannot be read"
    return None
