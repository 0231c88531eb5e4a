"""How objects show themselves, in notebooks and where they are printed.

What people read is made in `report`, above all that can be shown, and nothing below may import it. So a
class says no more than that it is `Viewable`. When one is first shown, the module of `report.views` with
the name of its package is loaded, and registers its views here.
"""

import json
import struct
import textwrap
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.lazy import install_line

if TYPE_CHECKING:
    import altair as alt


# A chart under a title that says what it shows: as data, as a picture, as a chart of Altair.

Spec = Mapping[str, object]  # of Vega-Lite

_WIDTH = 640
_INK = "#1d2733"
_SCALE = 2.0
_LINE = 80  # characters of a title on one line
_HEAD = 8  # bytes of a PNG before its first chunk
_ENDINGS = (".png", ".svg", ".json")


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A chart under a title that says what it shows; its data are inside.

    Notebooks show it. `save` keeps it in a file, and `altair` gives a chart to go on with.
    """

    title: str
    chart: Spec
    note: str = ""

    def __repr__(self) -> str:
        return f"<Figure {self.title!r}>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, object]:
        """Show a picture where the renderer is installed, else what Altair shows, by its own settings."""
        if find_spec("vl_convert") is None:
            shown = self.altair()._repr_mimebundle_(include, exclude)
            return dict(shown) if isinstance(shown, dict) else {"text/plain": repr(self)}
        return {"image/png": picture(self), "text/plain": repr(self)}

    def altair(self) -> "alt.TopLevelMixin":
        """The same as a chart of Altair, which can be changed, joined with others and saved."""
        import altair as alt

        chart: alt.TopLevelMixin = alt.Chart.from_dict(_alone(self))  # of the class that it describes
        return chart

    def save(self, path: Path | str) -> Path:
        """Keep it as a picture (.png, .svg) or as a specification of Vega-Lite (.json), by the ending."""
        place = Path(path)
        match place.suffix.lower():
            case ".png":
                disk.write_whole(place, picture(self))
            case ".svg":
                disk.write_whole(place, _renderer().vegalite_to_svg(_alone(self)))
            case ".json":
                disk.write_whole(place, json.dumps(_alone(self), allow_nan=False))
            case ending:
                raise InvalidParameter(
                    f"A figure is not written as '{ending}'. Use {' or '.join(_ENDINGS)}, "
                    "or altair().save for what Altair writes."
                )
        return place


def picture(figure: Figure, *, scale: float = _SCALE) -> bytes:
    """A figure as PNG, with its title above; a slider stands where it begins."""
    return _packed(bytes(_renderer().vegalite_to_png(_alone(figure), scale=scale)))


def _renderer() -> ModuleType:
    """Return what draws charts without a browser; it takes 88 MB, so a plain installation has none."""
    try:
        import vl_convert
    except ImportError:
        raise SourdineError(
            "Pictures of charts need vl-convert, which is not installed. Save the figure as .json, or: "
            f"{install_line('pictures')}"
        ) from None
    return vl_convert


def _alone(figure: Figure) -> dict[str, Any]:
    """The specification of a figure that stands by itself: with its title, on white, of a certain width."""
    title = {
        "text": textwrap.wrap(figure.title, _LINE),
        "anchor": "start",
        "fontSize": 14,
        "fontWeight": "bold",
        "color": _INK,
        "offset": 12,
    }
    caption = figure.chart.get("title")
    if isinstance(caption, dict) and "text" in caption:
        title["subtitle"] = caption["text"]
    return {**figure.chart, **_wide(figure.chart), "background": "white", "title": title}


def _wide(chart: Spec) -> dict[str, Any]:
    """Charts below each other have widths of their own."""
    return {} if "vconcat" in chart else {"width": _WIDTH}


def stack(figures: Sequence[Figure]) -> Spec:
    """The charts of figures below each other, each under its title."""
    first = figures[0].chart
    datasets = {
        f"{name}-{place}": rows
        for place, figure in enumerate(figures)
        for name, rows in _datasets(figure.chart).items()
    }
    return {
        **{key: first[key] for key in ("$schema", "config") if key in first},
        "datasets": datasets,
        "vconcat": [_part(figure, place) for place, figure in enumerate(figures)],
    }


def _datasets(chart: Spec) -> Mapping[str, object]:
    datasets = chart.get("datasets", {})
    assert isinstance(datasets, Mapping)
    return datasets


def _part(figure: Figure, place: int) -> dict[str, Any]:
    """A chart within another."""
    whole = {"$schema", "config", "datasets", "background"}
    chart: dict[str, Any] = {key: part for key, part in _alone(figure).items() if key not in whole}
    return _renamed(chart, place) | {"title": {**chart["title"], "fontSize": 13}}


def _renamed(chart: dict[str, Any], place: int) -> dict[str, Any]:
    """A chart, and its layers, with the data of its place among others."""
    copy = dict(chart)
    if "name" in copy.get("data", {}):
        copy["data"] = {"name": f"{copy['data']['name']}-{place}"}
    if "layer" in copy:
        copy["layer"] = [_renamed(layer, place) for layer in copy["layer"]]
    return copy


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


_VIEWS = "sourdine.report.views"
_PAGES = "sourdine.report.pages.release"  # the only ones so far: a page needs few of what views do


class WebPage(Protocol):
    """What browsers show."""

    def html(self) -> str:
        """A page, or a part of one."""


class Readable(WebPage, Protocol):
    """What is shown of an object, for two kinds of places: a notebook has a part of a page."""

    def text(self) -> str:
        """For a terminal: lines."""


@singledispatch
def view(thing: object) -> Readable:
    """What is shown of an object; `report.views` registers one function for each class."""
    raise TypeError(f"There is no view of {type(thing).__name__}")


@singledispatch
def figure(thing: object, *which: str | None) -> Figure:
    """The figure of an object, or of the part of it that is named; registered like views."""
    raise TypeError(f"There is no figure of {type(thing).__name__}")


@singledispatch
def page(thing: object, *beside: object) -> WebPage:
    """The page of an object, from what is published beside it; the module of the page registers it."""
    raise TypeError(f"There is no page of {type(thing).__name__}")


def view_of(thing: object) -> Readable:
    """What is shown of an object."""
    load_views(type(thing))
    return view(thing)


def figure_of(thing: object, *which: str | None) -> Figure:
    """The figure of an object."""
    load_views(type(thing))
    return figure(thing, *which)


def page_of(thing: object, *beside: object) -> WebPage:
    """The page of an object."""
    load_pages()
    return page(thing, *beside)


def load_pages() -> None:
    """Load what draws pages."""
    import_module(_PAGES)


def load_views(kind: type) -> None:
    """Load the views of the packages that a class and its parents come from."""
    for parent in kind.__mro__:
        package, _, rest = parent.__module__.partition(".")
        name = f"{_VIEWS}.{rest.partition('.')[0]}"
        if package == "sourdine" and rest and find_spec(name):
            import_module(name)


class Viewable:
    """Shows itself in notebooks and where it is printed; `repr` stays one line."""

    def _repr_html_(self) -> str:
        return view_of(self).html()

    def __str__(self) -> str:
        return view_of(self).text()
