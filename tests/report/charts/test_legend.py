"""One legend for charts whose colours mean the same."""

import json
from typing import Any

from sourdine.core.display import Figure, Spec
from sourdine.report import Axis, Page, Section, Series, draw_lines
from sourdine.report.charts.base import common_legend, legend_of, without_legend

TWO = (("ours", "#0072B2"), ("theirs", "#D55E00"))


def chart(*names: str) -> Spec:
    rows = [{"x": x, "y": 2.0 * x, "who": name} for x in (1, 2) for name in names]
    axes = Axis(field="x", title="x"), Axis(field="y", title="y")
    return draw_lines(rows, x=axes[0], y=axes[1], series=Series(field="who", names=names))


def test_a_line_alone_needs_no_legend() -> None:
    assert legend_of(chart("ours")) == ()
    assert legend_of(chart("ours", "theirs")) == TWO


def test_equal_charts_share_one() -> None:
    one, other = chart("ours", "theirs"), chart("ours", "theirs", "others")
    assert common_legend([one, one]) == TWO
    assert common_legend([one]) == ()
    assert common_legend([one, other])[:2] == TWO
    assert common_legend([one, one, chart("theirs", "ours")]) == ()  # where blue means another thing
    blue: Spec = {"layer": [{"mark": {"type": "bar", "color": "#0072B2"}}]}
    assert common_legend([one, one, blue]) == ()  # or nothing
    bare: Any = without_legend(one, TWO)
    assert [layer["encoding"]["color"]["legend"] for layer in bare["layer"]] == [None]
    assert without_legend(other, TWO) is other


def test_a_page_tells_it_once_above_them() -> None:
    figures = tuple(Figure(title="lines", chart=chart("ours", "theirs")) for _ in range(3))
    html = Page(title="t", lead="l", sections=(Section(title="s", figures=figures),)).html()
    assert html.count('class="legend"') == 1
    assert html.count("</i>theirs</li>") == 1
    drawn = [
        line for line in html.splitlines() if line.startswith('{"$schema') or '"datasets"' in line[:4000]
    ]
    specs = [json.loads(line.rstrip(",")) for line in drawn if line.startswith("{")]
    assert [legend_of(spec) for spec in specs] == [(), (), ()]
