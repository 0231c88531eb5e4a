"""Tables as data: shown in pages and terminals, kept as CSV."""

import csv
import gzip
import io
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol, TypeVar

from sourdine.accounting.accountant import Bracket
from sourdine.core import files as disk
from sourdine.core.display import Figure, Spec
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import shorten, shorten_down, shorten_up
from sourdine.core.text import tame
from sourdine.report.charts.base import Legend, common_legend, without_legend

if TYPE_CHECKING:
    from jinja2 import Environment

Cell = str | int | float | Decimal | Bracket | None
_LONG = 24  # characters of a cell that needs a line of its own
_NUMBER = re.compile(r"|–|[<-]?[\d,.]+([eE]-?\d+)?(\s?%)?( ± [\d,.]+)?")


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """Rows under named columns.

    Cells keep their full value in CSV and are shortened where people read them; a bracket is shortened
    outwards, so that nobody reads a smaller epsilon than was proven.

    >>> rows = ((14070, Bracket(0.61084, 0.61144)),)
    >>> TextTable(name="costs", title="Costs", columns=("steps", "ε"), rows=rows).shown()
    (('14,070', '0.6108 to 0.6115'),)
    """

    crossed: ClassVar[bool] = False
    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise InvalidParameter(
                f"Every row of the table '{self.name}' must have {len(self.columns)} cells."
            )

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that hold numbers only."""
        return tuple(
            name
            for place, name in enumerate(self.columns)
            if not any(isinstance(row[place], str) for row in self.rows)
        )

    @property
    def right(self) -> tuple[str, ...]:
        """The columns that pages align to the right: also those of numbers that are written as text."""
        written = tuple(
            name
            for place, name in enumerate(self.columns)
            if all(isinstance(row[place], str) and _NUMBER.fullmatch(str(row[place])) for row in self.rows)
        )
        return tuple(name for name in self.columns if name in self.numbers or (self.rows and name in written))

    @property
    def wordy(self) -> bool:
        """Whether it holds sentences, which narrow screens show one under the other instead of in columns."""
        return any(isinstance(cell, str) and len(cell) > _LONG for row in self.rows for cell in row)

    def shown(self) -> tuple[tuple[str, ...], ...]:
        """The cells as people read them."""
        return tuple(tuple(show(cell) for cell in row) for row in self.rows)

    def lines(self) -> Iterator[str]:
        """The table as lines of text, for terminals."""
        numbers = self.numbers
        grid = [self.columns, *self.shown()]
        cells = [[tame(cell) for cell in row] for row in grid]
        wide = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        if self.title:
            yield tame(self.title)
        for row in cells:
            aligned = (
                cell.rjust(wide[k]) if self.columns[k] in numbers else cell.ljust(wide[k])
                for k, cell in enumerate(row)
            )
            yield "  ".join(aligned).rstrip()
        if self.note:
            yield tame(self.note)

    def csv(self) -> str:
        """The whole table as CSV; a bracket takes two columns."""
        split = [
            any(isinstance(row[place], Bracket) for row in self.rows) for place in range(len(self.columns))
        ]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        header: list[str] = []
        for name, two in zip(self.columns, split, strict=True):
            header += [f"{name} lower", f"{name} upper"] if two else [name]
        writer.writerow(header)
        for row in self.rows:
            line: list[str | int | float | Decimal | None] = []
            for cell, two in zip(row, split, strict=True):
                if isinstance(cell, Bracket):
                    line += [cell.lower, cell.upper]
                else:
                    line += [cell, cell] if two else [cell]
            writer.writerow(line)
        return text.getvalue()


def show(cell: Cell) -> str:
    """One cell as people read it.

    >>> show(14074), show(14074.2), show(0.000123456), show(None), show(Bracket(0, 1))
    ('14,074', '14,070', '0.0001235', '–', 'at most 1')
    >>> show(Decimal("1234.50"))
    '1,234.50'
    """
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int):
        return f"{cell:,}"
    if isinstance(cell, Decimal):  # has the digits that it is worth
        return f"{cell:,f}" if cell.is_finite() else "∞" if cell > 0 else "-∞"
    if isinstance(cell, Bracket):
        high = shorten_up(cell.upper)
        return f"{shorten_down(cell.lower)} to {high}" if cell.lower > 0 else f"at most {high}"
    return shorten(cell) if math.isfinite(cell) else "∞"


# One HTML page that needs nothing else: its style, its scripts and its data are inside.
#
# Long work on one tells how far it is.


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


# The script that draws charts, and the pictures that need the renderer of the `pictures` extra.


@cache
def chart_library() -> str:
    """Return the JavaScript that draws charts, as one script; its licences are in `charts_licences.txt`."""
    plain = Path(__file__).with_name("charts.js")  # of a checkout
    packed = plain.with_name("charts.js.gz")  # of a wheel
    try:
        return gzip.decompress(packed.read_bytes()).decode() if packed.exists() else plain.read_text("utf-8")
    except FileNotFoundError:
        raise SourdineError(
            "Charts need the script that an installation makes, which is not there. "
            "Install Sourdine, in its checkout: pip install -e ."
        ) from None
