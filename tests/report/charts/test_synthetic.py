from typing import Any

from sourdine.report.charts.base import ROWS
from sourdine.report.charts.synthetic import draw_tree
from sourdine.tables.synthetic.synthesis import carry_out
from sourdine.testing import SeededBits
from tests.tables.synthetic.case import table


def test_every_column_has_a_line_of_its_own_below_its_parent() -> None:
    """Names that stand in one line meet on a narrow screen."""
    people = table(500)
    model = carry_out(people.synthetic_plan(epsilon=2, delta=1e-6), people.source, bits=SeededBits(1)).model
    spec: Any = draw_tree(model, model.parts[0])
    rows = spec["datasets"][ROWS]
    assert sorted(row["name"] for row in rows) == sorted(column.name for column in model.columns)
    assert [row["y"] for row in rows] == [-float(line) for line in range(len(rows))]
    assert spec["height"] >= 20 * len(rows)
    for row in rows[1:]:
        assert row["y2"] > row["y"]
        assert row["x"] == row["x2"] + 1
        between = [each for each in rows if row["y"] < each["y"] < row["y2"]]
        assert all(each["x"] > row["x2"] for each in between)  # no name lies on the line down to a child
