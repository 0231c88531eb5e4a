from dataclasses import replace

import pytest

from sourdine.audit.synthetic import audit_synthetic, example_plan
from sourdine.core.distance import Neighbours
from sourdine.testing import SeededBits
from tests.errors import refusal_of


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_a_canary_is_hidden_and_not_too_well(neighbours: Neighbours) -> None:
    audit = audit_synthetic(example_plan(4, neighbours=neighbours), runs=1500, bits=SeededBits(1))
    assert audit.passed
    assert audit.tables.audited > 0.15  # the audit does see something
    assert audit.tables.claimed == 4


@pytest.mark.slow
def test_too_little_noise_is_found_out() -> None:
    """The plan claims epsilon 1 and measures as for 8."""
    honest, loose = example_plan(1), example_plan(8)
    broken = replace(honest)
    broken.__dict__["noise"] = loose.noise
    broken.__dict__["spends"] = honest.spends
    audit = audit_synthetic(broken, runs=1500, bits=SeededBits(1))
    assert audit.tables.exceeded


def test_few_runs_tell_nothing() -> None:
    with refusal_of("runs", "audit_synthetic"):
        audit_synthetic(runs=10)
