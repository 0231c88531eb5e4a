import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import SGD

from sourdine.accounting.ledger import Ledger, RenyiBudget, Terms
from sourdine.audit.training import Canaries, TrainingAudit, audit_training, pixel_canaries
from sourdine.audit.training.mutants import BROKEN
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.learning.gradients.clipping import Clipping, Flat
from sourdine.learning.models import linear
from sourdine.testing import SeededBits

COUNT, PROBES = 1200, 400


def audit(clipping: Clipping, epsilon: float = 4.0, **other: object) -> TrainingAudit:
    settings: dict[str, object] = {
        "steps": 20,
        "batch": (COUNT + PROBES) // 2,
        "delta": 1e-6,
        "physical": 600,
        "gradients": PROBES,
    } | other
    return audit_training(
        linear((COUNT,), 10),
        canaries=pixel_canaries((COUNT,), 10, COUNT),
        epsilon=epsilon,
        clipping=clipping,
        bits=SeededBits(1),
        **settings,  # type: ignore[arg-type]
    )


def test_the_engine_stays_below_its_claim_and_is_not_found_silent() -> None:
    found = audit(Flat(norm=1.0))
    assert found.claimed <= 4
    assert 0.5 < found.audited < found.claimed  # strong enough to see that something is told
    assert not found.exceeded
    # every step takes everybody in, so scores are a unit apart beside noise of sigma/sqrt(steps) of them
    apart = found.scores[found.included].mean() - found.scores[~found.included].mean()
    assert apart / found.scores[~found.included].std() == pytest.approx(math.sqrt(20) / 5.3377, rel=0.15)


@pytest.mark.parametrize("broken", BROKEN[:2], ids=lambda each: each.name)
def test_an_engine_without_clipping_is_above_its_claim(broken) -> None:
    found = audit(broken.clipping)
    assert found.claimed <= 4 < found.audited
    assert found.exceeded
    assert found.audited <= found.reach


def test_answers_alone_tell_too() -> None:
    assert audit(BROKEN[0].clipping, score="loss").exceeded
    assert not audit(Flat(norm=1.0), score="loss").exceeded


def test_canaries_among_data() -> None:
    numbers = torch.Generator().manual_seed(1)
    data = torch.rand(500, 1, 20, 20, generator=numbers), torch.randint(0, 10, (500,), generator=numbers)
    common = {"epsilon": 1.0, "delta": 1e-6, "epochs": 10, "batch": 475, "canaries": 500, "physical": 1000}
    common["gradients"] = 200
    honest, broken = (
        audit_training(linear((1, 20, 20), 10), data, clipping=each, bits=SeededBits(2), **common)
        for each in (Flat(norm=1.0), BROKEN[0].clipping)
    )
    assert honest.canaries == broken.canaries == 500
    assert honest.audited <= honest.claimed <= 1 < broken.audited
    # beside data no more is told of the steps than whether they are as claimed
    assert not honest.faults
    assert {(each.found, each.chance) for each in honest.checks} == {("", 1.0)}
    assert [each.name for each in broken.faults] == ["gradient canaries", "clipping"]
    assert {(each.found, each.chance) for each in broken.faults} == {("", 0.0)}


def test_it_is_the_run_that_is_paid(tmp_path: Path) -> None:
    terms = Terms(
        budget=RenyiBudget(limit=100, order=4), unit="example", neighbours=Neighbours.ADD_REMOVE, delta=1e-6
    )
    with Ledger.create(tmp_path / "paid.ledger", terms) as ledger:
        audit(Flat(norm=1.0), ledger=tmp_path / "paid.ledger", steps=2)
        (line,) = ledger.history()
    assert line.purpose == "audit training"
    assert line.spends[0].count == 2
    assert line.spends[0].sampling.sampling_rate == 1


def test_rates_of_recognition() -> None:
    found = TrainingAudit(
        claimed=1.0,
        audited=0.0,
        delta=0.0,
        confidence=0.95,
        right=0,
        guesses=2,
        scores=np.array([3.0, 2.0, 2.0, 1.0, -math.inf]),
        included=np.array([True, True, False, True, False]),
    )
    others, members = found.rates()
    assert others == pytest.approx([0, 0.5, 0.5, 1])
    assert members == pytest.approx([1 / 3, 2 / 3, 1, 1])


def test_what_cannot_be_audited_is_refused() -> None:
    model = linear((100,), 2)
    made = pixel_canaries((100,), 2, 100)
    run = {"epsilon": 1, "steps": 1, "batch": 10}
    with pytest.raises(InvalidParameter, match=r"'delta' of audit_training must lie below 0\.001 for 100"):
        audit_training(model, canaries=made, delta=2e-3, **run)
    with pytest.raises(InvalidParameter, match="'score' of audit_training must be one of gradient, loss"):
        audit_training(model, canaries=made, delta=1e-6, score="luck", **run)
    with pytest.raises(InvalidParameter, match="'gradients' of audit_training must lie between 64"):
        audit_training(model, canaries=made, delta=1e-6, gradients=3, **run)
    with pytest.raises(InvalidParameter, match="must be a function that makes one"):
        audit_training(model, canaries=made, delta=1e-6, optimizer=SGD(model.parameters()), **run)
    with pytest.raises(InvalidParameter, match="half precision"):
        audit_training(linear((100,), 2).half(), canaries=made, delta=1e-6, **run)
    with pytest.raises(InvalidParameter, match="protects nobody"):
        audit_training(model, (made.inputs, made.targets), canaries=made, delta=1e-6, broken=BROKEN[3], **run)
    with pytest.raises(InvalidParameter, match="pixel_canaries"):
        audit_training(model, canaries=100, delta=1e-6, **run)
    words = torch.zeros(10, 3, dtype=torch.int64), torch.zeros(10, dtype=torch.int64)
    with pytest.raises(InvalidParameter, match="Pass your own"):
        audit_training(nn.Embedding(3, 2), words, canaries=100, delta=1e-6, **run)
    few = Canaries(made.inputs[:10], made.targets[:10])
    with pytest.raises(InvalidParameter, match="'canaries' of audit_training"):
        audit_training(model, canaries=few, delta=1e-6, **run)
