from functools import partial

import numpy as np
import pytest
import torch

from sourdine.audit.training import TrainingAudit, audit_training, pixel_canaries
from sourdine.learning import Automatic, Clipping, Execution, PerLayer, TrainingPlan
from sourdine.learning.models import linear
from sourdine.testing import SeededBits
from tests.mutants.training import BROKEN, BrokenTraining
from tests.narrow import some

CAUGHT = {  # at this size: by which checks at least
    "unclipped": {"clipping", "gradient canaries"},
    "loose": {"clipping", "gradient canaries"},
    "doubled": {"clipping"},
    "half-noise": {"noise scale", "gradient canaries"},
    "less-noise": {"noise scale"},
    "noise-of-mean": {"noise scale", "gradient canaries"},
    "reused-noise": {"noise reuse"},
    "repeated-noise": {"noise reuse"},
    "noise-in-turn": {"noise scale"},
    "bare-layer": {"noise scale"},
    "even-noise": {"noise law"},
    "divided-by-drawn": {"noise scale"},
    "full-batches": {"batch sizes", "drawing"},
    "ordered-batches": {"drawing"},
    "one-batch": {"drawing"},
    "even-batches": {"batch sizes"},
    "often": {"batch sizes"},
    "neighbours": {"drawing"},
}


def audit(broken: BrokenTraining | None, seed: int = 1, clipping: Clipping | None = None) -> TrainingAudit:
    torch.manual_seed(1)
    run = partial(audit_training, data=None, clipping=clipping) if broken is None else broken.audited
    return run(
        linear((64,), 10),
        plan=TrainingPlan(noise_multiplier=3.8, delta=1e-6, steps=10, batch_size=500),
        execution=Execution(physical_batch_size=2000),
        canaries=pixel_canaries((64,), 10, 64),
        gradients=2000,
        bits=SeededBits(seed),
    )


def test_each_mutant_has_its_line_here() -> None:
    assert {each.name for each in BROKEN} == set(CAUGHT)


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(each, id=each.name, marks=[pytest.mark.slow] if place % 2 else [])
        for place, each in enumerate(BROKEN)
    ],
)
def test_every_fault_is_caught(broken: BrokenTraining) -> None:
    found = audit(broken)
    assert found.claimed <= 2
    assert found.refuted
    assert {each.name for each in found.faults} >= CAUGHT[broken.name]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_engine_itself_is_not_accused(seed: int) -> None:
    found = audit(None, seed)
    assert not found.refuted
    assert all(each.chance > 1e-4 for each in found.checks)
    assert found.gradients is not None
    assert found.gradients.audited > 1  # where the trained model shows nearly nothing
    assert 1.2 < found.gradients.typical < 2


@pytest.mark.parametrize("clipping", [PerLayer(norm=0.5), Automatic(norm=3.0)], ids=["layers", "automatic"])
def test_other_clippings_are_not_accused(clipping: Clipping) -> None:
    found = audit(None, clipping=clipping)
    assert not found.refuted
    (clipped,) = (each for each in found.checks if each.name == "clipping")
    assert np.isfinite(found.scores).all()
    assert "at most 1.0000" in clipped.finding or isinstance(clipping, PerLayer)


@pytest.mark.slow
def test_a_faultless_run_is_accused_as_rarely_as_stated() -> None:
    found = [audit(None, seed) for seed in range(200)]
    chances = np.array([[each.chance for each in one.checks] for one in found])
    assert not any(one.refuted for one in found)
    for level in (0.01, 0.05, 0.2):
        allowed = 200 * level + 5 * np.sqrt(200 * level)
        assert ((chances < level).sum(0) <= allowed).all()
    above = sum(some(one.gradients).audited > one.claimed for one in found)  # at a confidence of 95 %
    assert above <= 10 + 5 * np.sqrt(10)
