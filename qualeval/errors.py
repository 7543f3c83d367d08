"""Every error that qualeval raises on purpose, and the exit code it ends the command with.

    QualevalError                    message says what, where and what to do next
    ├── InputError            exit 2  something the user gave cannot be used
    │   ├── CardError                 the card: unknown field, missing value, a secret in clear
    │   ├── ListError                 a question list: missing, changed, not allowed
    │   ├── ReplyFileError            a file of replies or items given to `grade-file`
    │   └── OptionError               a command line option or a part name
    ├── ContractError         exit 2  the run folder holds answers given under other conditions
    ├── JobInUseError         exit 2  another process writes this run folder
    ├── RunFolderError        exit 2  a file of the run folder cannot be read
    ├── DiskError             exit 1  a file of the run folder cannot be written
    ├── ServerGoneError        exit 1  the model server stopped answering
    ├── NoSandboxError         exit 2  nothing on this machine can hold a hostile program
    ├── SandboxError           exit 1  a sandbox of ours failed, whatever the program in it did
    └── RequestError          (none)  one request failed; recorded with its item, never graded

A failed request is data, not an end: `RequestError` is caught where answers are collected, and the
part it belongs to becomes `incomplete`. All others end the command.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class QualevalError(Exception):
    """Base of all errors below; `str(error)` is the whole message for the user."""

    exit_code = 2


class InputError(QualevalError):
    """Something the user gave cannot be used."""


class CardError(InputError):
    """The card cannot be used; the message names the file and the field."""


class ListError(InputError):
    """A question list is missing, differs from its pin, or may not be read."""


class ReplyFileError(InputError):
    """A file of replies or items is wrong; the message names the file and the line."""


class OptionError(InputError):
    """A command line option has a value that does not exist."""


class ContractError(QualevalError):
    """The conditions of this run differ from those its folder was started with."""


class JobInUseError(QualevalError):
    """Another process is writing to this run folder."""


class RunFolderError(QualevalError):
    """A file of the run folder cannot be read as what it should be."""


class DiskError(QualevalError):
    """A file of the run folder cannot be written (disk full, no permission)."""

    exit_code = 1


class ServerGoneError(QualevalError):
    """The model server does not answer any more, or never did."""

    exit_code = 1


class NoSandboxError(QualevalError):
    """Nothing on this machine can hold a hostile program; the message says what would."""


class SandboxError(QualevalError):
    """The sandbox failed, not the program in it: no verdict can be given, and none is."""

    exit_code = 1


class RequestError(QualevalError):
    """One request brought no usable reply.

    `kind` is a short word for the table of errors (`http_400`, `timeout`, `bad_json`, ...);
    `retry` says whether the same request may be sent again; `retry_after` is what the server asked
    for, in seconds; `unreachable` is true when no server was there at all.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        retry: bool,
        retry_after: float | None = None,
        unreachable: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry = retry
        self.retry_after = retry_after
        self.unreachable = unreachable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint ` (did you mean 'x'?)` with the nearest known word, or an empty string."""
    nearest = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean '{nearest[0]}'?)" if nearest else ""
