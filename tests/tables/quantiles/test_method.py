"""What all methods promise alike: descriptions, refusals, repeatable draws, totality."""

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.frames import CountedValues
from sourdine.frames.rank_counts import SeparateRanks, SortedPlaces
from sourdine.tables.quantiles import (
    InverseSensitivity,
    JointExponential,
    NaiveLaplace,
    QuantileMethod,
    RecursiveQuantiles,
    ThresholdHistogram,
)
from sourdine.tables.quantiles.recursive import ValueRanges
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.statistics import ALARM

KINDS: list[type[QuantileMethod]] = [
    InverseSensitivity,
    JointExponential,
    NaiveLaplace,
    RecursiveQuantiles,
    ThresholdHistogram,
]
EXAMPLES = [
    pytest.param(example, id=f"{kind.__name__}-{i}")
    for kind in KINDS
    for i, example in enumerate(kind.examples())
]
THIRDS = (Fraction(1, 3), Fraction(2, 3))


def made(kind: type[QuantileMethod], **given: object) -> QuantileMethod:
    more = {"cuts": 4} if kind is ThresholdHistogram else {}
    return kind(**({"epsilon": Fraction(3, 2), "levels": THIRDS, "places": 9} | more | given))  # type: ignore[arg-type]


@pytest.mark.parametrize("relation", [Neighbours.REPLACE, Neighbours.ADD_REMOVE])
@pytest.mark.parametrize("kind", KINDS)
def test_survives_json(kind: type[QuantileMethod], relation: Neighbours) -> None:
    mechanism = made(kind, neighbours=relation)
    text = json.dumps(mechanism.to_json())
    assert Mechanism.from_json(json.loads(text)) == mechanism
    assert '"levels": ["1/3", "2/3"]' in text


@pytest.mark.parametrize("kind", KINDS)
def test_is_frozen_keyword_only_and_documented(kind: type[QuantileMethod]) -> None:
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    assert all(field.kw_only for field in dataclasses.fields(kind))
    assert ">>>" in (kind.__doc__ or "")


BAD = [
    ("epsilon", 0),
    ("epsilon", -1),
    ("epsilon", math.nan),
    ("epsilon", 2.0**21),
    ("epsilon", Fraction(1, 10**400)),
    ("levels", ()),
    ("levels", (0.5, 0.5)),
    ("levels", (0.6, 0.5)),
    ("levels", (0, 0.5)),
    ("levels", (0.5, 1)),
    ("levels", (math.nan,)),
    ("levels", ("half",)),
    ("levels", 0.5),
    ("levels", (1e-9, 0.5)),
    ("levels", (0.5, 0.5 + 2.0**-50)),
    ("levels", tuple(i / 1001 for i in range(1, 1001))),
    ("places", 0),
    ("places", 2.5),
    ("places", 2**60),
    ("neighbours", "replace"),
    ("neighbours", Neighbours.ZERO_OUT),
]


@pytest.mark.parametrize(("field", "bad"), BAD)
@pytest.mark.parametrize("kind", KINDS)
def test_bad_parameters_name_themselves(kind: type[QuantileMethod], field: str, bad: object) -> None:
    with pytest.raises(InvalidParameter, match=f"The '{field}' of {kind.__name__}") as caught:
        made(kind, **{field: bad})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("kind", "field", "bad"),
    [
        (InverseSensitivity, "radius", -1),
        (RecursiveQuantiles, "radius", 0.5),
        (ThresholdHistogram, "cuts", 0),
        (ThresholdHistogram, "cuts", 10),
        (ThresholdHistogram, "monotone", 1),
    ],
)
def test_bad_parameters_of_one_kind_name_themselves(
    kind: type[QuantileMethod], field: str, bad: object
) -> None:
    with pytest.raises(InvalidParameter, match=f"The '{field}' of {kind.__name__}"):
        made(kind, **{field: bad})


def test_noise_that_would_not_fit_is_refused() -> None:
    with refusal_of("epsilon", "NaiveLaplace"):
        NaiveLaplace(epsilon=Fraction(1), levels=THIRDS, places=1 << 52)


def test_levels_are_the_fractions_that_floats_stand_for() -> None:
    assert made(NaiveLaplace, levels=(0.1, 1 / 3, Fraction(1, 2))).levels == (
        Fraction(1, 10),
        Fraction(1, 3),
        Fraction(1, 2),
    )


@pytest.mark.parametrize("example", EXAMPLES)
def test_is_repeatable_with_a_seed_and_fresh_without(example: Example) -> None:
    first = example.outcomes(example.value, 40, SeededBits(1))
    assert np.array_equal(first, example.outcomes(example.value, 40, SeededBits(1)))
    assert not np.array_equal(first, example.outcomes(example.value, 40, SeededBits(2)))
    assert not np.array_equal(example.outcomes(example.value, 40), example.outcomes(example.value, 40))


@pytest.mark.parametrize("kind", KINDS)
def test_other_norms_and_neighbours_are_refused(kind: type[QuantileMethod]) -> None:
    mechanism = made(kind)
    with pytest.raises(UnsupportedLoss, match="Hamming"):
        mechanism.loss(Distance.l1(1))
    with pytest.raises(InvalidParameter, match="neighbours"):
        mechanism.loss(Distance.hamming(neighbours=Neighbours.ADD_REMOVE))


@pytest.mark.parametrize("kind", KINDS)
def test_one_replaced_is_one_that_goes_and_one_that_comes(kind: type[QuantileMethod]) -> None:
    mechanism = made(kind, neighbours=Neighbours.ADD_REMOVE)
    replaced = mechanism.loss(Distance.hamming(3))
    two = mechanism.loss(Distance.hamming(6, neighbours=Neighbours.ADD_REMOVE))
    assert (replaced.epsilon, replaced.rho) == (two.epsilon, two.rho) == (9, 81 * kind.rho_at_one(2))
    assert replaced.neighbours is Neighbours.REPLACE


def test_what_each_costs() -> None:
    """Epsilon as declared for one value, as many times for more; rho by the method."""
    rhos: dict[type[QuantileMethod], Fraction] = {
        InverseSensitivity: Fraction(9, 64),  # two levels at 3/4 each
        JointExponential: Fraction(9, 32),
        RecursiveQuantiles: Fraction(9, 64),  # two rounds at 3/4 each
        ThresholdHistogram: Fraction(9, 8),
        NaiveLaplace: Fraction(9, 8),
    }
    for kind, rho in rhos.items():
        mechanism = made(kind)
        for amount in (1, 3):
            loss = mechanism.loss(Distance.hamming(amount))
            assert loss.epsilon == Fraction(3, 2) * amount
            assert loss.rho == rho * amount**2
            assert loss.neighbours is Neighbours.REPLACE
            assert loss.profile(1.5 * amount + 1e-9) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_errors_grow_with_confidence_and_fall_with_epsilon(kind: type[QuantileMethod]) -> None:
    errors = [made(kind).error(confidence) for confidence in (0.5, 0.9, 0.999)]
    assert errors == sorted(errors)
    assert made(kind, epsilon=3).error() < made(kind).error()
    for bad in (0, 1, math.nan):
        with pytest.raises(InvalidParameter, match="confidence"):
            made(kind).error(bad)


@pytest.mark.parametrize(
    "kind", [InverseSensitivity, JointExponential, RecursiveQuantiles, ThresholdHistogram]
)
def test_ranks_stay_within_the_forecast(kind: type[QuantileMethod]) -> None:
    places, n = 5000, 2000
    more = {"cuts": places} if kind is ThresholdHistogram else {}
    mechanism = made(kind, places=places, **more)
    source = SortedPlaces(np.sort(np.random.default_rng(0).integers(0, places, n)))
    found = mechanism.draw(source, 60, SeededBits(3))
    aims = np.array([n / 3, 2 * n / 3])
    below, upto = source.count_below(found), source.count_below(found + 1)
    off = np.maximum(np.maximum(below - aims, aims - upto), 0).max(axis=1)
    assert np.mean(off <= mechanism.error(0.9)) >= 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_any_whole_numbers_give_places_on_the_grid(kind: type[QuantileMethod]) -> None:
    mechanism = made(kind)
    far: list[object] = [[], [2**62, -(2**63)], [10**30, -(10**30), 4], np.array([2**64 - 1], np.uint64)]
    for values in [*far, [0] * 30, [8] * 30, np.zeros(0)]:
        found = mechanism.sample(values, SeededBits(0))  # type: ignore[arg-type]
        assert found.shape == (2,)
        assert 0 <= found[0] <= found[1] <= 8


@pytest.mark.parametrize("bad", [[0.5], np.array([1.5, 2.0]), ["a"], np.array(3), [None]])
def test_what_is_no_row_of_whole_numbers_is_refused(bad: object) -> None:
    with pytest.raises(InvalidParameter, match="whole numbers along the last axis"):
        made(InverseSensitivity).sample(bad)  # type: ignore[arg-type]


def test_places_under_a_mask_are_left_out() -> None:
    rows = np.ma.masked_equal([[3] * 200 + [8] * 300] * 2, 8)
    assert made(InverseSensitivity, epsilon=60).sample(rows, SeededBits(0)).tolist() == [[3, 3], [3, 3]]
    assert made(InverseSensitivity).sample(rows[:0], SeededBits(0)).shape == (0, 2)
    assert made(InverseSensitivity).sample(np.ma.masked_all(4, int), SeededBits(0)).shape == (2,)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_answered_one_by_one(kind: type[QuantileMethod]) -> None:
    rows = np.array([[0] * 200, [8] * 200])
    found = made(kind, epsilon=60).sample(rows, SeededBits(0))
    assert found.shape == (2, 2)
    if kind is not NaiveLaplace:
        assert np.all(np.abs(found - [[0], [8]]) <= 2)
    assert made(kind).sample(np.broadcast_to(rows[0], (2, 3, 200)), SeededBits(0)).shape == (2, 3, 2)
    assert made(kind).sample(rows[:0], SeededBits(0)).shape == (0, 2)


@pytest.mark.parametrize("kind", KINDS)
def test_any_source_of_ranks_will_do(kind: type[QuantileMethod]) -> None:
    """The same answers from counted values as from sorted ones, word for word."""
    values = np.array([0, 0, 2, 3, 3, 3, 8])
    distinct, counts = np.unique(values, return_counts=True)
    counted = CountedValues(distinct, np.cumsum(counts))
    for seed in range(20):
        one, other = (made(kind).sample(each, SeededBits(seed)) for each in (SortedPlaces(values), counted))
        np.testing.assert_array_equal(one, other)


def test_a_part_is_a_source_of_the_values_in_it() -> None:
    values = np.array([0, 2, 2, 3, 5, 5, 7, 9])
    for first, last in [(0, 10), (2, 5), (5, 6), (4, 4), (8, 9)]:
        inside = SortedPlaces(values[(values >= first) & (values < last)] - first)
        whole = SeparateRanks((), (SortedPlaces(np.arange(3)), SortedPlaces(values)))
        part = ValueRanges((), whole, *np.array([[0, 1], [0, first], [0, last]]))
        assert part.sizes[1] == part.part(1).size == inside.size
        spots, one = np.arange(-1, 12), np.array([1])
        np.testing.assert_array_equal(
            part.count_below(np.ones_like(spots), spots), inside.count_below(np.clip(spots, 0, last - first))
        )
        for a in range(inside.size):
            for b in range(a, inside.size + 1):
                found = part.values_between(one, np.array([a]), np.array([b]))
                np.testing.assert_array_equal(found, inside.values_between(a, b))


@pytest.mark.parametrize("kind", KINDS)
def test_groups_are_answered_as_each_by_itself(kind: type[QuantileMethod]) -> None:
    """By the same law: copies of a group beside others, against answers for it alone."""
    mechanism = made(kind)
    mine, other = np.array([0, 0, 2, 3, 3, 3, 8]), np.full(40, 5)
    groups = tuple(map(SortedPlaces, (other, mine, np.zeros(0, np.int64), mine))) * 700
    drawn = mechanism.sample_groups(SeparateRanks((), groups), SeededBits(3))
    together = np.concatenate([drawn[1::4], drawn[3::4]])
    apart = np.sort(mechanism.draw(SortedPlaces(mine), 3000, SeededBits(4)), axis=-1)
    for column in range(drawn.shape[1]):
        seen = np.array([np.bincount(each[:, column], minlength=9) for each in (together, apart)])
        assert chi2_contingency(seen[:, seen.sum(axis=0) > 0]).pvalue > ALARM
