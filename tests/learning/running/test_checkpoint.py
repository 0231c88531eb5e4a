import math
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from sourdine.accounting.ledger import Ledger, RenyiBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.learning import (
    BLT,
    Banded,
    BinaryTree,
    Checkpoint,
    Execution,
    Progress,
    Trained,
    TrainingPlan,
    fit,
    plan,
)
from sourdine.learning.correlation.factor import BandedFactor
from sourdine.testing import SeededBits
from tests.narrow import some

SOURCE = torch.Generator().manual_seed(7)
X = torch.randn(200, 4, generator=SOURCE)
Y = (X[:, 0] > 0).long()
run_plan = partial(TrainingPlan, noise_multiplier=1.5, delta=1e-3, epochs=4, batch_size=20)
FEW = Execution(physical_batch_size=64)


class Killed(Exception):
    pass


def stop_at(step: int) -> Callable[[Progress], None]:
    def watch(now: Progress) -> None:
        if now.step == step:
            raise Killed

    return watch


def ledger_at(path: Path) -> Ledger:
    budget = RenyiBudget(limit=50, order=4)
    terms = Terms(budget=budget, unit="person", neighbours=Neighbours.ADD_REMOVE, delta=1e-5)
    return Ledger.create(path, terms)


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Linear(4, 2)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trained]:
    """A run from its beginning to its end, and its checkpoint."""
    path = tmp_path_factory.mktemp("kept") / "run.pt"
    return path, fit(model(), (X, Y), run_plan(), checkpoint=path, execution=FEW)


@pytest.mark.parametrize(
    ("killed", "every", "resumed_at"), [(25, None, 20), (25, 4, 24), (3, None, 0), (40, None, 40)]
)
def test_a_killed_run_goes_on_paid_once_and_costs_the_same(
    tmp_path: Path, kept: tuple[Path, Trained], killed: int, every: int | None, resumed_at: int
) -> None:
    _, whole = kept
    ledger, path = ledger_at(tmp_path / "l"), tmp_path / "run.pt"
    run = partial(
        fit,
        data=(X, Y),
        plan=run_plan(),
        execution=FEW,
        ledger=ledger,
        checkpoint=Checkpoint(path, every=every),
        averaging=0.9,
        optimizer=partial(torch.optim.SGD, lr=0.1, momentum=0.9),
    )
    with pytest.raises(Killed):
        run(model(), progress=stop_at(killed))
    assert some(Checkpoint(path).load()).step == resumed_at
    seen: list[int] = []
    found = run(model(), progress=lambda now: seen.append(now.step))
    assert seen == list(range(resumed_at + 1, 41))
    assert found.resumed
    assert found.epsilon == whole.epsilon
    assert found.spends == whole.spends
    assert [now.step for now in found.history] == [10, 20, 30, 40]
    assert ledger.status().blocks == 1
    assert found.certificate(ledger).verify(ledger) == ()


def test_a_run_cut_in_two_is_the_run_in_one_piece(tmp_path: Path) -> None:
    """Without noise and with full batches nothing is random: model, optimizer and schedule must all go on."""
    wanted = TrainingPlan(noise_multiplier=2.0**-20, delta=1e-3, epochs=12, batch_size=200)
    run = partial(
        fit,
        data=(X, Y),
        execution=FEW,
        averaging=0.8,
        optimizer=partial(torch.optim.Adam, lr=0.05),
        schedule=lambda made: torch.optim.lr_scheduler.StepLR(made, 3, 0.5),
    )
    whole = run(model(), plan=wanted).model.get_parameter("weight")
    with pytest.raises(Killed):
        run(model(), plan=wanted, checkpoint=tmp_path / "run.pt", progress=stop_at(7))
    again = run(model(), plan=wanted, checkpoint=tmp_path / "run.pt").model.get_parameter("weight")
    assert torch.allclose(whole, again, atol=1e-4)
    other = run(model(), plan=replace(wanted, epochs=5)).model.get_parameter("weight")
    assert not torch.allclose(whole, other, atol=1e-3)


def test_noise_after_a_resumption_is_fresh(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    with pytest.raises(Killed):
        fit(model(), (X, Y), run_plan(), checkpoint=path, progress=stop_at(20), execution=FEW)
    held = path.read_bytes()
    first = fit(model(), (X, Y), run_plan(), checkpoint=path, execution=FEW).model.get_parameter("weight")
    path.write_bytes(held)
    assert not torch.equal(
        first, fit(model(), (X, Y), run_plan(), checkpoint=path, execution=FEW).model.get_parameter("weight")
    )


def test_it_holds_neither_data_nor_bits(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    fit(model(), (X, Y), run_plan(), checkpoint=path, execution=FEW)
    held = torch.load(path, weights_only=True)
    assert {each.name for each in tmp_path.iterdir()} == {"run.pt", "run.pt.lock"}
    assert (tmp_path / "run.pt.lock").stat().st_size == 0
    assert set(held) == {"format", "settings", "receipt", "secure", "step", "parts", "history"}
    assert set(held["parts"]) == {"model", "optimizer", "schedule", "average"}


def test_a_finished_run_is_handed_over_again_and_not_continued(tmp_path: Path) -> None:
    path, ledger = tmp_path / "run.pt", ledger_at(tmp_path / "l")
    first, second = (
        fit(
            model(),
            (X, Y),
            run_plan(),
            checkpoint=path,
            ledger=ledger,
            averaging=0.9,
            public=(X, Y),
            execution=FEW,
        )
        for _ in range(2)
    )
    assert torch.equal(first.model.get_parameter("weight"), second.model.get_parameter("weight"))
    assert first.history == second.history
    assert first.receipt == second.receipt
    assert ledger.status().blocks == 1


def test_shuffled_epochs_go_on_at_the_start_of_one(tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "run.pt", every=3)
    run = partial(fit, data=(X, Y), plan=run_plan(sampler="shuffle"), execution=FEW, checkpoint=kept)
    with pytest.raises(Killed):
        run(model(), progress=stop_at(17))
    seen: list[int] = []
    run(model(), progress=lambda now: seen.append(now.step))
    assert seen[0] == 11


@pytest.mark.parametrize(
    "change",
    [{"epochs": 5}, {"batch_size": 40}, {"noise_multiplier": 2}, {"delta": 1e-4}, {"sampler": "shuffle"}],
)
def test_other_settings_are_refused(kept: tuple[Path, Trained], change: dict[str, Any]) -> None:
    path, _ = kept
    with pytest.raises(InvalidParameter, match=r"run in the checkpoint .* has another"):
        fit(model(), (X, Y), run_plan(**change), checkpoint=path)


def test_another_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    fit(model(), (X, Y), run_plan(), checkpoint=path, execution=FEW)
    with pytest.raises(InvalidParameter, match="another model or optimizer"):
        fit(nn.Linear(4, 3), (X, Y), run_plan(), checkpoint=path, execution=FEW)


def test_a_missing_folder_says_so(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="no folder"):
        fit(model(), (X, Y), run_plan(), checkpoint=tmp_path / "none" / "run.pt", execution=FEW)


def test_another_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    fit(
        model(),
        (X, Y),
        run_plan(),
        checkpoint=path,
        ledger=ledger_at(tmp_path / "one"),
        execution=FEW,
    )
    with pytest.raises(LedgerError, match="not paid from this ledger"):
        fit(
            model(),
            (X, Y),
            run_plan(),
            checkpoint=path,
            ledger=ledger_at(tmp_path / "two"),
            execution=FEW,
        )


def test_a_forged_payment_is_refused(tmp_path: Path) -> None:
    path, ledger = tmp_path / "run.pt", ledger_at(tmp_path / "l")
    fit(model(), (X, Y), run_plan(), checkpoint=path, ledger=ledger, execution=FEW)
    file = Checkpoint(path)
    state = some(file.load())
    file.save(replace(state, receipt=replace(some(state.receipt), fingerprint="0" * 64)))
    with pytest.raises(LedgerError, match="does not hold the payment"):
        fit(model(), (X, Y), run_plan(), checkpoint=path, ledger=ledger, execution=FEW)


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    file = Checkpoint(tmp_path / "run.pt")
    with file.lock(), pytest.raises(InvalidParameter, match="Another process"):
        fit(model(), (X, Y), run_plan(), checkpoint=file.path, execution=FEW)
    fit(model(), (X, Y), run_plan(), checkpoint=file.path, execution=FEW)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", b"PK\x03\x04"])
def test_a_broken_file_says_so(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "run.pt"
    path.write_bytes(content)
    with pytest.raises(InvalidParameter, match="cannot be read"):
        fit(model(), (X, Y), run_plan(), checkpoint=path, execution=FEW)


def test_seeded_noise_anywhere_marks_the_whole_run(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    with pytest.raises(Killed):
        fit(
            model(),
            (X, Y),
            run_plan(),
            checkpoint=path,
            progress=stop_at(20),
            bits=SeededBits(1),
            execution=FEW,
        )
    assert not fit(model(), (X, Y), run_plan(), checkpoint=path, execution=FEW).secure


PROGRAM = """
import sys, time, torch
from sourdine.accounting.ledger import Ledger
from sourdine.learning import Execution, TrainingPlan, fit
x = torch.zeros(200, 4); y = torch.zeros(200, dtype=torch.int64)
def watch(now):
    print(now.step, flush=True)
    time.sleep(float(sys.argv[3]))
plan = TrainingPlan(noise_multiplier=1.5, delta=1e-3, epochs=4, batch_size=20)
found = fit(torch.nn.Linear(4, 2), (x, y), plan, execution=Execution(physical_batch_size=64),
            ledger=Ledger.open(sys.argv[1]), checkpoint=sys.argv[2], progress=watch)
print("epsilon", found.epsilon.upper, found.resumed)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
@pytest.mark.slow
def test_a_process_killed_for_good_goes_on(tmp_path: Path) -> None:
    ledger, path = ledger_at(tmp_path / "l"), tmp_path / "run.pt"
    command = [sys.executable, "-c", PROGRAM, str(ledger.path), str(path)]
    with subprocess.Popen([*command, "0.05"], stdout=subprocess.PIPE, text=True) as process:
        for line in some(process.stdout):
            if line.strip() == "17":
                break
        process.send_signal(signal.SIGKILL)
    told = subprocess.run([*command, "0"], capture_output=True, text=True, check=True).stdout.split()
    assert told[0] == "11"
    whole = fit(model(), (X, Y), run_plan(), execution=FEW)
    assert told[-3:] == ["epsilon", str(whole.epsilon.upper), "True"]
    assert ledger.status().blocks == 1


ENDED = """
import os, signal
from sourdine.{module} import {owner}
act = {owner}.{name}
def end(self, *given, **named):
    act(self, *given, **named)
    os.kill(os.getpid(), signal.SIGTERM)
{owner}.{name} = end
"""


@pytest.mark.skipif(os.name != "posix", reason="ends by signal")
@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "owner", "name", "resumed", "paid"),
    [
        ("learning.running.checkpoint", "Checkpoint", "save", "True", 1),
        # no file says yet that it was paid, so it is paid anew: nothing is refunded
        ("accounting.ledger", "Ledger", "charge", "False", 2),
    ],
)
def test_a_process_ended_between_its_charge_and_its_first_step_loses_no_charge(
    tmp_path: Path, module: str, owner: str, name: str, resumed: str, paid: int
) -> None:
    ledger, path = ledger_at(tmp_path / "l"), tmp_path / "run.pt"
    ended = ENDED.format(module=module, owner=owner, name=name) + PROGRAM
    words = [str(ledger.path), str(path), "0"]
    first = subprocess.run([sys.executable, "-c", ended, *words], capture_output=True, text=True, check=False)
    assert first.returncode == -signal.SIGTERM, first.stderr
    assert first.stdout == ""  # no step was taken
    assert ledger.status().blocks == 1
    program = [sys.executable, "-c", PROGRAM, *words]
    told = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
    assert told[0] == "1"
    whole = fit(model(), (X, Y), run_plan(), execution=FEW)
    assert told[-3:] == ["epsilon", str(whole.epsilon.upper), resumed]
    assert ledger.status().blocks == paid
    again = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
    assert again == [*told[-3:-1], "True"]
    assert ledger.status().blocks == paid


CORRELATED = (Banded(bands=4), Banded(bands=10), BLT(buffers=2), BinaryTree())


@pytest.mark.parametrize("correlation", CORRELATED, ids=repr)
def test_a_killed_run_with_correlated_noise_keeps_it_apart(tmp_path: Path, correlation: Any) -> None:
    path = tmp_path / "run.pt"
    run = partial(
        fit,
        data=(X, Y),
        plan=run_plan(correlation=correlation),
        execution=FEW,
        checkpoint=Checkpoint(path, every=4),
    )
    with pytest.raises(Killed):
        run(model(), progress=stop_at(27))
    state = some(Checkpoint(path).load())
    assert state.step == 24
    (secret,) = tmp_path.glob("run.pt.noise-*")
    assert secret.name == f"run.pt.noise-{state.token}"
    assert secret.stat().st_mode & 0o077 == 0
    kept = Checkpoint(path).secrets(state)
    handed = torch.cat([each.flatten() for each in _tensors(torch.load(path, weights_only=True))])
    for each in torch.cat([noise.flatten() for noise in kept]):
        assert not (handed == each).any()
    trained = run(model())
    assert trained.resumed
    assert some(Checkpoint(path).load()).token == ""
    assert not list(tmp_path.glob("*.noise-*"))


def _tensors(content: Any) -> list[torch.Tensor]:
    if isinstance(content, torch.Tensor):
        return [content.float()]
    inside = content.values() if isinstance(content, dict) else content if isinstance(content, list) else ()
    return [tensor for each in inside for tensor in _tensors(each)]


def test_a_run_goes_on_with_the_very_noise_it_had(tmp_path: Path) -> None:
    """C times the noise of the steps is independent from row to row, across a kill too."""
    path, models = tmp_path / "run.pt", [torch.zeros(2000, 4)]

    def watch(killed: int | None, now: Progress) -> None:
        if now.step == killed:
            raise Killed
        models.append(some(Checkpoint(path).load()).parts["model"]["weight"].clone())

    one = nn.Linear(4, 2000, bias=False)
    nn.init.zeros_(one.weight)
    wanted = run_plan(noise_multiplier=1000.0, epochs=1, correlation=Banded(bands=3, sampling=False))
    run = partial(
        fit,
        data=(X, Y),
        plan=wanted,
        execution=FEW,
        optimizer=partial(torch.optim.SGD, lr=20.0),  # times a batch of 20, whose mean is taken
        checkpoint=Checkpoint(path, every=1),
    )
    with pytest.raises(Killed):
        run(one, progress=partial(watch, 5), bits=SeededBits(1))
    models.append(
        some(Checkpoint(path).load()).parts["model"]["weight"].clone()
    )  # the fifth, which was saved
    run(one, progress=partial(watch, None), bits=SeededBits(2))
    assert len(models) == 11
    noise = -torch.stack(models).double().diff(dim=0).flatten(1) / 1000
    factor = some(plan(wanted, size=200).factor)
    assert isinstance(factor, BandedFactor)
    _, first, second = factor.coefficients
    rows = noise.clone()
    rows[1:] += first * noise[:-1]
    rows[2:] += second * noise[:-2]
    products = np.corrcoef(rows.numpy())
    assert (abs(products - np.eye(10)) < 6 / math.sqrt(8000)).all()
    assert rows.std(dim=1).numpy() == pytest.approx(factor.stretch(10), rel=0.05)
    assert (np.diag(np.corrcoef(noise.numpy()), 1) < -0.3).all()  # each step takes back noise of the last


def test_noise_that_was_lost_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    run = partial(
        fit,
        data=(X, Y),
        plan=run_plan(correlation=BLT()),
        execution=FEW,
        checkpoint=Checkpoint(path, every=4),
    )
    with pytest.raises(Killed):
        run(model(), progress=stop_at(27))
    (secret,) = tmp_path.glob("run.pt.noise-*")
    content = secret.read_bytes()
    secret.unlink()
    with pytest.raises(InvalidParameter, match="later steps take some of it back"):
        run(model())
    secret.write_bytes(content[: len(content) // 2])
    with pytest.raises(InvalidParameter, match="later steps take some of it back"):
        run(model())
    secret.write_bytes(content)
    assert run(model()).resumed
    with pytest.raises(InvalidParameter, match="correlation"):
        fit(model(), (X, Y), run_plan(correlation=BLT(buffers=2)), execution=FEW, checkpoint=path)
