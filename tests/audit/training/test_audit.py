import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.optim import SGD

from sourdine.accounting import Poisson
from sourdine.accounting.ledger import Ledger, RenyiBudget, Terms
from sourdine.audit.training import Canaries, Secrecy, TrainingAudit, audit_training, pixel_canaries
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.learning import Clipping, Execution, Flat, TrainingPlan
from sourdine.learning.models import linear
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.mutants.training import BROKEN, BrokenTraining
from tests.narrow import some

COUNT, PROBES = 1200, 400


def audit(
    clipping: Clipping, *, steps: int = 20, score: str = "gradient", ledger: Path | None = None
) -> TrainingAudit:
    return audit_training(
        linear((COUNT,), 10),
        None,
        TrainingPlan(epsilon=4.0, delta=1e-6, steps=steps, batch_size=(COUNT + PROBES) // 2),
        canaries=pixel_canaries((COUNT,), 10, COUNT),
        clipping=clipping,
        gradients=PROBES,
        execution=Execution(physical_batch_size=600),
        bits=SeededBits(1),
        score=score,
        ledger=ledger,
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
def test_an_engine_without_clipping_is_above_its_claim(broken: BrokenTraining) -> None:
    found = audit(some(broken.clipping))
    assert found.claimed <= 4 < found.audited
    assert found.exceeded
    assert found.audited <= found.reach


def test_answers_alone_tell_too() -> None:
    assert audit(some(BROKEN[0].clipping), score="loss").exceeded
    assert not audit(Flat(norm=1.0), score="loss").exceeded


def ledger_at(path: Path) -> Ledger:
    terms = Terms(
        budget=RenyiBudget(limit=100, order=4), unit="example", neighbours=Neighbours.ADD_REMOVE, delta=1e-6
    )
    return Ledger.create(path, terms)


def among_data(clipping: Clipping, epochs: int = 10, ledger: Ledger | None = None) -> TrainingAudit:
    numbers = torch.Generator().manual_seed(1)
    data = torch.rand(500, 1, 20, 20, generator=numbers), torch.randint(0, 10, (500,), generator=numbers)
    return audit_training(
        linear((1, 20, 20), 10),
        data,
        TrainingPlan(epsilon=1.0, delta=1e-6, epochs=epochs, batch_size=475),
        canaries=500,
        gradients=200,
        clipping=clipping,
        execution=Execution(physical_batch_size=1000),
        bits=SeededBits(2),
        ledger=ledger,
    )


def test_canaries_among_data() -> None:
    honest, broken = (among_data(each) for each in (Flat(norm=1.0), some(BROKEN[0].clipping)))
    assert honest.canaries == broken.canaries == 500
    assert honest.audited <= honest.claimed <= 1 < broken.audited
    # beside data no more is told of the steps than whether they are as claimed
    assert not honest.faults
    assert {(each.finding, each.chance) for each in honest.checks} == {("", 1.0)}
    assert [each.name for each in broken.faults] == ["gradient canaries", "clipping"]
    assert {(each.finding, each.chance) for each in broken.faults} == {("", 0.0)}


def test_what_a_ledger_pays_for_tells_nothing_that_was_not_paid(tmp_path: Path) -> None:
    """Noise and draws are secrets of the run: even a verdict on them would cost delta beyond its own."""
    with ledger_at(tmp_path / "paid.ledger") as ledger:
        found = among_data(Flat(norm=1.0), epochs=1, ledger=ledger)
    assert found.secrecy is Secrecy.PAID
    assert {each.name for each in found.checks} == {"gradient canaries", "clipping", "steps"}
    free = among_data(Flat(norm=1.0), epochs=1)
    assert free.secrecy is Secrecy.DATA
    assert len(free.checks) == 8
    assert (free.audited, some(free.gradients).audited) == (found.audited, some(found.gradients).audited)


def test_verdicts_cost_as_much_delta_as_the_page_says() -> None:
    """Joint laws of a model and a verdict, added up over every event; and a pair that costs all of it."""
    random, level, alarm = np.random.default_rng(1), math.log(3), 1e-3

    def delta(p: np.ndarray, q: np.ndarray) -> float:
        return float(np.maximum(p - math.exp(level) * q, 0).sum())

    def with_verdict(law: np.ndarray, failed: np.ndarray) -> np.ndarray:
        return np.concatenate((law - failed, failed))

    for _ in range(200):
        p, q = random.dirichlet(np.ones(5), 2)
        one, other = (
            with_verdict(law, np.minimum(law, alarm * random.dirichlet(np.ones(5)))) for law in (p, q)
        )
        assert delta(one, other) <= delta(p, q) + (1 + math.exp(level)) * alarm
    p, q = np.array([0.3, 0.7]), np.array([0.1, 0.9])
    one, other = with_verdict(p, np.array([0, alarm])), with_verdict(q, np.array([alarm, 0]))
    assert delta(p, q) == pytest.approx(0, abs=1e-15)
    assert delta(one, other) == pytest.approx((1 + math.exp(level)) * alarm)


def test_what_is_told_of_a_paid_run_follows_from_its_noisy_sums(tmp_path: Path) -> None:
    """Other data with the same noise and draws: clipping and steps hold all the same."""
    told = []
    for place, scale in enumerate((1.0, 1e4)):
        data = torch.full((200, 1, 10, 10), scale), torch.zeros(200, dtype=torch.int64)
        with ledger_at(tmp_path / f"{place}.ledger") as ledger:
            found = audit_training(
                linear((1, 10, 10), 10),
                data,
                TrainingPlan(epsilon=1.0, delta=1e-6, steps=3, batch_size=100),
                canaries=100,
                gradients=100,
                execution=Execution(physical_batch_size=1000),
                ledger=ledger,
                bits=SeededBits(2),
            )
        told.append([(each.name, each.finding, each.chance) for each in found.checks[1:]])
    assert told[0] == told[1]


def test_it_is_the_run_that_is_paid(tmp_path: Path) -> None:
    with ledger_at(tmp_path / "paid.ledger") as ledger:
        audit(Flat(norm=1.0), ledger=tmp_path / "paid.ledger", steps=2)
        (line,) = ledger.history()
    assert line.purpose == "audit training"
    assert line.spends[0].count == 2
    sampling = line.spends[0].sampling
    assert isinstance(sampling, Poisson)
    assert sampling.sampling_rate == 1


def test_a_delta_of_many_canaries_is_no_limit_and_the_reach_is_announced_before_a_charge() -> None:
    """100 canaries at delta 2e-3 were refused: the older bound had nothing left at 95 % confidence."""
    announced: list[float] = []
    settings = TrainingPlan(epsilon=1, delta=2e-3, steps=1, batch_size=10)
    found = audit_training(
        linear((100,), 2),
        None,
        settings,
        canaries=pixel_canaries((100,), 2, 100),
        gradients=64,
        announce=announced.append,
        bits=SeededBits(1),
    )
    assert announced == [found.reach]
    assert found.audited <= found.claimed <= 1 < found.reach


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
        reach=3.0,
    )
    others, members = found.rates()
    assert others == pytest.approx([0, 0.5, 0.5, 1])
    assert members == pytest.approx([1 / 3, 2 / 3, 1, 1])


def test_what_cannot_be_audited_is_refused() -> None:
    model = linear((100,), 2)
    made = pixel_canaries((100,), 2, 100)
    run = partial(TrainingPlan, epsilon=1, steps=1, batch_size=10)
    with refusal_of("score", "audit_training"):
        audit_training(model, None, run(delta=1e-6), canaries=made, score="luck")
    with refusal_of("gradients", "audit_training"):
        audit_training(model, None, run(delta=1e-6), canaries=made, gradients=3)
    with pytest.raises(InvalidParameter, match="must be a function that makes one"):
        audit_training(
            model,
            None,
            run(delta=1e-6),
            canaries=made,
            optimizer=SGD(model.parameters()),  # type: ignore[arg-type]
        )
    with pytest.raises(InvalidParameter, match="half precision"):
        audit_training(linear((100,), 2).half(), None, run(delta=1e-6), canaries=made)
    with pytest.raises(InvalidParameter, match="pixel_canaries"):
        audit_training(model, None, run(delta=1e-6), canaries=100)
    words = torch.zeros(10, 3, dtype=torch.int64), torch.zeros(10, dtype=torch.int64)
    with pytest.raises(InvalidParameter, match="Pass your own"):
        audit_training(nn.Embedding(3, 2), words, run(delta=1e-6), canaries=100)
    for other, name in (
        (run(delta=1e-6, sampler="fixed", steps=None, epochs=1), "sampler"),
        (run(delta=1e-6, neighbours="replace"), "neighbours"),
        (run(delta=1e-6, group=2), "group"),
    ):
        with refusal_of(name, "audit_training"):
            audit_training(model, None, other, canaries=made)
    few = Canaries(made.inputs[:10], made.targets[:10])
    with refusal_of("canaries", "audit_training"):
        audit_training(model, None, run(delta=1e-6), canaries=few)
