"""The keys that most units have: the law of their order, its cost, and how far a unit moves the counts."""

import math
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit, Totals
from sourdine.mechanisms import TopK
from sourdine.tables import Table, forecasts
from sourdine.tables.release import _carry_out, exact_of, scans
from sourdine.testing import SeededBits
from tests.statistics import ALARM, fit

KEYS = ["a", "b", "c"]
COUNTS = (4, 3, 1)
MANY = PrivacyUnit(name="person", column="who", max_groups=2)


def law(rate: float) -> dict[int, float]:
    """Ranks as digits: each next key by the exponential of its count, among those that are left."""
    found = {}
    for first, second, _ in permutations(range(3)):
        weights = [math.exp(rate * count) for count in COUNTS]
        left = sum(weights) - weights[first]
        found[10 * first + second] = weights[first] / sum(weights) * weights[second] / left
    return found


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_ranks_follow_the_exponential_mechanism(neighbours: Neighbours) -> None:
    """Many groups with the same counts are as many releases; a unit that is replaced moves two of them."""
    groups, epsilon = 3000, 3
    town = [key for key, count in zip(KEYS, COUNTS, strict=True) for _ in range(count)]
    rows = pa.table({"group": np.repeat(np.arange(groups), len(town)), "town": town * groups})
    columns: dict[str, Any] = {
        "group": {"type": "category", "keys": list(range(groups))},
        "town": {"type": "category", "keys": KEYS},
    }
    table = Table(rows, unit="person", columns=columns, neighbours=neighbours)
    query = {"name": "q", "ask": [{"top": "town", "k": 2}], "by": ["group"]}
    plan = table.plan(query, epsilon=epsilon, quality=False)
    (answer,) = _carry_out(plan, table.source, bits=SeededBits(6)).values.each
    assert [row[1] for row in answer.rows()] == [1.0, 2.0] * groups
    assert [key[0] for key in answer.keys] == [group for group in range(groups) for _ in range(2)]
    places = np.array([KEYS.index(str(key[1])) for key in answer.keys]).reshape(-1, 2)
    added = neighbours is Neighbours.ADD_REMOVE
    rate = epsilon / 2 if added else epsilon / 2 / 2 / 2  # two groups, and scores that go up and down
    found = places @ np.array([10, 1])
    assert fit(found, law(rate)) > ALARM
    assert fit(found, law(1.2 * rate)) < ALARM
    assert (plan.lines[0].count, plan.spends[0].one_loss().epsilon) == (
        1 if added else 2,
        Fraction(3, 1 if added else 2),
    )


def test_units_vote_once_for_each_of_their_keys() -> None:
    """Counts of units change by one, in at most so many cells, when a unit goes."""
    random = np.random.default_rng(2)
    columns: dict[str, Any] = {
        "sex": {"type": "category", "keys": ["f", "m"]},
        "town": {"type": "category", "keys": ["a", "b", "c", "d"]},
    }
    reached = 0
    for seed in range(5):
        rows = [(f"p{i % 4}", random.choice(["f", "m"]), random.choice(list("abcd"))) for i in range(30)]
        scores = []
        for held in (rows, [row for row in rows if row[0] != "p0"]):
            who, sex, town = map(list, zip(*held, strict=True))
            table = Table(pa.table({"who": who, "sex": sex, "town": town}), unit=MANY, columns=columns)
            plan = table.plan({"name": "q", "ask": [{"top": "town", "k": 2}], "by": ["sex"]}, epsilon=1)
            exact = exact_of(scans(plan)[0], plan, table.source, SeededBits(seed))[0]
            assert isinstance(exact, Totals)
            scores.append(np.array(exact.numbers[0]).reshape(2, 4))
        gone = scores[0] - scores[1]
        assert set(gone.ravel().tolist()) <= {0, 1}
        assert gone.any(axis=1).sum() <= plan.lines[0].count == 2
        reached = max(reached, int(gone.sum()))
    assert reached == 2


def test_of_keys_chosen_privately_there_may_be_fewer() -> None:
    rows = pa.table({"town": ["a"] * 90 + ["b"] * 50 + ["others"] * 80 + ["c"]})
    table = Table(rows, unit="person", columns={"town": {"type": "text", "other": "others"}})
    plan = table.plan({"name": "q", "ask": [{"top": "town", "k": 5}]}, epsilon=40, delta=1e-6)
    (answer,) = _carry_out(plan, table.source, bits=SeededBits(1)).values.each
    assert [(key, value) for key, value, *_ in answer.rows()] == [(("a",), 1.0), (("b",), 2.0)]
    assert answer.chosen == ("town",)
    assert not answer.bounded
    mechanism = plan.lines[1].mechanism
    assert isinstance(mechanism, TopK)
    assert forecasts(plan)[1].error == mechanism.error(0.95)


def test_what_cannot_be_ranked_is_refused() -> None:
    table = Table(
        pa.table({"sex": ["f"], "pay": [3]}),
        unit="person",
        columns={
            "sex": {"type": "category", "keys": ["f", "m"]},
            "pay": {"type": "real", "lower": 0, "upper": 9},
        },
    )
    refused: list[tuple[dict[str, Any], str]] = [
        ({"ask": [{"top": "sex", "k": 2}]}, "would be all its 2 keys"),
        ({"ask": [{"top": "pay", "k": 1}]}, "'pay' is declared to hold numbers"),
        ({"ask": [{"top": "sex", "k": 1}], "by": ["sex"]}, "groups by 'sex' twice"),
        ({"ask": [{"top": "sex"}]}, "'queries.q.ask.0.top.k' is missing"),
        ({"ask": ["top"]}, r'Top\("town", k=10\)'),
    ]
    for query, words in refused:
        with pytest.raises(InvalidParameter, match=words):
            table.plan({"name": "q", **query}, epsilon=1)
