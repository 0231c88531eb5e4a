"""One HTML page that needs nothing else: its style, its scripts and its data are inside.

Long work on one tells how far it is.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from sourdine.core import disk
from sourdine.core.figure import Figure, Spec
from sourdine.report.charts.legend import Legend, common_legend, without_legend
from sourdine.report.library import chart_library
from sourdine.report.table import TextTable

if TYPE_CHECKING:
    from jinja2 import Environment


@dataclass(frozen=True, kw_only=True)
class Section:
    """Paragraphs, then points, then links to files beside the page, then tables, then figures."""

    title: str
    paragraphs: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()  # words, and the file they lead to
    tables: tuple[TextTable, ...] = ()
    figures: tuple[Figure, ...] = ()

    @cached_property
    def legend(self) -> Legend:
        """The legend that several charts have in common, told once above them; else none."""
        return common_legend([figure.chart for figure in self.figures])


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page for people: no address in it is ever loaded, and its policy forbids the browser to try.

    >>> "<h1>Budget</h1>" in Page(title="Budget", lead="What it costs.", sections=()).html()
    True
    """

    template: ClassVar[str] = "page.html"
    title: str
    lead: str
    sections: tuple[Section, ...]
    verify: str = ""  # how a reader can check what the page says

    @property
    def software(self) -> str:
        """What made the page, as it is cited."""
        from sourdine import __version__

        return f"Sourdine {__version__}"

    def html(self) -> str:
        """The whole page."""
        charts = [
            without_legend(figure.chart, section.legend)
            for section in self.sections
            for figure in section.figures
        ]
        return (
            _templates()
            .get_template(self.template)
            .render(
                page=self,
                specifications=[_inside_script(chart) for chart in charts],
                library=chart_library() if charts else "",
            )
        )

    def write(self, path: Path) -> None:
        """Keep the page in a file. It appears whole or not at all, and is for its owner."""
        disk.write_whole(path, self.html())


@cache
def _templates() -> "Environment":
    """The templates of pages and of views; every text in them is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("sourdine.report", "templates")
    return Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def _inside_script(chart: Spec) -> str:
    """JSON that no HTML parser can take for the end of its script."""
    return json.dumps(chart, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


T = TypeVar("T")


class Watch(Protocol):
    """Hands on the things one by one, and may show how many are left."""

    def __call__(self, label: str, things: Sequence[T], /) -> Iterable[T]: ...


def unwatched(label: str, things: Sequence[T]) -> Iterable[T]:
    """Nobody looks."""
    return things
