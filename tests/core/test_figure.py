import sys
import zlib
from pathlib import Path

import pytest
import vl_convert

from sourdine.core.display import Figure, _packed, picture
from sourdine.core.errors import SourdineError
from sourdine.report import Axis, Series, draw_lines


def test_a_figure_becomes_a_png() -> None:
    rows: list[dict[str, float | str]] = [{"x": float(i), "y": float(i * i), "who": "a"} for i in range(5)]
    chart = draw_lines(
        rows,
        x=Axis(field="x", title="steps"),
        y=Axis(field="y", title="cost"),
        series=Series(field="who", names=("a",)),
    )
    figure = Figure(title="A long title that says the finding. " * 4, chart=chart)
    found = picture(figure, scale=2)
    assert figure._repr_mimebundle_()["image/png"] == picture(figure)  # what a notebook shows
    assert found.startswith(b"\x89PNG")
    width, height = (int.from_bytes(found[at : at + 4], "big") for at in (16, 20))
    assert width > 1000
    assert height > 400


def test_a_picture_is_packed_and_not_changed() -> None:
    rows: list[dict[str, float | str]] = [{"x": float(i), "y": float(i % 3), "who": "a"} for i in range(9)]
    x, y = Axis(field="x", title="steps"), Axis(field="y", title="cost")
    figure = Figure(title="A", chart=draw_lines(rows, x=x, y=y, series=Series(field="who", names=("a",))))
    plain = bytes(vl_convert.vegalite_to_png(dict(figure.chart), scale=1))
    packed = _packed(plain)
    assert len(packed) < len(plain) / 2
    assert packed.startswith(plain[:33])  # the signature, the size and the kind of pixels
    assert packed.endswith(plain[-12:])
    assert _pixels(packed) == _pixels(plain)


def test_without_the_renderer_a_figure_is_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A plain installation has none: the file of the chart is written, and pictures name what they need."""
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    monkeypatch.setattr("sourdine.core.display.find_spec", lambda name: None)
    rows: list[dict[str, float | str]] = [{"x": 1.0, "y": 2.0, "who": "a"}]
    x, y = Axis(field="x", title="steps"), Axis(field="y", title="cost")
    figure = Figure(title="A", chart=draw_lines(rows, x=x, y=y, series=Series(field="who", names=("a",))))
    assert figure.save(tmp_path / "a.json").stat().st_size > 0
    assert "vega" in str(figure._repr_mimebundle_()["text/html"])
    for name in ("a.png", "a.svg"):
        with pytest.raises(SourdineError, match="vl-convert") as problem:
            figure.save(tmp_path / name)
        assert 'pip install "vl-convert-python' in str(problem.value)
        assert not (tmp_path / name).exists()


def _pixels(png: bytes) -> bytes:
    """What stands in the chunks of data, each of which has to have the right sum."""
    at, found = 8, b""
    while at < len(png):
        size = int.from_bytes(png[at : at + 4], "big")
        kind, body, told = png[at + 4 : at + 8], png[at + 8 : at + 8 + size], png[at + 8 + size :][:4]
        assert zlib.crc32(kind + body) == int.from_bytes(told, "big")
        found += body if kind == b"IDAT" else b""
        at += 12 + size
    return zlib.decompress(found)
