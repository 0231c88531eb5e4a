"""Local hashing: its hash family, its best number of groups and its variance."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.core.random import samplers as exact
from sourdine.local import OLH
from sourdine.local.frequency import hashing as module
from sourdine.testing import SeededBits
from tests import code_laws
from tests.errors import refusal_of


@pytest.mark.parametrize(("groups", "digits"), [(2, 4), (3, 3), (4, 2), (5, 2), (8, 2), (9, 2)])
def test_two_categories_share_a_group_once_in_g_exactly(groups: int, digits: int) -> None:
    size = groups**digits
    hashes = np.array([[code_laws.dot(groups, digits, seed, x) for x in range(size)] for seed in range(size)])
    for x, y in itertools.combinations(range(min(size, 20)), 2):
        assert groups * (hashes[:, x] == hashes[:, y]).sum() == size


def test_every_seed_and_shift_give_another_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the coins replaced by all they can be, each report that a seed has comes out once."""
    oracle = OLH(epsilon=1, categories=16, groups=4)
    pairs = np.array(list(itertools.product(range(16), range(4))))

    class Everything:
        def sample(self, count: int, bits: object) -> np.ndarray:
            return pairs[:count, 1]

    monkeypatch.setattr(exact, "uniform", lambda size, count, bits: pairs[:, 0] % size)
    monkeypatch.setattr(module, "table", lambda weights: Everything())
    for x in range(16):
        codes = oracle.encode(np.full(64, x), SeededBits(1))
        assert sorted(codes.tolist()) == list(range(64))
        true = codes[pairs[:, 1] == 0]
        assert all(code % 4 == code_laws.dot(4, 2, code // 4, x) for code in true.tolist())


@pytest.mark.parametrize(("epsilon", "groups"), [(Fraction(1, 2), 3), (1, 4), (2, 8), (3, 19), (4, 53)])
def test_the_best_number_of_groups(epsilon: Fraction, groups: int) -> None:
    assert OLH(epsilon=epsilon, categories=1000).groups == groups


@pytest.mark.parametrize("groups", [2, 4, 7])
def test_the_variance_is_the_published_one(groups: int) -> None:
    e = math.e
    oracle = OLH(epsilon=1, categories=100, groups=groups)
    published = (e - 1 + groups) ** 2 / ((e - 1) ** 2 * (groups - 1))
    assert 50 * oracle.variance(0.0, 50) == pytest.approx(published)


def test_four_groups_are_within_a_hundredth_of_the_best_there_could_be() -> None:
    ideal = 4 * math.e / (math.e - 1) ** 2
    assert float(OLH(epsilon=1, categories=1000).variance(0.0, 1)) < 1.01 * ideal
    assert float(OLH(epsilon=1, categories=1000, groups=3).variance(0.0, 1)) > 1.02 * ideal


@pytest.mark.parametrize("groups", [1, 6, 12, 513, -2, 2.5])
def test_groups_that_are_no_field_are_refused(groups: int) -> None:
    with refusal_of("groups", "OLH"):
        OLH(epsilon=1, categories=10, groups=groups)


def test_too_many_reports_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="at most 2\\^26 different reports"):
        OLH(epsilon=1, categories=1 << 20, groups=512)
    largest = OLH(epsilon=5, categories=1 << 24)
    assert largest.codes <= 1 << 26
