"""Many tables asked at once answer as each alone does."""

from pathlib import Path

import pytest

from sourdine.audit.plans import LineAudit, PlanAudit
from sourdine.audit.plans.batched import NUMBER, BatchedSource, numbered
from sourdine.audit.plans.engines import ENGINES, Workplace
from sourdine.audit.plans.movement import movements
from sourdine.audit.plans.replay import _Replay
from sourdine.audit.plans.walk import Layout, Walk
from tests.faults.cases import JOINED, OPEN, RECORDS, UNITS, FaultCase


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(RECORDS, id="records", marks=pytest.mark.slow),
        pytest.param(UNITS, id="units"),
        pytest.param(JOINED, id="joined", marks=pytest.mark.slow),
        pytest.param(OPEN, id="open"),
    ],
)
def test_each_answers_as_if_it_were_alone(case: FaultCase, tmp_path: Path) -> None:
    plan, engine = case.plan(), ENGINES["duckdb"]
    replay = _Replay(
        PlanAudit(plan, [LineAudit(line) for line in plan.lines], case.joins()),
        engine,
        3,
        Workplace(tmp_path),
    )
    walk = Walk(plan, 3, joins=case.joins())
    steps = walk.steps(30)
    wide = Layout((*walk.layout.names, NUMBER), (*walk.layout.kinds, "BIGINT"))
    tables = BatchedSource(replay._open(wide, numbered([step.rows for step in steps]), NUMBER), len(steps))
    differ = 0
    for number in (0, 7, 30):
        alone = replay._exact(replay._open(walk.layout, steps[number].rows))
        for place, (line, exact) in replay._exact(tables.table(number)).items():
            moved = movements(line, alone[place][1], exact, plan.schema)
            assert not any(each.amount for each in moved), line.measurement.label
            other = replay._exact(tables.table(number - 5))[place][1]
            differ += bool(movements(line, exact, other, plan.schema)[0].amount)
    assert differ  # else nothing was compared
