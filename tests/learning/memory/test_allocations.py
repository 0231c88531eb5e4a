import gc

import pytest
import torch
from torch import nn

from sourdine.learning.memory.allocations import Allocations
from sourdine.learning.memory.dry_run import Keeping, cycle
from sourdine.learning.memory.model import FIRST, Stage
from sourdine.learning.task import cross_entropy
from tests.learning.storages import Storages


def test_pieces_count_until_they_are_given_back() -> None:
    before = torch.zeros(5000)
    with Allocations() as taken:
        first = torch.zeros(1000)
        second = torch.neg(first)
        third = second.view(10, 100)
        del first
        taken.mark("one")
        torch.zeros(100)
        del second, before
        taken.mark("two")
        del third
        taken.mark("three")
    one, two, three = (taken.stages[name] for name in ("one", "two", "three"))
    assert (one.live, one.most) == (4000, 8000)
    assert (two.live, two.most) == (4000, 4400)
    assert (three.live, three.most) == (0, 4000)


def test_what_an_operation_takes_for_itself_is_seen() -> None:
    with Storages() as followed, Allocations() as taken:
        (torch.arange(6000).view(2, 3000).transpose(0, 1) + 0).contiguous().sort(dim=0)
        taken.mark("sorted")
    assert taken.stages["sorted"].most >= followed.most


def test_moments_are_told_apart_by_size_and_by_size_a_unit() -> None:
    with Allocations(units=4) as taken:
        torch.zeros(8)
        torch.zeros(5)
        taken.mark("zeros")
    found = {(kind, size) for _, kind, size in taken.stages["zeros"].moments}
    assert found == {("whole", 32), ("each", 8), ("whole", 20), ("each", 5)}


class _Ring:
    """Something that only the garbage collector gives back, with a tensor in it."""

    def __init__(self) -> None:
        self.ring, self.value = self, torch.zeros(567, dtype=torch.int16)


def test_garbage_of_an_earlier_profile_is_not_taken_off() -> None:
    with Allocations() as earlier:
        _Ring()
        earlier.mark("ring")
    with Allocations() as taken:
        kept = torch.zeros(1000)
        many = [[index] for index in range(200_000)]  # so many new objects start collections
        taken.mark("kept")
    assert gc.isenabled()
    assert len(many) == 200_000
    assert earlier.stages["ring"].live == 1134
    assert taken.stages["kept"].live == kept.nbytes


def test_it_says_nothing_on_the_way(capfd: pytest.CaptureFixture[str]) -> None:
    with Allocations() as taken:
        taken.mark("nothing")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("private", [False, True])
def test_what_is_alive_after_each_stage_agrees_with_the_storages(private: bool) -> None:
    model = nn.Sequential(nn.Linear(300, 40), nn.Tanh(), nn.Linear(40, 3))
    followed: list[int] = []
    with Storages() as storages, Allocations() as taken:

        def watch(stage: Stage) -> None:
            followed.append(storages.now)
            taken.mark(stage)

        cycle(
            lambda: nn.Sequential(nn.Linear(300, 40), nn.Tanh(), nn.Linear(40, 3)),
            lambda: (torch.rand(50, 300), torch.zeros(50, dtype=torch.int64)),
            loss=cross_entropy,
            optimizer=lambda values: Keeping(values, copies=2),
            watch=watch,
            private=private,
        )
    assert [taken.stages[stage].live for stage in Stage] == followed
    size = 4 * sum(value.numel() for value in model.parameters())
    batch = 50 * (300 * 4 + 8)
    live = [taken.stages[stage].live for stage in FIRST]
    assert live == [size, size + batch, 2 * size + batch, 4 * size + batch]
