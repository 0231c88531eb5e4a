"""Homogeneity and skewness, against counts by hand."""

from collections import Counter, defaultdict
from fractions import Fraction

import pytest

from sourdine.anonymity import Demand, Generalised
from sourdine.audit.attacks import AttackResult, homogeneity, skewness
from sourdine.audit.attacks.targets import OUTBREAK, draw_patients
from sourdine.testing import SeededBits


@pytest.fixture(scope="module")
def same() -> AttackResult:
    return homogeneity.run(SeededBits(1))


@pytest.fixture(scope="module")
def skewed() -> AttackResult:
    return skewness.run(SeededBits(1))


@pytest.fixture(scope="module")
def tables() -> dict[str, Generalised]:
    patients = draw_patients(homogeneity.PATIENTS, SeededBits(1))
    demands = {"k": Demand(k=5), "l": Demand(k=5, l=2), "t": Demand(k=5, l=2, t=Fraction(1, 5))}
    return {name: homogeneity.publish(patients, demand) for name, demand in demands.items()}


def by_hand(made: Generalised) -> list[tuple[int, int]]:
    """The ill and the patients of each class that holds any ill."""
    classes: dict[tuple[object, ...], Counter[object]] = defaultdict(Counter)
    for *key, illness in made.rows():
        classes[tuple(key)][illness] += 1
    return [(each[OUTBREAK], each.total()) for each in classes.values() if each[OUTBREAK]]


def test_homogeneity_is_counted_rightly(same: AttackResult, tables: dict[str, Generalised]) -> None:
    counted = by_hand(tables["k"])
    assert same.unprotected.hits == sum(ill for ill, size in counted if ill == size)
    assert same.unprotected.tries == sum(ill for ill, _ in counted)
    assert min(size for _, size in counted) >= 5


def test_homogeneity_succeeds_and_diversity_stops_it(same: AttackResult) -> None:
    assert same.unprotected.success > 0.3
    assert same.protected.hits == 0
    assert same.protected.tries > 500
    assert same.succeeds
    assert same.stopped
    (chart,) = same.charts
    assert {each.value for each in chart.points if each.series == "with protection"} == {0.0}


def test_skewness_is_counted_rightly(skewed: AttackResult, tables: dict[str, Generalised]) -> None:
    counted = by_hand(tables["l"])
    assert skewed.unprotected.hits == sum(ill for ill, size in counted if 2 * ill >= size)
    assert all(ill < size for ill, size in counted)


def test_skewness_succeeds_and_closeness_stops_it(skewed: AttackResult) -> None:
    assert skewed.unprotected.success > 0.4
    assert skewed.protected.hits == 0
    assert skewed.limit == 0.0
    assert skewed.succeeds
    assert skewed.stopped


def test_closeness_bounds_every_belief(tables: dict[str, Generalised]) -> None:
    made = tables["t"]
    share = sum(illness == OUTBREAK for *_, illness in made.rows()) / made.records.size
    assert max(ill / size for ill, size in by_hand(made)) <= share + 0.2 + 1e-12


def test_beliefs_fall_along_the_chart(skewed: AttackResult) -> None:
    (chart,) = skewed.charts
    for series in ("without protection", "with protection"):
        values = [each.value for each in chart.points if each.series == series]
        assert values == sorted(values, reverse=True)
