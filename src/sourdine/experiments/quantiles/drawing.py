"""Lines of errors: the published ones pale, ours in full colour."""

from collections.abc import Iterable, Mapping

from sourdine.experiments.quantiles.published import Curve, thin
from sourdine.report.charts import Axis, Row, Series, Slider, Spec, draw_lines

COLOURS = {
    "histogram, published": "#E69F00",
    "histogram": "#D55E00",
    "inverse sensitivity, published": "#56B4E9",
    "inverse sensitivity": "#0072B2",
    "smooth, ρ = 1": "#CC79A7",
    "smooth, ρ = 100": "#7A4B8C",
    "joint": "#009E73",
}


def draw_errors(rows: Iterable[Row], *, x: Axis, y: Axis, slider: Slider | None = None) -> Spec:
    """A line for each method among the rows, under the field `method`."""
    held = list(rows)
    shown = {str(row["method"]) for row in held}
    names = tuple(name for name in COLOURS if name in shown)
    series = Series(field="method", names=names, colours=tuple(COLOURS[name] for name in names))
    return draw_lines(held, x=x, y=y, series=series, slider=slider)


def published_rows(curves: Mapping[str, Curve], field: str, **common: float) -> list[Row]:
    """The published curves as rows, thinned."""
    return [
        {"method": f"{name}, published", field: x, "error": y, **common}
        for name, curve in curves.items()
        for x, y in thin(curve)
    ]
