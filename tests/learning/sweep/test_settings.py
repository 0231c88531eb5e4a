import json
import math
import stat
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from sourdine.accounting import Sampler
from sourdine.accounting.ledger import Ledger, RenyiBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError
from sourdine.learning import Execution, PricedPlan, Trained, TrainingPlan, fit, plan
from sourdine.learning.sweep.run import Finished, Journal, as_csv, epochs, means, run_sweep
from sourdine.learning.sweep.settings import Setting, Sweep, product, some_of
from sourdine.testing import SeededBits

X = torch.randn(60, 3, generator=torch.Generator().manual_seed(1))
Y = (X[:, 0] > 0).long()
ABOUT = {"data": "toys"}


def sweep(**other: object) -> Sweep:
    settings = product(
        learning_rate=[0.1, 1.0], batch_size=[10, 20], epochs=[2], clip=[1.0], noise_multiplier=[2.0]
    )
    stated = {"settings": settings, "repeats": 2, "size": 60, "delta": 1e-3} | other
    return Sweep(**stated)  # type: ignore[arg-type]


class Counted:
    """Trains, and notes which settings it was asked for; it may be told to fail at some run."""

    def __init__(self, last: float = math.inf) -> None:
        self.asked: list[Setting] = []
        self.last = last

    def __call__(self, setting: Setting, planned: PricedPlan) -> Trained:
        if len(self.asked) >= self.last:
            raise KeyboardInterrupt
        self.asked.append(setting)
        return fit(
            nn.Linear(3, 2),
            (X, Y),
            TrainingPlan(
                delta=planned.delta,
                noise_multiplier=planned.noise_multiplier,
                epochs=setting.epochs,
                batch_size=setting.batch_size,
            ),
            execution=Execution(physical_batch_size=60),
            public=(X, Y),
        )


def ledger_at(path: Path, limit: int = 10**4) -> Path:
    terms = Terms(
        budget=RenyiBudget(limit=limit, order=4), unit="example", neighbours=Neighbours.ADD_REMOVE, delta=1e-3
    )
    Ledger.create(path, terms).close()
    return path


def test_every_combination_once() -> None:
    made = product(
        learning_rate=[0.1, 1], batch_size=[8, 16, 32], epochs=[1, 2], clip=[1], epsilon=[1, 3], hidden=[4, 5]
    )
    assert len(made) == len(set(made)) == 48
    assert {each.noise_multiplier for each in made} == {None}
    drawn = some_of(made, 10, SeededBits(1))
    assert len(set(drawn)) == 10
    assert set(drawn) <= set(made)
    assert drawn != some_of(made, 10, SeededBits(2))
    assert some_of(made, 48) == made


def test_settings_that_cost_the_same_share_a_plan() -> None:
    made = sweep()
    assert made.runs == 8
    assert made.plans[0] is made.plans[2]
    assert made.plans[0].batch_size == 10
    assert made.plans[1].batch_size == 20
    assert made.steps == 2 * 2 * (12 + 6)


def test_all_runs_cost_what_one_long_run_would() -> None:
    """Equal settings are one mechanism with more steps, whose cost is known otherwise."""
    same = product(
        learning_rate=[0.1, 0.2, 0.3], batch_size=[20], epochs=[2], clip=[1.0], noise_multiplier=[2.0]
    )
    made = sweep(settings=same)
    long = plan(TrainingPlan(size=60, batch_size=20, steps=6 * 6, noise_multiplier=2.0, delta=1e-3))
    assert made.epsilon.upper == pytest.approx(long.epsilon.upper, abs=5e-3)
    assert made.epsilon.lower <= long.epsilon.upper
    assert made.epsilon_of_best > made.plans[0].epsilon.upper
    clipped = product(
        learning_rate=[0.1], batch_size=[20], epochs=[2], clip=[0.5, 1.0, 7.0], noise_multiplier=[2.0]
    )
    assert sweep(settings=clipped).epsilon == made.epsilon  # noise goes with the norm


def test_shuffled_epochs_cost_as_such() -> None:
    shuffled = sweep(sampler=Sampler.SHUFFLE)
    assert shuffled.epsilon.upper > sweep().epsilon.upper
    assert shuffled.spends[0].count == 2


def test_loud_runs_get_an_epsilon_all_the_same() -> None:
    loud = product(learning_rate=[0.1], batch_size=[60], epochs=[50], clip=[1.0], noise_multiplier=[0.1])
    assert 1000 < sweep(settings=loud).epsilon.upper < math.inf


def test_a_sweep_that_stopped_goes_on_without_repeating_a_run(tmp_path: Path) -> None:
    journal = tmp_path / "toys.journal"
    first = Counted(last=3)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep(), first, journal, about=ABOUT)
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600
    with journal.open("ab") as file:
        file.write(b'{"setting": 3, "repe')  # a line that was being written
    second = Counted()
    begun: list[tuple[float, int]] = []
    swept = run_sweep(
        sweep(),
        second,
        journal,
        about=ABOUT,
        progress=lambda each, done: begun.append((each.learning_rate, done)),
    )
    assert swept.before == 3
    assert len(first.asked) + len(second.asked) == 8
    assert first.asked + second.asked == list(sweep().settings) * 2
    assert [done for _, done in begun] == [3, 4, 5, 6, 7]
    assert sorted((each.setting, each.repeat) for each in swept.runs) == [
        (i, j) for i in range(4) for j in (0, 1)
    ]
    lines = journal.read_text().splitlines()
    assert len(lines) == 9
    third = Counted(last=0)
    assert run_sweep(sweep(), third, journal, about=ABOUT).runs == swept.runs
    assert {each.name for each in tmp_path.iterdir()} == {journal.name, f"{journal.name}.lock"}


def test_another_sweep_is_not_taken_for_the_same(tmp_path: Path) -> None:
    journal = tmp_path / "toys.journal"
    run_sweep(sweep(repeats=1), Counted(), journal, about=ABOUT)
    with pytest.raises(InvalidParameter, match="a sweep with another 'repeats'"):
        run_sweep(sweep(), Counted(), journal, about=ABOUT)
    with pytest.raises(InvalidParameter, match="a sweep with another 'about'"):
        run_sweep(sweep(repeats=1), Counted(), journal, about={"data": "others"})
    journal.write_text("x\n")
    with pytest.raises(InvalidParameter, match="cannot be read"):
        run_sweep(sweep(), Counted(), journal, about=ABOUT)


def test_a_first_line_that_was_cut_short_is_begun_anew(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "toys.journal")
    journal.path.write_text('{"format": 1')
    assert journal.load() is None
    journal.begin({"a": 1})
    journal.add(Finished(setting=0, repeat=0, accuracy=0.5, seconds=1.0, history=(0.25, 0.5)))
    assert journal.load() == (
        {"a": 1},
        [Finished(setting=0, repeat=0, accuracy=0.5, seconds=1.0, history=(0.25, 0.5))],
    )


def test_all_runs_are_paid_at_once_before_the_first_and_never_again(tmp_path: Path) -> None:
    journal, path = tmp_path / "toys.journal", ledger_at(tmp_path / "toys.ledger")
    with Ledger.open(path) as ledger, pytest.raises(KeyboardInterrupt):
        run_sweep(sweep(), Counted(last=0), journal, about=ABOUT, ledger=ledger)
    with Ledger.open(path) as ledger:
        (line,) = ledger.history()
        assert len(line.spends) == 8
        assert line.price == pytest.approx(ledger.price(*sweep().spends))
        swept = run_sweep(sweep(), Counted(), journal, about=ABOUT, ledger=ledger)
        assert swept.line == 1
        assert len(ledger.history()) == 1
    assert run_sweep(sweep(), Counted(last=0), journal, about=ABOUT).line == 1
    with (
        Ledger.open(ledger_at(tmp_path / "other.ledger")) as other,
        pytest.raises(LedgerError, match="not paid"),
    ):
        run_sweep(sweep(), Counted(), journal, about=ABOUT, ledger=other)


def test_what_cannot_be_paid_is_not_begun(tmp_path: Path) -> None:
    poor, never = ledger_at(tmp_path / "poor.ledger", 1), Counted()
    loud = product(learning_rate=[0.1], batch_size=[60], epochs=[50], clip=[1.0], noise_multiplier=[0.5])
    with Ledger.open(poor) as ledger, pytest.raises(BudgetExceeded):
        run_sweep(sweep(settings=loud), never, tmp_path / "toys.journal", about=ABOUT, ledger=ledger)
    assert never.asked == []
    assert not (tmp_path / "toys.journal").exists()


def test_means_and_curves_as_rows() -> None:
    made = sweep()
    runs = [
        Finished(setting=1, repeat=0, accuracy=0.5, seconds=1.0, history=(0.25, 0.5)),
        Finished(setting=1, repeat=1, accuracy=0.75, seconds=3.0, history=(0.5, 0.75)),
        Finished(setting=3, repeat=0, accuracy=0.6, seconds=3.0, history=(0.5, 0.6)),
    ]
    first, second = means(made, runs)
    assert list(first)[:5] == ["learning_rate", "batch_size", "n_epochs", "accuracy", "n_times_for_avg"]
    assert (first["learning_rate"], first["batch_size"], first["n_epochs"]) == (0.1, 20, 2)
    assert first["accuracy"] == 0.625
    assert first["accuracy_std"] == pytest.approx(0.25 / math.sqrt(2))
    assert first["n_times_for_avg"] == 2
    assert first["seconds"] == 2.0
    assert first["epsilon"] == made.plans[1].epsilon.upper
    assert second["accuracy_std"] is None
    curves = epochs(made, runs)
    assert [(row["repeat"], row["epoch"], row["accuracy"]) for row in curves[:4]] == [
        (1, 1, 0.25),
        (1, 2, 0.5),
        (2, 1, 0.5),
        (2, 2, 0.75),
    ]
    assert (
        as_csv([first])
        .splitlines()[0]
        .startswith("learning_rate,batch_size,n_epochs,accuracy,n_times_for_avg,")
    )
    assert json.loads(json.dumps(curves)) == curves


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            {"epsilon": [1], "noise_multiplier": [1]},
            "'epsilon' of a sweep must be listed, or else 'noise_multiplier'",
        ),
        ({}, "'epsilon' of a sweep must be listed, or else 'noise_multiplier'"),
        ({"noise_multiplier": [1], "batch_size": []}, "'batch_size' of a sweep must list each value once"),
        ({"noise_multiplier": [1, 1.0]}, "'noise_multiplier' of a sweep must list each value once"),
    ],
)
def test_wrong_lists_are_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameter, match=told):
        product(**{"learning_rate": [1], "batch_size": [1], "epochs": [1], "clip": [1], **wrong})


def test_accuracy_needs_public_examples(tmp_path: Path) -> None:
    def blind(setting: Setting, planned: PricedPlan) -> Trained:
        return fit(
            nn.Linear(3, 2),
            (X, Y),
            TrainingPlan(delta=1e-3, noise_multiplier=2, epochs=1, batch_size=10),
            execution=Execution(physical_batch_size=60),
        )

    with pytest.raises(InvalidParameter, match="nothing public to tell it on"):
        run_sweep(sweep(), blind, tmp_path / "toys.journal", about=ABOUT)
