"""One HTML page that needs nothing else: its style, its scripts and its data are inside."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

from sourdine.core import disk
from sourdine.report.charts import Spec
from sourdine.report.table import Table


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A chart under a title that says what it shows."""

    title: str
    chart: Spec
    note: str = ""

    def _repr_png_(self) -> bytes:
        """Notebooks show a figure as a picture."""
        from sourdine.report.picture import picture

        return picture(self)


@dataclass(frozen=True, kw_only=True)
class Section:
    """Paragraphs, then points, then tables, then figures.

    A section that opens a chapter has a name, by which the contents at the top of a page lead to it.
    """

    title: str
    chapter: str = ""
    paragraphs: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


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

    def html(self) -> str:
        """The whole page."""
        from jinja2 import Environment, PackageLoader, StrictUndefined

        loader = PackageLoader("sourdine.report", "templates")
        environment = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        charts = [figure.chart for section in self.sections for figure in section.figures]
        return environment.get_template(self.template).render(
            page=self,
            specifications=[_inside_script(chart) for chart in charts],
            library=_library() if charts else "",
        )

    def write(self, path: Path) -> None:
        """Keep the page in a file. It appears whole or not at all, and is for its owner."""
        disk.write_whole(path, self.html())


def _inside_script(chart: Spec) -> str:
    """JSON that no HTML parser can take for the end of its script."""
    return json.dumps(chart, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


@cache
def _library() -> str:
    """The JavaScript that draws charts, as one script."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
