"""Intervals hold the exact value as often as they say, in large groups and in groups lost in noise."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from sourdine.mechanisms import Laplace
from sourdine.tables import Answer
from sourdine.tables.answers import ALL
from sourdine.tables.intervals import Noisy
from tests.statistics import ALARM
from tests.tables.alike import ASKS, PLACES, answers, plan_of, table_of, truths

PRIVACY = {"pure": (1.0, None), "zcdp": (1.0, 1e-6)}


def values(law: str, size: int) -> NDArray[np.float64]:
    random = np.random.default_rng(size + 1)
    drawn = {
        "even": random.uniform(0, 100, size),
        "skew": np.minimum(random.exponential(9, size), 100),
        "like": np.full(size, 40.0),
        "ends": np.where(np.arange(size) % 2, 0.0, 100.0),
    }
    return drawn[law]


def expected(answer: Answer, truth: Any, groups: int) -> NDArray[np.float64]:
    """The exact values in the order of the answer's keys."""
    if answer.kind != "contingency":
        return np.tile(np.atleast_1d(truth), groups).astype(float)
    names: list[tuple[object, ...]] = [(place, half) for place in PLACES for half in (0, 1)]
    names += [(ALL, half) for half in (0, 1)]
    names += [(place, ALL) for place in PLACES]
    known = dict(zip([*names, (ALL, ALL)], truth, strict=True))
    return np.array([known[key[1:]] for key in answer.keys], dtype=np.float64)


def coverage(law: str, size: int, privacy: str, groups: int, seed: int) -> dict[str, tuple[int, int]]:
    """For each kind how many intervals hold the exact value, and how many groups there are."""
    held = values(law, size)
    truth = truths(held)
    epsilon, delta = PRIVACY[privacy]
    table = table_of(held, groups)
    asks = {kind: ask for kind, ask in ASKS.items() if kind in truth}
    plan = plan_of(table, list(asks.values()), epsilon, delta)
    found = {}
    for answer in answers(table, plan, seed).each:
        exact = expected(answer, truth[answer.kind], groups)
        ends = answer.estimate
        inside = (ends.lower <= exact + 1e-9) & (exact <= ends.upper + 1e-9)
        assert np.all(ends.lower <= ends.upper)
        each = inside.reshape(groups, -1) if answer.kind != "contingency" else inside.reshape(-1, groups).T
        # the values of one group share noise: of every group one is looked at
        pick = np.arange(groups) % each.shape[1]
        found[answer.kind] = int(each[np.arange(groups), pick].sum()), groups
    return found


def check(found: dict[str, tuple[int, int]], least: float = 0.94) -> None:
    for kind, (inside, groups) in found.items():
        assert inside >= binom.ppf(ALARM, groups, least), (kind, inside / groups)
    inside, groups = found["sum"]
    assert inside <= binom.isf(ALARM, groups, 0.96)  # the noise of a sum is as good as continuous


@pytest.mark.parametrize("privacy", PRIVACY)
@pytest.mark.parametrize(
    ("law", "size"), [("even", 0), ("skew", 1), ("like", 5), ("even", 20), ("skew", 200)]
)
def test_intervals_hold_the_exact_value(law: str, size: int, privacy: str) -> None:
    check(coverage(law, size, privacy, 300, 1))


@pytest.mark.slow
@pytest.mark.parametrize("privacy", PRIVACY)
@pytest.mark.parametrize("size", [0, 1, 5, 20, 100, 500])
@pytest.mark.parametrize("law", ["even", "skew", "like", "ends"])
def test_intervals_hold_the_exact_value_in_thousands_of_groups(law: str, size: int, privacy: str) -> None:
    found = coverage(law, size, privacy, 3000, 2)
    print(law, size, privacy, {kind: inside / groups for kind, (inside, groups) in found.items()})
    check(found)


MOST = {"mean": 100, "quantiles": 100, "variance": 2500, "deviation": 50, "proportion": 1}


def test_an_interval_is_no_wider_than_what_can_be_true() -> None:
    table = table_of(values("even", 2), 200)
    plan = plan_of(table, list(ASKS.values()), 0.1)
    for answer in answers(table, plan, 3).each:
        ends = answer.estimate
        most = {"mean": 100, "quantiles": 100, "variance": 2500, "deviation": 50, "proportion": 1}.get(
            answer.kind
        )
        if most is not None:
            assert ends.lower.min() >= 0
            assert ends.upper.max() <= most
            assert np.all((ends.lower <= ends.value) & (ends.value <= ends.upper))
        elif answer.kind != "sum":
            assert np.any(ends.value < 0)  # not cut off, which would shift sums, and so no interval is
            assert np.all((ends.lower <= ends.value) & (ends.value <= ends.upper))


@pytest.mark.parametrize("size", [1.0, 30.0, 3000.0])
def test_ends_of_a_ratio_are_where_a_search_of_every_share_finds_them(size: float) -> None:
    draw = np.random.default_rng(7)
    under = draw.normal(size, 5, 300)
    over = under * draw.choice([0.0, 0.2, 0.995, 1.0], 300) + draw.normal(0, 2, 300)
    noisy = Noisy(numbers=np.stack([over, under], axis=1), mechanism=Laplace(scale=2), confidence=0.95)
    found = noisy.ratio([1.0, 0.0], [0.0, 1.0])
    shares = np.linspace(0, 1, 20_001)
    known = np.linspace(0, 1, 201)
    reach = np.interp(shares, known, noisy.reach(np.stack([np.ones(201), -known])))
    for place in range(300):
        within = np.abs(over[place] - shares * under[place]) <= reach
        centre = round(float(found.value[place]) * 20_000)
        if not within[centre]:
            assert (found.lower[place], found.upper[place]) == (0, 1)
            continue
        out = np.flatnonzero(~within)
        ends = out[out < centre].max(initial=-1) + 1, out[out > centre].min(initial=20_001) - 1
        # where an end of all shares is possible, so are all between
        lower, upper = (0 if within[0] else ends[0]), (20_000 if within[-1] else ends[1])
        assert found.lower[place] == pytest.approx(shares[lower], abs=1.1e-4)
        assert found.upper[place] == pytest.approx(shares[upper], abs=1.1e-4)
