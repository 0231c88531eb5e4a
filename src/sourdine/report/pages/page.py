"""One HTML page that needs nothing else: its style, its scripts and its data are inside.

Its charts can be kept as pictures too, for papers and slides; long work tells how far it is.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Protocol, TypeVar

from sourdine.core import disk
from sourdine.report.charts.base import Spec
from sourdine.report.table import TextTable


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A chart under a title that says what it shows."""

    title: str
    chart: Spec
    note: str = ""

    def _repr_png_(self) -> bytes:
        """Notebooks show a figure as a picture."""

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
    tables: tuple[TextTable, ...] = ()
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


_WIDTH = 640
_SCALE = 2.0
_LINE = 80  # characters of a title on one line
_HEAD = 8  # bytes of a PNG before its first chunk


def picture(figure: Figure, *, scale: float = _SCALE) -> bytes:
    """A figure as PNG, with its title above; a slider stands where it begins."""
    import textwrap

    import vl_convert

    title = {"text": textwrap.wrap(figure.title, _LINE), "anchor": "start", "fontSize": 14, "offset": 12}
    told = figure.chart.get("title")
    if isinstance(told, dict) and "text" in told:
        title["subtitle"] = told["text"]
    chart = {**figure.chart, "width": _WIDTH, "background": "white", "title": title}
    return _packed(bytes(vl_convert.vegalite_to_png(chart, scale=scale)))


def _packed(png: bytes) -> bytes:
    """The same picture in a quarter of the bytes: the renderer packs for speed."""
    chunks = list(_chunks(png))
    pixels = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    first = next(at for at, (kind, _) in enumerate(chunks) if kind == b"IDAT")
    others = [(kind, body) for kind, body in chunks if kind != b"IDAT"]
    others.insert(first, (b"IDAT", zlib.compress(pixels, 9)))
    return png[:_HEAD] + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in others
    )


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The kind and content of every part of a PNG."""
    at = _HEAD
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        yield png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        at += 12 + size


T = TypeVar("T")


class Watch(Protocol):
    """Hands on the things one by one, and may show how many are left."""

    def __call__(self, label: str, things: Sequence[T], /) -> Iterable[T]: ...


def unwatched(label: str, things: Sequence[T]) -> Iterable[T]:
    """Nobody looks."""
    return things
