"""The command line: parse, call, print, exit code. The only module that prints.

Everything heavy is imported inside the commands, so that `--help` answers at once.
"""

import functools
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, ParamSpec

import typer

from qualeval import __version__
from qualeval.errors import OptionError, QualevalError, did_you_mean
from qualeval.shell import SeveralBases, end_politely_on_signals
from qualeval.whole_file import write_whole

if TYPE_CHECKING:
    from qualeval.run import RunOutcome
    from qualeval.tasks.base import Task

Arguments = ParamSpec("Arguments")

app = typer.Typer(
    name="qualeval",
    help="How well does your locally served LLM answer? Numbers you can publish and defend.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
card_app = typer.Typer(help="Write a card, or check one.", no_args_is_help=True)
lists_app = typer.Typer(help="Show, fetch or import question lists.", no_args_is_help=True)
sandbox_app = typer.Typer(help="Check what programs are run in.", no_args_is_help=True)
app.add_typer(sandbox_app, name="sandbox", rich_help_panel=None)
app.add_typer(card_app, name="card", rich_help_panel=None)
app.add_typer(lists_app, name="lists", rich_help_panel=None)


class ScheduleName(StrEnum):
    """How parts share the pool."""

    default = "default"
    packed = "packed"
    parts = "parts"


class ListName(StrEnum):
    """Lists that every part has."""

    official = "official"
    sample = "sample"


def ends_with_its_code(command: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Show a QualevalError as its message and end with its exit code; Ctrl-C ends with 130."""

    @functools.wraps(command)
    def wrapped(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except QualevalError as error:
            typer.echo(f"qualeval: {error}", err=True)
            raise typer.Exit(error.exit_code) from None
        except KeyboardInterrupt:
            typer.echo("qualeval: interrupted", err=True)
            raise typer.Exit(130) from None

    return wrapped


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"qualeval {__version__}")
        raise typer.Exit()


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """How well does your locally served LLM answer? Numbers you can publish and defend."""


CardPath = Annotated[Path, typer.Argument(metavar="CARD", help="The card: a JSON file.")]
Unsafe = Annotated[
    bool,
    typer.Option(
        "--unsafe-no-sandbox", help="Run the model's programs unprotected; the results say so."
    ),
]
RunsDir = Annotated[Path, typer.Option("--runs", metavar="DIR", help="Folder of all runs.")]


@app.command()
@ends_with_its_code
def run(
    card: CardPath,
    parts: Annotated[
        str | None, typer.Option(help="Parts to run, comma separated; all when not given.")
    ] = None,
    job: Annotated[
        str | None, typer.Option(metavar="NAME", help="Folder below DIR; default: the label.")
    ] = None,
    runs: RunsDir = Path("runs"),
    lists: Annotated[
        ListName | None, typer.Option(help="Use this list for every part, whatever the card says.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Ask only the first N items; the part stays open.")
    ] = None,
    repetition: Annotated[
        bool, typer.Option("--repetition", help="Measure again, in a folder NAME-rep1, -rep2, ...")
    ] = False,
    schedule: Annotated[
        ScheduleName, typer.Option(help="How parts share the server's slots.")
    ] = ScheduleName.default,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Write requests and contracts, send nothing.")
    ] = False,
    no_public: Annotated[
        bool, typer.Option("--no-public", help="Write no filtered copy for publication.")
    ] = False,
    unsafe_no_sandbox: Unsafe = False,
) -> None:
    """Run the parts of a card; the same command goes on where it ended."""
    from qualeval.card import load_card
    from qualeval.job import RunOptions

    options = RunOptions(
        runs=runs,
        command=shlex.join(["qualeval", *sys.argv[1:]]),
        parts=parts,
        job=job,
        lists=lists.value if lists else None,
        limit=limit,
        repetition=repetition,
        schedule=schedule.value,
        unsafe_no_sandbox=unsafe_no_sandbox,
    )
    loaded = load_card(card)
    if dry_run:
        from qualeval.dry_run import dry_run as write_requests

        for path, count in write_requests(loaded, card.parent, options).items():
            typer.echo(f"{path}: {count:,} requests, none sent")
        return
    from qualeval.progress import progress_on
    from qualeval.run import run as run_card

    end_politely_on_signals()
    with progress_on(sys.stderr) as watcher:
        outcome = run_card(loaded, card.parent, options, watcher)
    _show_outcome(outcome, public=not no_public)


def _show_outcome(outcome: "RunOutcome", *, public: bool) -> NoReturn:
    """Publish, print the table and end with the run's exit code, whether or not anybody reads."""
    from qualeval.publish import publish_run

    published = publish_run(outcome.folder).line if public and outcome.summary.parts else None
    with suppress(OSError):
        for line, is_error in _outcome_lines(outcome, published):
            typer.echo(line, err=is_error)
    if outcome.complete:
        raise typer.Exit(0)
    raise typer.Exit(130 if outcome.interrupted else 1)


def _outcome_lines(outcome: "RunOutcome", published: str | None) -> Iterator[tuple[str, bool]]:
    """(line, whether it is an error) of what is said at the end of a run."""
    from qualeval.table import text_table

    yield text_table(outcome.summary), False
    yield f"\nFiles: {outcome.folder}/ (summary.md, summary.json, answers in <part>.jsonl)", False
    if published is not None:
        yield published, False
    if outcome.stopped:
        yield f"qualeval: {outcome.stopped}", True
    open_parts = [p for p in outcome.summary.parts.values() if p.status != "ok"]
    for part in open_parts:
        yield f"qualeval: {part.part} is incomplete: {part.incomplete_because}", True
    if open_parts:
        done, total = sum(p.answered for p in open_parts), sum(p.n for p in open_parts)
        yield f"qualeval: {done} of {total} done; run the same command again to go on", True


@app.command()
@ends_with_its_code
def doctor(card: CardPath) -> None:
    """Send a handful of requests and say what would spoil a run."""
    from qualeval.card import load_card
    from qualeval.doctor import examine

    findings = examine(load_card(card), card.parent)
    width = max(len(finding.what) for finding in findings)
    for finding in findings:
        typer.echo(f"{finding.state:<5}  {finding.what:<{width}}  {finding.detail}")
    raise typer.Exit(1 if any(finding.state == "fail" for finding in findings) else 0)


@app.command("grade-file")
@ends_with_its_code
def grade_file(
    part: Annotated[str, typer.Argument(help="The part whose grader to use.")],
    replies: Annotated[
        Path,
        typer.Argument(metavar="REPLIES.jsonl", help='{"id", "text", "finish_reason"?} a line.'),
    ],
    items: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The items; default: the official list.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where verdicts go; default: the screen.")
    ] = None,
    unsafe_no_sandbox: Unsafe = False,
) -> None:
    """Grade replies that were made elsewhere."""
    from qualeval import grade_file as module

    task = _task(part)
    graded = module.grade_file(part, replies, items, unsafe_no_sandbox=unsafe_no_sandbox)
    text = module.output_lines(task, graded)
    if out is None:
        typer.echo(text, nl=False)
    else:
        _write_whole(out, text)
    verdicts = [reply.verdict for reply in graded if reply.verdict is not None]
    right = sum(verdict.right for verdict in verdicts)
    cut = sum(verdict.cut_off for verdict in verdicts)
    typer.echo(f"{part}: {right} right of {len(graded)} replies, {cut} cut off", err=True)
    if len(verdicts) < len(graded):
        left = len(graded) - len(verdicts)
        typer.echo(f"qualeval: {left} replies have no verdict: the sandbox failed", err=True)
        raise typer.Exit(1)


def _task(part: str) -> "Task":
    from qualeval.tasks import TASKS

    if part not in TASKS:
        hint = did_you_mean(part, TASKS)
        raise OptionError(f"part '{part}' is unknown{hint}; there are: {', '.join(TASKS)}")
    return TASKS[part]


def _write_whole(path: Path, text: str) -> None:
    """Write a file at once or not at all."""
    try:
        write_whole(path, text.encode())
    except OSError as error:
        raise OptionError(f"{path}: cannot be written: {error.strerror}") from None


RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")]


def _show(lines: list[str], code: int = 0) -> NoReturn:
    for line in lines:
        typer.echo(line)
    raise typer.Exit(code)


@app.command()
@ends_with_its_code
def grade(
    run: RunPath,
    parts: Annotated[str | None, typer.Option(help="Parts to grade, comma separated.")] = None,
    unsafe_no_sandbox: Unsafe = False,
) -> None:
    """Grade a run again from its raw replies; no server."""
    from qualeval.regrade import grade_command

    _show(*grade_command(run, parts, unsafe_no_sandbox=unsafe_no_sandbox))


@app.command()
@ends_with_its_code
def summarize(
    run: RunPath,
    format: Annotated[
        str, typer.Option(metavar="table|md|csv|json|model-index", help="How to print it.")
    ] = "table",
) -> None:
    """Print the numbers of a run."""
    from qualeval.publish import is_bundle, publish_run
    from qualeval.summary_formats import summarize_command

    text, code = summarize_command(run, format)
    typer.echo(text, nl=False)
    if not is_bundle(run):
        typer.echo(publish_run(run, check=True).line, err=True)
    raise typer.Exit(code)


@app.command()
@ends_with_its_code
def verify(run: RunPath) -> None:
    """Recompute every number and hash of a run, or of a published bundle."""
    from qualeval.publish import is_bundle, verify_bundle
    from qualeval.verify import verify_command

    _show(*(verify_bundle(run) if is_bundle(run) else verify_command(run)))


@app.command()
@ends_with_its_code
def publish(
    run: RunPath,
    to: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the public copy goes.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Say what would happen, write nothing.")
    ] = False,
) -> None:
    """Write a copy that may go on a public page, and why what is not in it may not."""
    from qualeval.publish import publish_command

    _show(*publish_command(run, to, check=check))


@app.command()
@ends_with_its_code
def report(
    run: RunPath,
    new: Annotated[
        Path | None, typer.Argument(metavar="NEW", help="Another run, to show what changed.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="The page; default: in the folder.")
    ] = None,
    with_prompts: Annotated[
        bool, typer.Option("--with-prompts", help="Put gated questions in too: not to publish.")
    ] = False,
) -> None:
    """Write a page to look at: the table, the conditions, every answer."""
    from qualeval.report import report_command

    _show(*report_command(run, new, out, with_prompts=with_prompts))


@app.command()
@ends_with_its_code
def show(
    run: RunPath,
    part: Annotated[str, typer.Argument(metavar="PART", help="The part.")],
    id: Annotated[str, typer.Argument(metavar="ID", help="Id of the item.")],
) -> None:
    """Show one answer in full, with its prompt."""
    from qualeval.show import show_command

    _show(show_command(run, part, id))


@app.command("runs")
@ends_with_its_code
def list_runs(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of all runs.")] = Path(
        "runs"
    ),
) -> None:
    """List all runs and their rows."""
    from qualeval.runs_table import runs_command

    _show(runs_command(folder))


@app.command(cls=SeveralBases)
@ends_with_its_code
def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="BASE NEW..", help="Run folders or summary files.")
    ],
    base: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="RUN", help="One of several runs of the old side; all others are new."
        ),
    ] = None,
    gate: Annotated[
        float | None, typer.Option(metavar="POINTS", help="End with 0, 1 or 3 by this margin.")
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option(metavar="FIELD", help="A condition that may differ.")
    ] = None,
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="Compare counts alone, as with a published table.")
    ] = False,
    format: Annotated[
        str, typer.Option(metavar="table|md|json", help="How to print it.")
    ] = "table",
) -> None:
    """Did answers get better or worse? Item by item, under the same conditions."""
    from qualeval.compare_runs import compare_command

    old, new = (base, runs) if base else (runs[:1], runs[1:])
    text, code = compare_command(
        old, new, gate=gate, allow=allow or [], unpaired=unpaired, format=format
    )
    typer.echo(text)
    raise typer.Exit(code)


@card_app.command("new")
@ends_with_its_code
def card_new(
    base_url: Annotated[
        str, typer.Argument(metavar="URL", help="The server, such as http://127.0.0.1:8000/v1")
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write it.")] = Path(
        "card.json"
    ),
    api_key_env: Annotated[
        str | None, typer.Option(metavar="NAME", help="Environment variable that holds the key.")
    ] = None,
) -> None:
    """Write a card by asking a running server."""
    from qualeval.new_card import ask_for_card

    if out.exists():
        raise OptionError(f"--out: {out} is there already; name another file")
    text, notes = ask_for_card(base_url, api_key_env)
    _write_whole(out, text)
    typer.echo(f"wrote {out}")
    for note in notes:
        typer.echo(f"  {note}")
    typer.echo(f"next: qualeval card check {out}, qualeval doctor {out}, qualeval run {out}")


@card_app.command("check")
@ends_with_its_code
def card_check(card: CardPath) -> None:
    """Explain every fault of a card, or say what it means."""
    from qualeval.card import load_card
    from qualeval.new_card import explain

    for line in explain(load_card(card), card.parent):
        typer.echo(line)


PartArgument = Annotated[str, typer.Argument(metavar="PART", help="The part.")]


@lists_app.command("show")
@ends_with_its_code
def lists_show(part: PartArgument) -> None:
    """Say what a part's official list is, and whether its questions are on this machine."""
    from qualeval.lists import describe

    for line in describe(_task(part)):
        typer.echo(line)


@lists_app.command("fetch")
@ends_with_its_code
def lists_fetch(part: PartArgument) -> None:
    """Fetch a part's questions from the hub (HF_TOKEN, HF_ENDPOINT are obeyed)."""
    from qualeval.lists import fetch, proof

    task = _task(part)
    typer.echo(f"wrote {fetch(task.source)}; {proof(task)}")


@lists_app.command("import")
@ends_with_its_code
def lists_import(
    part: PartArgument,
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH",
            help="A .jsonl, .csv, .parquet or .zip (for lcb: .jsonl or .parquet), or a folder.",
        ),
    ],
) -> None:
    """Take a part's questions from a file or folder."""
    from qualeval.lists import import_rows, proof

    task = _task(part)
    if not path:  # as a Path it would be the current folder
        raise OptionError("PATH: is empty; name a file or a folder")
    typer.echo(f"wrote {import_rows(task.source, Path(path))}; {proof(task)}")


@lists_app.command("pin", hidden=True)
@ends_with_its_code
def lists_pin(part: PartArgument, path: Path) -> None:
    """Draw a part's official list from all rows of its source and print the pin."""
    from qualeval.lists import drawn_pin
    from qualeval.pins import text_of

    typer.echo(text_of(drawn_pin(_task(part), path)), nl=False)


@sandbox_app.command("check")
@ends_with_its_code
def sandbox_check(
    every: Annotated[bool, typer.Option("--all", help="Try the weaker rungs too.")] = False,
) -> None:
    """Attack the sandbox that programs would be run in, and say what held."""
    from qualeval.sandbox.ladder import check_lines

    _show(*check_lines(every=every))


def main() -> None:
    """The command `qualeval`."""
    app()
