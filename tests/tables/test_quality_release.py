"""Private counts of what does not fit, paid before anything is asked."""

from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.core.distance import Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter
from sourdine.frames import PrivacyUnit
from sourdine.tables import Query, Table
from sourdine.tables.quality_release import QualityPlan, release_quality
from sourdine.testing import SeededBits

COLUMNS = {
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "sex": {"type": "category", "keys": ["f", "m"]},
}
QUERY = {"name": "pay", "ask": [{"mean": "age"}], "by": ["sex"]}
ROWS = pa.table(
    {"age": [30, 200, None, *([40] * 997)], "sex": [*("x" * 50), *("f" * 950)], "id": list(range(1000))}
)


def table(**more: object) -> Table:
    return Table(ROWS, **{"unit": "person", "columns": COLUMNS, "size": 1000, **more})  # type: ignore[arg-type]


def quality_of(made: Table, epsilon: Fraction = Fraction(1)) -> QualityPlan:
    return QualityPlan(plan=made.plan(Query.read(QUERY), epsilon=1), epsilon=epsilon)


def test_all_of_the_epsilon_goes_to_the_counts(tmp_path: Path) -> None:
    made = table()
    plan = quality_of(made, Fraction(4))
    assert plan.line.spend.loss().epsilon == 4
    with Ledger.create(tmp_path / "a.ledger", epsilon=5) as ledger:
        counts, receipt = release_quality(plan, made.source, ledger, bits=SeededBits(1))
        assert (receipt.price, ledger.status().spent) == (4, 4)
    assert counts.count("sex", "unknown key")[0] == pytest.approx(50, abs=plan.error + 1)
    assert counts.count("age", "above the upper bound")[0] == pytest.approx(1, abs=plan.error + 1)
    assert counts.records[0] == pytest.approx(1000, abs=2 * plan.error)
    assert plan.smallest_share is not None


@pytest.mark.parametrize(
    ("unit", "neighbours", "distance"),
    [
        (PrivacyUnit("person"), Neighbours.ADD_REMOVE, 2),
        (PrivacyUnit("person", column="id", max_rows=3), Neighbours.ADD_REMOVE, 6),
        (PrivacyUnit("person"), Neighbours.REPLACE, 4),
    ],
)
def test_a_unit_moves_the_cells_of_each_column(
    unit: PrivacyUnit, neighbours: Neighbours, distance: int
) -> None:
    plan = quality_of(table(unit=unit, neighbours=neighbours))
    assert plan.line.distance.amount == distance
    assert plan.line.spend.loss().epsilon == 1


def test_nothing_is_counted_that_is_not_paid(tmp_path: Path) -> None:
    made = table()
    with Ledger.create(tmp_path / "a.ledger", epsilon=Fraction(1, 2)) as ledger:
        with pytest.raises(BudgetExceeded):
            release_quality(quality_of(made), made.source, ledger)
        assert ledger.status().spent == 0
    with (
        Ledger.create(tmp_path / "b.ledger", epsilon=3, unit="household") as other,
        pytest.raises(InvalidParameter, match="household"),
    ):
        release_quality(quality_of(made), made.source, other)
