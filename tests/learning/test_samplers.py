import itertools
import math
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from sourdine.accounting.dpsgd import Sampler
from sourdine.core.errors import InvalidParameter
from sourdine.learning.samplers import Batches, FixedBatches, PoissonBatches, ShuffledBatches, shuffled
from sourdine.testing import ScriptedBits, SeededBits
from tests.statistics import ALARM, fit

MANY = 10_000
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
    return subsets(list(PoissonBatches(size=5, batch=2, epochs=MANY // 3).drawn(SeededBits(seed))))


@cache
def fixed(seed: int) -> Codes:
    return subsets(list(FixedBatches(size=5, batch=2, epochs=MANY // 3).drawn(SeededBits(seed))))


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
    batches = list(ShuffledBatches(size=10, batch=4, epochs=3).drawn(SeededBits(5)))
    assert [len(batch) for batch in batches] == [4, 4, 2] * 3
    epochs = [np.concatenate(batches[i : i + 3]) for i in (0, 3, 6)]
    assert all(sorted(each.tolist()) == list(range(10)) for each in epochs)
    assert len({tuple(each.tolist()) for each in epochs}) == 3


@pytest.mark.parametrize("kind", [PoissonBatches, FixedBatches, ShuffledBatches])
def test_the_rest_follows_after_a_break(kind: type[Batches]) -> None:
    batches = kind(size=10, batch=4, epochs=4)
    assert batches.steps == 12
    assert len(list(batches.drawn(SeededBits(6)))) == 12
    assert len(list(batches.drawn(SeededBits(6), after=9))) == 3
    assert list(batches.drawn(SeededBits(6), after=12)) == []


def test_a_shuffle_cannot_go_on_within_an_epoch() -> None:
    with pytest.raises(InvalidParameter, match="whole number of epochs"):
        next(iter(ShuffledBatches(size=10, batch=4, epochs=4).drawn(after=4)))


def test_the_accounting_follows_from_the_kind() -> None:
    kinds = {
        PoissonBatches: Sampler.POISSON,
        FixedBatches: Sampler.FIXED,
        ShuffledBatches: Sampler.SHUFFLE,
    }
    for kind, sampler in kinds.items():
        training = kind(size=100, batch=10, epochs=3).training(1.5)
        assert (training.sampler, training.size, training.batch, training.steps) == (sampler, 100, 10, 30)


def test_fewer_people_than_declared_keep_their_chance() -> None:
    batches = PoissonBatches(size=10, batch=5, epochs=MANY // 2, present=3)
    assert fit(subsets(list(batches.drawn(SeededBits(7)))), poisson_law(3, 0.5)) > ALARM


@pytest.mark.parametrize("kind", [PoissonBatches, FixedBatches, ShuffledBatches])
@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"batch": 11}, "'batch' of .* not be larger than the data"),
        ({"batch": 0}, "'batch'"),
        ({"size": 0}, "'size'"),
        ({"epochs": 0}, "'epochs'"),
    ],
)
def test_bad_numbers_are_refused(kind: type[Batches], bad: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        kind(**{"size": 10, "batch": 5, "epochs": 1} | bad)
