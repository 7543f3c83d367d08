"""Templates, style and script -> the text of a page. The only module that knows the templates.

Every value is escaped (autoescape), and characters that could steer a reader's eye, control and
direction characters, come out as their escapes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from qualeval import __version__
from qualeval.report.answers import Data
from qualeval.report.embed import policy
from qualeval.show import visible

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, slots=True)
class Page:
    """A page, the number of answers in it, and what the command says of it."""

    html: str
    answers: int
    said: tuple[str, ...] = ()


def page(template: str, data: Data, values: Mapping[str, Any], said: list[str]) -> Page:
    """The page that a template makes of `values` and `data`."""
    from markupsafe import Markup

    # Both are files of this package, and the policy names their hashes.
    style, script = _own("report.css"), _own("report.js")
    html = (
        _environment()
        .get_template(template)
        .render(
            **values,
            version=__version__,
            policy=Markup(policy(style, script)),  # noqa: S704
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            index=Markup(data.index),  # noqa: S704
            records=[Markup(block) for block in data.records],  # noqa: S704
            prompts=[Markup(block) for block in data.prompts],  # noqa: S704
            answers=data.count,
            limit=data.limit,
        )
    )
    if data.limit is not None:
        said = [*said, f"texts are kept up to {data.limit:,} characters; the raw files have all"]
    return Page(html, data.count, tuple(said))


def _own(name: str) -> str:
    return files("qualeval.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> "Environment":
    from jinja2 import DictLoader, Environment, StrictUndefined

    names = ("page.html.j2", "run.html.j2", "pair.html.j2", "parts.html.j2")
    return Environment(
        loader=DictLoader({name: _own(name) for name in names}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_safe_to_see,
    )


def _safe_to_see(value: Any) -> Any:
    """Text with its control and direction characters shown; what is markup already stays."""
    return visible(value) if type(value) is str else value
