"""A chart under a title that says what it shows: as data, as a picture, as a chart of Altair."""

import json
import struct
import textwrap
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sourdine.core import disk
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.late import install_line

if TYPE_CHECKING:
    import altair as alt

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
