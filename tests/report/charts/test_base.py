import json

import pytest
import vl_convert

from sourdine.core.display import Spec
from sourdine.report import Axis, Band, Series, Slider, draw_heat, draw_lines
from sourdine.report.charts.base import COLOURS, Row

X = Axis(field="size", title="examples in the data", log=True, form=",")
Y = Axis(field="epsilon", title="ε")
SERIES = Series(field="method", names=("tight", "older"))
ROWS: list[Row] = [
    {"size": size, "noise": noise, "method": method, "epsilon": e, "lower": 0.9 * e, "upper": e}
    for size in (100, 1000, 10_000)
    for noise in (1.0, 1.5)
    for method, e in (("tight", 50 / size / noise), ("older", 90 / size / noise))
]


def drawn(spec: Spec) -> str:
    """The chart as SVG: what does not compile raises here."""
    return str(vl_convert.vegalite_to_svg(json.dumps(spec)))


def test_lines_have_titles_colours_and_a_legend() -> None:
    svg = drawn(draw_lines(ROWS, x=X, y=Y, series=SERIES, mark=1000.0))
    for told in ("examples in the data", "ε", "tight", "older", COLOURS[0], COLOURS[1]):
        assert told in svg
    assert "stroke-dasharray" in svg


def test_lines_without_a_rule_have_no_dashes() -> None:
    assert "stroke-dasharray" not in drawn(draw_lines(ROWS, x=X, y=Y, series=SERIES))


def test_a_slider_shows_one_value_at_a_time_and_tells_it() -> None:
    slider = Slider(field="noise", title="noise", values=(1.0, 1.5), start=1.5)
    spec = draw_lines(ROWS, x=X, y=Y, series=SERIES, band=Band(lower="lower", upper="upper"), slider=slider)
    svg = drawn(spec)
    assert "noise 1.5" in svg
    assert svg.count('aria-roledescription="point"') == len(ROWS) // 2
    assert isinstance(spec["params"], list)
    (param,) = spec["params"]
    assert param["bind"] == {"input": "range", "min": 0, "max": 1, "step": 1, "name": "noise"}
    assert param["value"] == 1


def test_a_slider_that_starts_nowhere_is_refused() -> None:
    slider = Slider(field="noise", title="noise", values=(1.0, 1.5), start=2.0)
    with pytest.raises(ValueError, match="not in tuple"):
        draw_lines(ROWS, x=X, y=Y, series=SERIES, slider=slider)


def test_heat_writes_every_value_and_frames_the_case_in_hand() -> None:
    rows: list[Row] = [
        {"batch": batch, "noise": noise, "epsilon": batch / noise} for batch in (16, 32) for noise in (1, 2)
    ]
    svg = drawn(
        draw_heat(
            rows,
            x=Axis(field="batch", title="batch"),
            y=Axis(field="noise", title="noise"),
            colour=Axis(field="epsilon", title="ε", log=True),
            mark=(16, 2),
        )
    )
    for value in ("8", "16", "32"):
        assert f">{value}</text>" in svg
    assert svg.count(f'stroke="{COLOURS[1]}"') == 1
