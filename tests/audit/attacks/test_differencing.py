import math
from collections import Counter

import numpy as np
import pytest

from sourdine.audit.attacks import AttackResult, differencing
from sourdine.tables.mock import draw_register
from sourdine.testing import SeededBits


@pytest.fixture(scope="module")
def found() -> AttackResult:
    return differencing.run(SeededBits(1))


def right(epsilon: float) -> float:
    """How often the difference of two counts, each with noise of scale 2/epsilon, is on the right side."""
    q = math.exp(-epsilon / 2)
    law = [(1 - q) / (1 + q) * q ** abs(k) for k in range(-2000, 2001)]
    same = sum(p * p for p in law)
    return (1 + same) / 2


def test_exact_counts_tell_everything_and_private_ones_little(found: AttackResult) -> None:
    assert found.unprotected.success == 1.0
    assert found.unprotected.tries > 100
    assert found.protected.success < 0.62
    assert found.succeeds
    assert found.stopped
    assert found.limit == pytest.approx(math.e / (1 + math.e))


def test_the_guess_follows_its_law(found: AttackResult) -> None:
    (chart,) = found.charts
    ours = {each.place: each.value for each in chart.points if each.series == "with protection"}
    margin = 5 * math.sqrt(0.25 / found.protected.tries)
    for epsilon in differencing.EPSILONS:
        assert abs(ours[epsilon] - right(epsilon)) < margin
        assert right(epsilon) <= math.exp(epsilon) / (1 + math.exp(epsilon))


def test_only_people_who_are_alone_and_have_enough_elders_are_asked_about() -> None:
    people = draw_register(800, seed=5)
    victims = differencing.single_out(people)
    alike = list(zip(people.sex.tolist(), people.region.tolist(), people.age.tolist(), strict=True))
    crowd = Counter(alike)
    expected = [
        who
        for who, (sex, region, age) in enumerate(alike)
        if crowd[alike[who]] == 1
        and sum(s == sex and r == region and a > age for s, r, a in alike) >= differencing.LEAST
    ]
    assert victims.tolist() == expected
    everyone = np.ones(800, np.bool_)
    with_them, without = (differencing.counted(people, everyone, victims, later) for later in (0, 1))
    assert (with_them - without == 1).all()
    assert without.min() >= differencing.LEAST
