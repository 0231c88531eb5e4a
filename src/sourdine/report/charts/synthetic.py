"""The tree of a synthetic table as a picture: columns, and the relations between them that were measured."""

from sourdine.core.display import Spec
from sourdine.report.charts.base import COLOURS, GREY, INK, ROWS, Row, finish
from sourdine.tables.synthetic import SyntheticModel
from sourdine.tables.synthetic.measure import from_root
from sourdine.tables.synthetic.model import SyntheticPart

_LINE = 24  # pixels that each column has, from top to bottom
_STEP, _MOST_WIDTH = 30, 170  # pixels from a column to its children, and of all steps on a telephone
_MARGIN = 8


def draw_tree(model: SyntheticModel, part: SyntheticPart) -> Spec:
    """Columns below each other, each under its parent, to the right of it, and joined with it.

    Every column has a line of its own, so that names never meet, on a telephone either. A thicker line is a
    stronger relation, by the noisy tables: how much of the records would have to change their cell for the
    two columns to be independent.
    """
    import altair as alt

    rows = _rows(model, part)
    chart = alt.Chart(alt.NamedData(ROWS))
    none = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    deepest = max(int(row["x"] or 0) for row in rows)
    width = min(_STEP, _MOST_WIDTH / max(deepest, 1)) * deepest
    places = alt.Scale(domain=[0, max(deepest, 1)], range=[_MARGIN, _MARGIN + max(width, 1)], nice=False)
    across = alt.X("x:Q", title=None, axis=none, scale=places)
    above, up = (
        alt.Y(f"{name}:Q", title=None, axis=none, scale=alt.Scale(padding=12, nice=False))
        for name in ("y2", "y")
    )
    child = chart.transform_filter("isValid(datum.x2)")
    trunks = child.mark_rule(color=GREY, opacity=0.6).encode(
        alt.X("x2:Q", title=None, axis=none, scale=places), above, alt.Y2("y:Q")
    )
    branches = child.mark_rule(color=COLOURS[0], opacity=0.75).encode(
        across,
        up,
        alt.X2("x2:Q"),
        alt.StrokeWidth("strength:Q", scale=alt.Scale(range=[1, 9], domainMin=0), legend=None),
        tooltip=[
            alt.Tooltip("pair:N", title="measured"),
            alt.Tooltip("strength:Q", title="distance from independence", format=".1%"),
        ],
    )
    points = chart.mark_point(filled=True, size=70, color=COLOURS[0], opacity=1).encode(across, up)
    names = chart.mark_text(dx=9, align="left", fontSize=12, color=INK).encode(across, up, text="name:N")
    spec = finish(alt.layer(trunks, branches, points, names), rows)
    return {**spec, "height": _LINE * len(rows) + _LINE}


def _rows(model: SyntheticModel, part: SyntheticPart) -> list[Row]:
    """Where each column stands, and where its parent does: all below a column before its next sibling."""
    order = from_root(part.tree.edges, len(model.columns))
    parents = dict(order)
    children: dict[int | None, list[int]] = {}
    for column, parent in order:
        children.setdefault(parent, []).append(column)
    waiting = children.get(None, [])[::-1]
    depth: dict[int, int] = {}
    line: dict[int, int] = {}
    rows: list[Row] = []
    while waiting:
        column = waiting.pop()
        parent = parents[column]
        depth[column] = 0 if parent is None else depth[parent] + 1
        line[column] = -len(line)
        row: dict[str, str | float | None] = {
            "name": model.columns[column].name,
            "x": float(depth[column]),
            "y": float(line[column]),
        }
        if parent is not None:
            row |= {
                "x2": float(depth[parent]),
                "y2": float(line[parent]),
                "pair": f"{model.columns[parent].name} and {model.columns[column].name}",
                "strength": strength(part, column, parent),
            }
        rows.append(row)
        waiting += children.get(column, [])[::-1]
    return rows


def strength(part: SyntheticPart, one: int, other: int) -> float:
    """The total variation between a table of the tree and independence, from 0 to 1."""
    place = next(i for i, edge in enumerate(part.tree.edges) if set(edge) == {one, other})
    table = part.tree.tables[place]
    total = table.sum()
    if total <= 0:
        return 0.0
    shares = table / total
    expected = shares.sum(1, keepdims=True) * shares.sum(0, keepdims=True)
    return float(abs(shares - expected).sum() / 2)
