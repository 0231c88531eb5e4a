"""The tree of a synthetic table as a picture: columns, and the relations between them that were measured."""

from collections.abc import Sequence

from sourdine.core.figure import Spec
from sourdine.report.charts.base import COLOURS, INK, ROWS, Row, finish
from sourdine.tables.synthetic import SyntheticModel
from sourdine.tables.synthetic.model import SyntheticPart
from sourdine.tables.synthetic.tree import from_root


def draw_tree(model: SyntheticModel, part: SyntheticPart) -> Spec:
    """Columns from the root on the left to the leaves on the right, joined where a pair was measured.

    A thicker line is a stronger relation, by the noisy tables: how much of the records would have to change
    their cell for the two columns to be independent.
    """
    import altair as alt

    rows = _rows(model, part)
    chart = alt.Chart(alt.NamedData(ROWS))
    none = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    across = alt.X("x:Q", title=None, axis=none, scale=alt.Scale(padding=60, nice=False))
    up = alt.Y("y:Q", title=None, axis=none, scale=alt.Scale(padding=14, nice=False))
    tips = [
        alt.Tooltip("pair:N", title="measured"),
        alt.Tooltip("strength:Q", title="distance from independence", format=".1%"),
    ]
    lines = (
        chart.mark_rule(color=COLOURS[0], opacity=0.75)
        .encode(
            across,
            up,
            alt.X2("x2:Q"),
            alt.Y2("y2:Q"),
            alt.StrokeWidth("strength:Q", scale=alt.Scale(range=[1, 7], domainMin=0), legend=None),
            tooltip=tips,
        )
        .transform_filter("isValid(datum.x2)")
    )
    points = chart.mark_point(filled=True, size=70, color=COLOURS[0], opacity=1).encode(across, up)
    names = chart.mark_text(dy=-11, fontSize=11, color=INK).encode(across, up, text="name:N")
    return finish(alt.layer(lines, points, names), rows)


def _rows(model: SyntheticModel, part: SyntheticPart) -> list[Row]:
    """Where each column stands, and where its parent does."""
    order = from_root(part.tree.edges, len(model.columns))
    depth: dict[int, int] = {}
    for column, parent in order:
        depth[column] = 0 if parent is None else depth[parent] + 1
    height = _heights(order)
    rows: list[Row] = []
    for column, parent in order:
        row: dict[str, str | float | None] = {
            "name": model.columns[column].name,
            "x": float(depth[column]),
            "y": height[column],
        }
        if parent is not None:
            row |= {
                "x2": float(depth[parent]),
                "y2": height[parent],
                "pair": f"{model.columns[parent].name} and {model.columns[column].name}",
                "strength": strength(part, column, parent),
            }
        rows.append(row)
    return rows


def _heights(order: Sequence[tuple[int, int | None]]) -> dict[int, float]:
    """A line for each leaf, and every other column in the middle of its children."""
    children: dict[int | None, list[int]] = {}
    for column, parent in order:
        children.setdefault(parent, []).append(column)
    height: dict[int, float] = {}
    leaves = 0

    def place(column: int) -> float:
        nonlocal leaves
        below = [place(child) for child in children.get(column, [])]
        if not below:
            leaves += 1
        height[column] = sum(below) / len(below) if below else -float(leaves)
        return height[column]

    for root in children.get(None, []):
        place(root)
    return height


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
