import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest
import torch
from torch import nn

from sourdine.accounting.ledger import Ledger, RenyiBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.learning import (
    ALONE,
    Flat,
    PoissonBatches,
    Processes,
    ProcessGone,
    Step,
    TrainingPlan,
    loader,
    plan,
)
from sourdine.learning.devices.processes import SharedBits
from sourdine.learning.task import cross_entropy
from sourdine.testing import SeededBits
from tests.narrow import some

T = TypeVar("T")
SECONDS = 900  # a busy machine takes minutes


@dataclass(frozen=True)
class Meeting:
    """Where threads that play processes leave what they have for the others."""

    count: int
    barrier: threading.Barrier
    table: dict[int, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ThreadRank(Processes):
    """One of several threads that exchange what processes would."""

    alone: bool = True
    number: int = 0
    meeting: Meeting = field(default_factory=lambda: Meeting(1, threading.Barrier(1)))

    @property
    def count(self) -> int:
        return self.meeting.count

    @property
    def rank(self) -> int:
        return self.number

    def _from_all(self, value: T) -> list[T]:
        self.meeting.table[self.number] = value
        self.meeting.barrier.wait(20)
        values = [self.meeting.table[rank] for rank in range(self.count)]
        self.meeting.barrier.wait(20)
        return values

    def from_first(self, value: T | None) -> T:
        return some(self._from_all(value)[0])

    def add_up(self, values: torch.Tensor) -> torch.Tensor:
        return torch.stack(self._from_all(values.clone())).sum(0)

    def spread(self, values: torch.Tensor) -> torch.Tensor:
        return self._from_all(values.clone())[0].clone()


def in_threads(count: int, act: Callable[[ThreadRank], T]) -> list[T | Exception]:
    """What each of so many threads comes to, or raises."""
    meeting, results = Meeting(count, threading.Barrier(count)), dict[int, T | Exception]()

    def run(rank: int) -> None:
        try:
            results[rank] = act(ThreadRank(number=rank, meeting=meeting))
        except Exception as problem:
            results[rank] = problem

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return [results[rank] for rank in range(count)]


X = torch.randn(20, 4, generator=torch.Generator().manual_seed(3))
Y = (X[:, 0] > 0).long()


def linear() -> nn.Linear:
    torch.manual_seed(2)
    return nn.Linear(4, 2)


def gradient(processes: Processes, *, places: torch.Tensor, noise: float = 1.0) -> torch.Tensor:
    model = linear()
    step = Step(
        model,
        noise_multiplier=noise,
        batch_size=20,
        steps=2,
        clipping=Flat(norm=0.3),
        processes=processes,
        bits=SeededBits(4),
    )
    if len(places):
        step.add(lambda x, y: cross_entropy(model(x), y), X[places], Y[places])
    step.close()
    return torch.cat([some(value.grad).flatten() for value in model.parameters()])


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("drawn", [0, 1, 20])
def test_shares_of_a_batch_add_up_to_it_with_one_noise(count: int, drawn: int) -> None:
    places = torch.arange(drawn)
    alone = gradient(ALONE, places=places)
    for each in in_threads(count, lambda rank: gradient(rank, places=places[rank.rank :: count])):
        assert isinstance(each, torch.Tensor), each
        assert torch.allclose(each, alone, atol=1e-7)


def test_a_process_that_cannot_take_its_share_ends_all() -> None:
    def act(rank: ThreadRank) -> None:
        model = linear()
        step = Step(model, noise_multiplier=1.0, batch_size=20, steps=2, processes=rank)

        def losses(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            if rank.rank == 1 and len(x) == 3:
                raise MemoryError("no room")
            return cross_entropy(model(x), y)

        step.add(losses, X[:4], Y[:4])
        step.close()
        step.add(losses, X[:3], Y[:3])
        step.close()

    first, second = in_threads(2, act)
    assert isinstance(second, MemoryError)
    assert isinstance(first, ProcessGone)
    assert "no room" not in str(first)  # after the payment no process tells what another saw


def test_unlike_steps_are_refused_before_anything_is_paid() -> None:
    def act(rank: ThreadRank) -> None:
        model = linear()
        if rank.rank:
            model.bias.requires_grad_(False)
        step = Step(model, noise_multiplier=1.0, batch_size=20, steps=2, processes=rank)
        step._pay = lambda: pytest.fail("paid")
        step.add(lambda x, y: cross_entropy(model(x), y), X, Y)

    for each in in_threads(2, act):
        assert isinstance(each, InvalidParameter)
        assert "trained parameters" in str(each)


def test_whole_numbers_are_not_sent_as_floats() -> None:
    def act(rank: ThreadRank) -> None:
        Step(linear(), noise_multiplier=1.0, batch_size=20, steps=2, exact=True, processes=rank)

    for each in in_threads(2, act):
        assert isinstance(each, InvalidParameter)
        assert "several processes" in str(each)


def test_one_process_pays_and_a_refusal_reaches_all() -> None:
    paid = []

    def act(rank: ThreadRank) -> None:
        model = linear()
        step = Step(model, noise_multiplier=1.0, batch_size=20, steps=2, processes=rank)

        def pay() -> None:
            paid.append(rank.rank)
            raise InvalidParameter("Nothing is left.")

        step._pay = pay
        step.close()

    first, second = in_threads(2, act)
    assert isinstance(first, InvalidParameter)
    assert isinstance(second, ProcessGone)
    assert paid == [0]


def test_a_loader_divides_the_batches_of_one_secret() -> None:
    priced = plan(TrainingPlan(noise_multiplier=2, delta=1e-3, epochs=2, batch_size=5), size=20)
    places = torch.arange(20)

    def act(rank: ThreadRank) -> list[list[int]]:
        batches = loader((places, places), priced, processes=rank, bits=SeededBits(rank.rank))
        return [batch.tolist() for batch, _ in batches]

    first, second, third = in_threads(3, act)
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert isinstance(third, list)
    key = SeededBits(0).words(4).tobytes()  # of the first process
    whole = PoissonBatches(size=20, batch_size=5, epochs=2).draw(SharedBits(key, secure=False))
    for parts, batch in zip(zip(first, second, third, strict=True), whole, strict=True):
        assert sorted(place for part in parts for place in part) == batch.tolist()


def test_words_of_a_shared_secret_are_never_repeated() -> None:
    bits = SharedBits(bytes(32), secure=True)
    parts = np.concatenate([bits.words(count) for count in (1, 3, 700, 2)])
    assert len(np.unique(parts)) == len(parts)
    assert bits.secure


def test_processes_need_torch_distributed() -> None:
    with pytest.raises(InvalidParameter, match="init_process_group"):
        Processes()


def together(count: int, folder: Path, **case: object) -> tuple[list[int], list[Any]]:
    """The exit codes of so many processes over gloo, and what each wrote."""
    folder.mkdir(exist_ok=True)
    (folder / "store").unlink(missing_ok=True)
    running = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "tests.learning.devices.rank_program",
                json.dumps(case | {"rank": rank, "count": count, "folder": str(folder)}),
            ]
        )
        for rank in range(count)
    ]
    codes = [process.wait(SECONDS) for process in running]
    places = [folder / f"{rank}.json" for rank in range(count)]
    results = [json.loads(place.read_text()) if place.exists() else None for place in places]
    for place in places:
        place.unlink(missing_ok=True)
    return codes, results


def ledger_at(path: Path) -> Ledger:
    terms = Terms(
        budget=RenyiBudget(limit=50, order=4), unit="person", neighbours=Neighbours.ADD_REMOVE, delta=1e-5
    )
    return Ledger.create(path, terms)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        {"kind": "fit"},
        {"kind": "fit", "adam": True, "odd": True, "batch_size": 2},  # one has nobody, often
        {"kind": "fit", "dtype": "float64"},
        {"kind": "fit", "correlated": True},
        {"kind": "step", "skip": True, "batch_size": 2},
        {"kind": "step", "odd": True, "dtype": "bfloat16"},
    ],
)
def test_several_processes_learn_what_one_does(case: dict[str, object], tmp_path: Path) -> None:
    _, [alone] = together(1, tmp_path, **case)
    close = 0.02 if case.get("dtype") == "bfloat16" else 1e-5
    for count in (2, 3):
        codes, results = together(count, tmp_path, **case, apart=True)
        assert codes == [0] * count, results
        for each in results:
            assert each["values"] == results[0]["values"]
            assert np.abs(np.subtract(each["values"], alone["values"])).max() < close
            assert each.get("epsilon") == alone.get("epsilon")


@pytest.mark.slow
@pytest.mark.parametrize("wrapped", ["plain", "unused", "static"])
def test_a_wrapped_model_tells_the_processes_itself(wrapped: str, tmp_path: Path) -> None:
    codes, plain = together(2, tmp_path, kind="step", batch_size=3)
    again, results = together(2, tmp_path, kind="step", batch_size=3, wrapped=wrapped)
    assert codes == again == [0, 0], results
    assert [each["values"] for each in results] == [each["values"] for each in plain]
    assert results[0]["sizes"] != results[1]["sizes"]
    if wrapped == "plain":
        codes, (first, second) = together(2, tmp_path, kind="fit", wrapped=wrapped)
        assert first["values"] == second["values"]


@pytest.mark.slow
@pytest.mark.parametrize(("killed", "at"), [(0, 7), (1, 40)])
def test_a_kill_of_one_ends_both_and_is_not_paid_again(killed: int, at: int, tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path / "l")
    case = {"kind": "fit", "ledger": str(ledger.path), "checkpoint": str(tmp_path / "run.pt"), "epochs": 4}
    codes, results = together(2, tmp_path, **case, killed=killed, at=at)
    assert codes[killed] == -9
    assert codes[1 - killed] == 3
    assert "without a second payment" in results[1 - killed]["text"]
    assert ledger.status().blocks == 1
    codes, results = together(2, tmp_path, **case)
    assert codes == [0, 0], results
    assert [each["resumed"] for each in results] == [True, True]
    assert [each["receipt"] for each in results] == [results[0]["receipt"]] * 2
    assert ledger.status().blocks == 1


@pytest.mark.slow
@pytest.mark.parametrize("killed", [None, 0, 1])
def test_a_rule_ends_all_processes_after_one_epoch(killed: int | None, tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path / "l")
    case: dict[str, object] = {"kind": "fit", "ledger": str(ledger.path), "epochs": 30, "patience": 2}
    case |= {"checkpoint": str(tmp_path / "run.pt"), "apart": True}
    if killed is not None:  # within the second epoch, which a rule that judged anew would count again
        codes, _ = together(2, tmp_path, **case, killed=killed, at=50 if killed else 17)
        assert codes[killed] == -9
    codes, (first, second) = together(2, tmp_path, **case)
    assert codes == [0, 0], (first, second)
    assert first == second
    assert first["resumed"] is (killed is not None)
    assert 3 <= len(first["epochs"]) < 30
    assert first["epochs"] == list(range(1, len(first["epochs"]) + 1))
    assert ledger.status().blocks == 1
    ended, again = together(2, tmp_path, **case)  # it is over, and stays so
    assert ended == [0, 0], again
    assert [each | {"resumed": True} for each in (first, second)] == again
    assert ledger.status().blocks == 1


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_another_number_of_processes_goes_on(before: int, after: int, tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path / "l")
    case = {"kind": "fit", "ledger": str(ledger.path), "checkpoint": str(tmp_path / "run.pt"), "adam": True}
    case |= {"epochs": 3}
    codes, _ = together(before, tmp_path, **case, killed=0, at=15)
    assert codes[0] == -9
    codes, results = together(after, tmp_path, **case)
    assert codes == [0] * after, results
    assert all(each["resumed"] for each in results)
    assert ledger.status().blocks == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"longer": 1}, "another steps"),
        ({"frozen": 1}, "another model"),
        ({"smaller": 1}, "another size"),
        ({"killed": 1, "at": 3}, "Another process"),
        ({"failing": 1, "at": 3}, "no room left"),
    ],
)
def test_nothing_is_paid_where_processes_do_not_agree(
    fault: dict[str, object], words: str, tmp_path: Path
) -> None:
    ledger = ledger_at(tmp_path / "l")
    codes, (first, _) = together(2, tmp_path, kind="fit", ledger=str(ledger.path), **fault)
    assert 0 not in codes
    assert words in first["text"], first
    assert ledger.status().blocks == 0
