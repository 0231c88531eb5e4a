import itertools
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sourdine.accounting import PLD, Sampler
from sourdine.core.errors import InvalidParameter
from sourdine.learning import (
    AllocatedBatches,
    CyclicBatches,
    FixedBatches,
    PoissonBatches,
    ShuffledBatches,
    TrainingPlan,
    TruncatedBatches,
    plan,
)
from sourdine.learning.data.batches import Batches, IndependentBatches, mixed_order, shuffled
from sourdine.testing import ScriptedBits, SeededBits
from tests.statistics import ALARM, fit

MANY = 6_000
Codes = NDArray[np.int64]


def subsets(batches: list[NDArray[np.int64]]) -> Codes:
    """Each batch as a number, one bit a unit."""
    return np.array([int((1 << batch).sum()) for batch in batches], np.int64)


def poisson_law(size: int, rate: float) -> dict[int, float]:
    return {
        code: rate ** code.bit_count() * (1 - rate) ** (size - code.bit_count()) for code in range(1 << size)
    }


def fixed_law(size: int, batch: int) -> dict[int, float]:
    chosen = [sum(1 << i for i in each) for each in itertools.combinations(range(size), batch)]
    return dict.fromkeys(chosen, 1 / len(chosen))


@cache
def poisson(seed: int) -> Codes:
    return subsets(list(PoissonBatches(size=5, batch_size=2, epochs=MANY // 3).draw(SeededBits(seed))))


@cache
def fixed(seed: int) -> Codes:
    return subsets(list(FixedBatches(size=5, batch_size=2, epochs=MANY // 3).draw(SeededBits(seed))))


def test_poisson_batches_are_independent_choices_of_each_unit() -> None:
    codes = poisson(1)
    assert fit(codes, poisson_law(5, 2 / 5)) > ALARM
    assert fit(codes, poisson_law(5, 2 / 5 + 0.04)) < ALARM
    assert fit(fixed(1), poisson_law(5, 2 / 5)) < ALARM  # the same rate for each unit, but not apart


def test_poisson_batches_do_not_depend_on_the_one_before() -> None:
    codes = poisson(1)
    single = poisson_law(5, 2 / 5)
    law = {32 * a + b: single[a] * single[b] for a in single for b in single}
    assert fit(32 * codes[0:-1:2] + codes[1::2], law) > ALARM
    again = np.repeat(codes, 2)
    assert fit(32 * again[0:-1:2] + again[1::2], law) < ALARM


def test_fixed_batches_are_any_choice_alike() -> None:
    codes = fixed(1)
    assert fit(codes, fixed_law(5, 2)) > ALARM
    assert fit(poisson(1), fixed_law(5, 2)) < ALARM
    law = fixed_law(5, 2)
    favoured = {code: chance * (1.2 if code & 1 else 0.8666666) for code, chance in law.items()}
    assert fit(codes, favoured) < ALARM
    pairs = {32 * a + b: law[a] * law[b] for a in law for b in law}
    assert fit(32 * codes[0:-1:2] + codes[1::2], pairs) > ALARM


def orders(seed: int, size: int = 4) -> Codes:
    bits = SeededBits(seed)
    places = [shuffled(size, bits) for _ in range(MANY)]
    return np.array([int((each * size ** np.arange(size)).sum()) for each in places], np.int64)


def order_law(size: int = 4) -> dict[int, float]:
    every = itertools.permutations(range(size))
    codes = [sum(place * size**i for i, place in enumerate(each)) for each in every]
    return dict.fromkeys(codes, 1 / math.factorial(size))


def test_orders_are_all_alike() -> None:
    assert fit(orders(4), order_law()) > ALARM


def test_the_classic_wrong_shuffle_is_noticed() -> None:
    generator = np.random.default_rng(1)
    codes = []
    for _ in range(MANY):
        order = np.arange(4)
        for i, j in enumerate(generator.integers(0, 4, 4)):  # each place is swapped with any other
            order[[i, j]] = order[[j, i]]
        codes.append(int((order * 4 ** np.arange(4)).sum()))
    assert fit(np.array(codes, np.int64), order_law()) < ALARM


def test_an_order_with_equal_words_is_drawn_again() -> None:
    bits = ScriptedBits([5, 5, 1, 3, 2, 1])
    assert shuffled(3, bits).tolist() == [2, 1, 0]
    assert bits.left == 0


def test_every_epoch_of_a_shuffle_holds_everyone_once() -> None:
    batches = list(ShuffledBatches(size=10, batch_size=4, epochs=3).draw(SeededBits(5)))
    assert [len(batch) for batch in batches] == [4, 4, 2] * 3
    epochs = [np.concatenate(batches[i : i + 3]) for i in (0, 3, 6)]
    assert all(sorted(each.tolist()) == list(range(10)) for each in epochs)
    assert len({tuple(each.tolist()) for each in epochs}) == 3


def truncated_law(size: int, rate: float, most: int) -> dict[int, float]:
    """By enumeration: what came, then every choice of so many of it."""
    law: dict[int, float] = {}
    for came, chance in poisson_law(size, rate).items():
        units = [unit for unit in range(size) if came >> unit & 1]
        choices = list(itertools.combinations(units, min(most, len(units))))
        for each in choices:
            code = sum(1 << unit for unit in each)
            law[code] = law.get(code, 0.0) + chance / len(choices)
    return law


def test_truncated_batches_keep_any_choice_of_those_that_came() -> None:
    batches = TruncatedBatches(size=5, batch_size=2, epochs=MANY // 3, max_batch_size=3)
    codes = subsets(list(batches.draw(SeededBits(8))))
    assert fit(codes, truncated_law(5, 2 / 5, 3)) > ALARM
    assert fit(codes, poisson_law(5, 2 / 5)) < ALARM
    assert fit(codes, truncated_law(5, 2 / 5 + 0.04, 3)) < ALARM
    first = subsets(
        [batch[:3] for batch in PoissonBatches(size=5, batch_size=2, epochs=MANY // 3).draw(SeededBits(9))]
    )
    assert fit(first, truncated_law(5, 2 / 5, 3)) < ALARM  # the first to come is no choice
    single = truncated_law(5, 2 / 5, 3)
    law = {32 * a + b: single[a] * single[b] for a in single for b in single}
    assert fit(32 * codes[0:-1:2] + codes[1::2], law) > ALARM


def test_truncated_batches_have_a_maximum_unless_told() -> None:
    assert TruncatedBatches(size=60_000, batch_size=64, epochs=1).max_batch_size == 104
    assert TruncatedBatches(size=100, batch_size=90, epochs=1).max_batch_size == 100


def test_allocation_puts_each_unit_anywhere_for_itself() -> None:
    """Four units in two batches: sixteen ways alike in each epoch, and epochs apart from each other."""
    batches = AllocatedBatches(size=4, batch_size=2, epochs=MANY)
    codes = subsets(list(batches.draw(SeededBits(10))))
    first, second = codes[0::2], codes[1::2]
    assert np.all(first ^ second == 15)  # everybody once
    uniform = dict.fromkeys(range(16), 1 / 16)
    assert fit(first, uniform) > ALARM
    assert fit(16 * first[0:-1:2] + first[1::2], dict.fromkeys(range(256), 1 / 256)) > ALARM
    cut = subsets(list(ShuffledBatches(size=4, batch_size=2, epochs=MANY).draw(SeededBits(11))))
    assert fit(cut[0::2], uniform) < ALARM  # a shuffle fixes how many there are


def test_allocation_is_as_likely_in_each_batch() -> None:
    batches = AllocatedBatches(size=7, batch_size=3, epochs=MANY, present=1)
    drawn = list(batches.draw(SeededBits(12)))
    where = np.array([i % 3 for i, batch in enumerate(drawn) if len(batch)])
    assert len(where) == MANY
    assert fit(where, dict.fromkeys(range(3), 1 / 3)) > ALARM
    assert fit(where, {0: 0.3, 1: 0.35, 2: 0.35}) < ALARM


def test_cyclic_batches_are_the_same_in_each_epoch() -> None:
    batches = CyclicBatches(size=10, batch_size=4, epochs=3)
    drawn = list(batches.draw(ScriptedBits(())))
    assert [len(batch) for batch in drawn] == 3 * [4, 4, 2]
    assert sorted(np.concatenate(drawn[:3])) == list(range(10))
    for step, batch in enumerate(drawn):
        assert (batch == drawn[step % 3]).all()
    later = list(batches.draw(ScriptedBits(()), after=4))
    assert [list(each) for each in later] == [list(each) for each in drawn[4:]]


def test_parts_take_turns_and_hide_who_is_in_a_batch() -> None:
    batches = CyclicBatches(size=12, batch_size=2, epochs=MANY // 6, parts=3)
    pieces = [set(map(int, piece)) for piece in np.array_split(mixed_order(12), 3)]
    counts = np.zeros(12)
    for step, batch in enumerate(batches.draw(SeededBits(5))):
        assert set(map(int, batch)) <= pieces[step % 3]
        counts[batch] += 1
    turns = MANY // 3
    assert batches.training(1.0).uses == turns
    assert (abs(counts / turns - 1 / 2) < 6 / math.sqrt(4 * turns)).all()  # 2 * 3 of 12


def test_an_order_leaves_nobody_out_and_mixes() -> None:
    order = mixed_order(1000)
    assert sorted(order) == list(range(1000))
    assert abs(np.corrcoef(order, np.arange(1000))[0, 1]) < 0.1
    with pytest.raises(InvalidParameter, match="parts"):
        CyclicBatches(size=10, batch_size=4, epochs=1, parts=3)


KINDS = [PoissonBatches, FixedBatches, ShuffledBatches, TruncatedBatches, AllocatedBatches, CyclicBatches]


def test_no_kind_is_forgotten() -> None:
    assert {kind(size=10, batch_size=4, epochs=1).sampler for kind in KINDS} == set(Sampler)
    kinds = {*Batches.__subclasses__(), *IndependentBatches.__subclasses__()}
    assert kinds - {IndependentBatches} == set(KINDS)


@pytest.mark.parametrize("sampler", Sampler)
def test_what_draws_is_what_is_paid(sampler: Sampler) -> None:
    """The plan charges the sampling of the very object that draws its batches, as often as it is used."""
    planned = plan(
        TrainingPlan(size=300, batch_size=30, epochs=3, noise_multiplier=2.0, delta=1e-5, sampler=sampler)
    )
    spend, run = planned.spend(), planned.batches.training(2.0)
    assert planned.batches.sampler is sampler
    assert (spend.sampling, spend.count) == (run.sampling, run.uses)
    assert spend.one_loss().neighbours is spend.distance.neighbours is planned.neighbours
    accountant = PLD()
    paid = accountant.epsilon(accountant.repeat(accountant.lift(spend.one_loss()), spend.count), 1e-5)
    assert paid.upper == pytest.approx(planned.epsilon.upper, abs=2e-3)


@pytest.mark.parametrize(
    ("neighbours", "group"), [("zero-out", 1), ("replace", 1), ("add-remove", 2), ("replace", 3)]
)
def test_whom_poisson_batches_protect_is_paid(neighbours: str, group: int) -> None:
    planned = plan(
        TrainingPlan(
            size=300,
            batch_size=30,
            epochs=3,
            noise_multiplier=3.0,
            delta=1e-5,
            neighbours=neighbours,
            group=group,
        )
    )
    spend = planned.spend(0.5)
    assert str(spend.distance.neighbours) == neighbours
    accountant = PLD()
    paid = accountant.epsilon(accountant.repeat(accountant.lift(spend.one_loss()), spend.count), 1e-5)
    assert paid.upper == pytest.approx(planned.epsilon.upper, abs=2e-3)
    alone = plan(TrainingPlan(size=300, batch_size=30, epochs=3, noise_multiplier=3.0, delta=1e-5))
    assert planned.epsilon.upper >= alone.epsilon.lower


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (
            {"sampler": "allocation", "neighbours": "replace"},
            "be add-remove or zero-out for allocation batches",
        ),
        ({"sampler": "shuffle", "neighbours": "add-remove"}, "be zero-out for shuffle batches"),
        ({"sampler": "allocation", "group": 2}, "'group' of Training must be 1 unless"),
        ({"max_batch_size": 40}, "'max_batch_size' of TrainingPlan must not be given for poisson batches"),
        ({"sampler": "truncated", "max_batch_size": 20}, "'max_batch_size' of TrainingPlan"),
        ({"sampler": "truncated", "max_batch_size": 301}, "'max_batch_size' of TrainingPlan"),
        ({"neighbours": "cousins"}, "'neighbours' of TrainingPlan must be one of"),
        ({"group": 0}, "'group' of TrainingPlan"),
    ],
)
def test_what_is_not_accounted_for_is_refused(stated: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        TrainingPlan(
            **{"size": 300, "batch_size": 30, "epochs": 3, "noise_multiplier": 2.0, "delta": 1e-5} | stated
        )


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_follows_after_a_break(kind: type[Batches]) -> None:
    batches = kind(size=10, batch_size=4, epochs=4)
    assert batches.steps == 12
    assert len(list(batches.draw(SeededBits(6)))) == 12
    assert len(list(batches.draw(SeededBits(6), after=9))) == 3
    assert list(batches.draw(SeededBits(6), after=12)) == []


@pytest.mark.parametrize("kind", [ShuffledBatches, AllocatedBatches])
def test_an_epoch_that_is_drawn_at_once_cannot_go_on_within(kind: type[Batches]) -> None:
    with pytest.raises(InvalidParameter, match="whole number of epochs"):
        next(iter(kind(size=10, batch_size=4, epochs=4).draw(after=4)))


def test_the_accounting_follows_from_the_kind() -> None:
    kinds = {
        PoissonBatches: Sampler.POISSON,
        FixedBatches: Sampler.FIXED,
        ShuffledBatches: Sampler.SHUFFLE,
        TruncatedBatches: Sampler.TRUNCATED,
        AllocatedBatches: Sampler.ALLOCATION,
    }
    for kind, sampler in kinds.items():
        training = kind(size=100, batch_size=10, epochs=3).training(1.5)
        assert (training.sampler, training.size, training.batch_size, training.steps) == (
            sampler,
            100,
            10,
            30,
        )


def test_fewer_people_than_declared_keep_their_chance() -> None:
    batches = PoissonBatches(size=10, batch_size=5, epochs=MANY // 2, present=3)
    assert fit(subsets(list(batches.draw(SeededBits(7)))), poisson_law(3, 0.5)) > ALARM


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"batch_size": 11}, "'batch_size' of .* not be larger than the data"),
        ({"batch_size": 0}, "'batch_size'"),
        ({"size": 0}, "'size'"),
        ({"epochs": 0}, "'epochs'"),
    ],
)
def test_bad_numbers_are_refused(kind: type[Batches], bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        kind(**{"size": 10, "batch_size": 5, "epochs": 1, **bad})
