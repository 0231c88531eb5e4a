import json
from fractions import Fraction

import pytest

from sourdine.accounting import (
    PoissonGroup,
    PoissonReplace,
    RandomAllocation,
    Sampling,
    Spend,
    TruncatedPoisson,
    poisson_group,
    poisson_replace,
    random_allocation,
    truncated_poisson,
)
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import PrivacyLoss
from sourdine.learning import NoisyGradient

HALF, TENTH = Fraction(1, 2), Fraction(1, 10)

# as ledgers hold them, for ever: a line here is never changed
WRITTEN = [
    ({"sampling": "poisson-group/1", "rate": "1/10", "group": 3}, PoissonGroup(sampling_rate=TENTH, group=3)),
    (
        {"sampling": "poisson-replace/1", "rate": "1/10", "alone": "1/2", "group": 2},
        PoissonReplace(sampling_rate=TENTH, alone=HALF, group=2),
    ),
    (
        {"sampling": "truncated-poisson/1", "batch": 10, "of": 100, "most": 26},
        TruncatedPoisson(batch_size=10, size=100, max_batch_size=26),
    ),
    ({"sampling": "random-allocation/1", "batches": 10}, RandomAllocation(batches=10)),
]


@pytest.mark.parametrize(("line", "sampling"), WRITTEN)
def test_lines_of_a_ledger_are_read_and_written(line: dict[str, object], sampling: Sampling) -> None:
    assert Sampling.from_json(json.loads(json.dumps(line))) == sampling
    assert sampling.to_json() == line


@pytest.mark.parametrize(
    ("sampling", "relation"),
    [
        (PoissonGroup(sampling_rate=TENTH, group=3), Neighbours.ADD_REMOVE),
        (PoissonReplace(sampling_rate=TENTH, alone=HALF), Neighbours.REPLACE),
        (TruncatedPoisson(batch_size=10, size=100, max_batch_size=26), Neighbours.ZERO_OUT),
        (RandomAllocation(batches=10), Neighbours.ADD_REMOVE),
    ],
)
def test_a_spend_costs_what_its_sampling_says(sampling: Sampling, relation: Neighbours) -> None:
    moved = 2 if relation is Neighbours.REPLACE else 1
    spend = Spend(
        mechanism=NoisyGradient(sigma=2),
        distance=Distance.l2(moved, neighbours=relation),
        sampling=sampling,
    )
    base = NoisyGradient(sigma=2).loss(Distance.l2(moved, neighbours=relation))
    expected: dict[str, PrivacyLoss] = {
        "PoissonGroup": poisson_group(base, TENTH, 3) if relation is Neighbours.ADD_REMOVE else base,
        "PoissonReplace": poisson_replace(base, TENTH, HALF) if moved == 2 else base,
        "TruncatedPoisson": truncated_poisson(base, 10, 100, 26) if moved == 1 else base,
        "RandomAllocation": random_allocation(base, 10) if moved == 1 else base,
    }
    assert spend.one_loss() == expected[type(sampling).__name__]
    assert Spend.from_json(spend.to_json()) == spend


@pytest.mark.parametrize(
    "bad",
    [
        lambda: PoissonGroup(sampling_rate=Fraction(2), group=3),
        lambda: PoissonGroup(sampling_rate=TENTH, group=0),
        lambda: PoissonReplace(sampling_rate=TENTH, alone=Fraction(0)),
        lambda: TruncatedPoisson(batch_size=10, size=100, max_batch_size=9),
        lambda: TruncatedPoisson(batch_size=10, size=9, max_batch_size=9),
        lambda: RandomAllocation(batches=0),
    ],
)
def test_what_is_no_sampling_is_refused(bad: object) -> None:
    with pytest.raises(InvalidParameter, match="must"):
        bad()  # type: ignore[operator]
