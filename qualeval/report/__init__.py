"""`qualeval report RUN [NEW]`: one HTML file that shows a run, or one run against another.

    read       a run folder or a bundle -> its parts, answers, prompts
    notes      what the numbers demand to be said
    facts      conditions with their sources, setup, files, commands
    plot       shares -> the places of marks on a line
    sides      one answer -> what is shown of it, whatever graded it
    answers    all of them -> the data behind the page's list, within a size
    embed      values -> text that can stand inside a page and do nothing
    run_page, pair_page   all of that -> the page

The page opens from disk and asks nobody for anything: its policy allows its own style and script,
by their hashes, and nothing else. What a model wrote is data in it, and is only ever shown.
"""

from pathlib import Path

from qualeval.errors import DiskError, OptionError
from qualeval.whole_file import write_whole


def report_command(
    run: Path, new: Path | None, out: Path | None, *, with_prompts: bool
) -> tuple[list[str], int]:
    """Write the page of `run`, or of `new` against `run`; what to print, and exit code 0.

    Without `out` it is `RUN/report.html`, for two runs `NEW/report-vs-<base>.html`; for a published
    bundle, which must hold nothing but what was checked, the same beside it. Raises QualevalError
    when a run cannot be read, when two cannot be compared, or when the file cannot be written.
    """
    from qualeval.report.pair_page import pair_page
    from qualeval.report.run_page import run_page

    if out is not None and out.is_dir():
        raise OptionError(f"--out: {out} is a folder; name a file in it")
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise OptionError(f"--out: {out} is no page; name a file that ends in .html")
    if out is not None and not out.parent.is_dir():
        raise OptionError(f"--out: there is no folder {out.parent}; make it, or name another")
    out = out or _place(run, new)
    if new is None:
        page = run_page(run, out.parent, with_prompts=with_prompts)
    else:
        page = pair_page(run, new, with_prompts=with_prompts)
    data = page.html.encode("utf-8")
    try:
        write_whole(out, data)
    except OSError as error:
        raise DiskError(f"{out}: cannot be written: {error.strerror}") from None
    size = f"{len(data) / 1e6:.1f} MB"
    address = out.resolve().as_uri()
    return [f"wrote {out}: {page.answers:,} answers, {size}", *page.said, f"open {address}"], 0


def _place(run: Path, new: Path | None) -> Path:
    from qualeval.publish import is_bundle

    shown = new or run
    name = f"report-vs-{run.resolve().name}.html" if new else "report.html"
    if is_bundle(shown):
        shown = shown.resolve()
        return shown.with_name(f"{shown.name}-{name}")
    return shown / name
