"""Encode, shuffle, analyze: orders are uniform, crowds pass as stated, and what is claimed holds."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import chdtrc

from sourdine.accounting import Bracket, blanket_model, shuffle_model
from sourdine.audit import bound_epsilon
from sourdine.core.distance import Distance
from sourdine.core.distributions import AtomLaw
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Example
from sourdine.local import (
    GRR,
    OLH,
    OUE,
    SUE,
    Counts,
    FrequencyOracle,
    HadamardResponse,
    ProjectiveGeometry,
    SubsetSelection,
)
from sourdine.local.frequency.unary import Unary
from sourdine.local.oracle import CodeReports
from sourdine.local.rappor import Rappor
from sourdine.local.shuffle import (
    CrowdRule,
    Sealed,
    amplified,
    amplified_epsilon,
    analyze,
    encode,
    look_alike,
    permutation,
    seal,
    shuffle,
)
from sourdine.testing import ScriptedBits, SeededBits
from tests import contract
from tests.statistics import ALARM, fit

ORACLE = GRR(epsilon=2, categories=4)
KEY = bytes(range(16))


def test_all_orders_are_equally_likely() -> None:
    bits = SeededBits(1)
    orders = {order: i for i, order in enumerate(itertools.permutations(range(4)))}
    seen = np.array([orders[tuple(permutation(4, bits).tolist())] for _ in range(12_000)])
    assert fit(seen, dict.fromkeys(range(24), 1 / 24)) > ALARM
    assert permutation(0, bits).tolist() == []


def test_ties_are_settled_by_more_digits() -> None:
    bits = ScriptedBits([5, 5, 1, 5, 3, 2, 9, 2, 8, 7, 6, 4])
    # first digits 5 5 1 5, second 3 2 9 2, third 8 7 6 4: in order 2, then 3 (5 2 4), 1 (5 2 7), 0 (5 3)
    assert permutation(4, bits).tolist() == [2, 3, 1, 0]
    assert bits.left == 0


def test_nothing_is_lost_and_the_order_is_forgotten() -> None:
    values = np.arange(3000) % 4
    sealed = encode(ORACLE, values, bits=SeededBits(1))
    rows = shuffle(sealed, bits=SeededBits(2))
    assert sorted(rows.tolist()) == sorted(sealed.rows.tolist())
    assert rows.tolist() != sealed.rows.tolist()
    plain = ORACLE.estimate(ORACLE.tally(ORACLE.unpack(sealed.rows)))
    assert analyze(ORACLE, rows).value == pytest.approx(plain.value)


def test_small_crowds_do_not_pass() -> None:
    crowds = ["large"] * 30 + ["small"] * 9
    sealed = encode(ORACLE, np.zeros(39, int), crowds, key=KEY, bits=SeededBits(1))
    assert len(shuffle(sealed, rule=CrowdRule(minimum=10))) == 30
    assert len(shuffle(sealed, rule=CrowdRule(minimum=9))) == 39
    assert len(shuffle(sealed, rule=CrowdRule(minimum=31))) == 0
    halves = [Sealed(sealed.fingerprint, sealed.crowds[i::2], sealed.rows[i::2]) for i in (0, 1)]
    assert len(shuffle(*halves, rule=CrowdRule(minimum=10))) == 30


def test_names_of_crowds_are_blinded_by_the_key() -> None:
    rows = ORACLE.pack(ORACLE.sample([0, 1, 2]))
    names = seal(ORACLE, rows, ["a", "b", "a"], key=KEY).crowds
    assert names[0].tolist() == names[2].tolist() != names[1].tolist()
    assert names.tolist() != seal(ORACLE, rows, ["a", "b", "a"], key=bytes(16)).crowds.tolist()
    with pytest.raises(InvalidParameter, match="'key'"):
        seal(ORACLE, rows, ["a", "b", "a"])
    with pytest.raises(InvalidParameter, match="3 reports and 2 crowds"):
        seal(ORACLE, rows, ["a", "b"], key=KEY)


def passing_law(rule: CrowdRule, size: int) -> dict[int, float]:
    """How many of a crowd pass, summed over the noise."""
    rate = math.exp(-float(rule.epsilon or 0))
    law: dict[int, float] = {}
    for noise in range(-400, 401):
        mass = (1 - rate) / (1 + rate) * rate ** abs(noise)
        left = size - max(0, rule.shift + noise)
        left = left if left >= rule.minimum else 0
        law[left] = law.get(left, 0.0) + mass
    return law


RULE = CrowdRule(minimum=5, epsilon=Fraction(1, 2), delta=Fraction(1, 1000))


def test_sizes_follow_their_law() -> None:
    passing = RULE.passing(np.full(100_000, 20), SeededBits(3))
    assert fit(passing, passing_law(RULE, 20)) > ALARM
    wrong = CrowdRule(minimum=5, epsilon=Fraction(11, 20), delta=Fraction(1, 1000))
    assert fit(passing, passing_law(wrong, 20)) < ALARM


@pytest.mark.parametrize("least", [1, 5, 20])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1, 2), 2])
def test_sizes_are_as_private_as_stated(least: int, epsilon: Fraction) -> None:
    rule = CrowdRule(minimum=least, epsilon=epsilon, delta=Fraction(1, 1000))
    for size in range(40):
        one, other = passing_law(rule, size), passing_law(rule, size + 1)
        for a, b in ((one, other), (other, one)):
            excess = sum(max(0.0, mass - math.exp(epsilon) * b.get(left, 0.0)) for left, mass in a.items())
            assert excess <= 1e-3
    less = rule.shift - 1
    tail = math.exp(-less * epsilon) / (1 + math.exp(-epsilon))
    assert tail > 1e-3  # one less would not do


def test_who_is_left_out_of_a_crowd_is_chosen_evenly() -> None:
    rows = np.arange(6, dtype=np.uint8)[:, None]
    sealed = Sealed("x", np.zeros((6, 16), np.uint8), rows)
    rule = CrowdRule(minimum=1, epsilon=8, delta=Fraction(1, 4000))
    bits = SeededBits(4)
    kept = np.concatenate([shuffle(sealed, rule=rule, bits=bits).ravel() for _ in range(1500)])
    sizes = np.bincount(kept, minlength=6)
    assert rule.shift == 2
    assert chdtrc(5, float(np.sum((sizes - sizes.mean()) ** 2 / sizes.mean()))) > ALARM


def test_no_amplified_epsilon_is_below_what_one_report_costs() -> None:
    """The float next to 1/3 is below it, and alone, or at a delta of 0, a report costs 1/3."""
    for epsilon in (Fraction(1, 3), Fraction(1, 10), Fraction(2, 3)):
        oracle = GRR(epsilon=epsilon, categories=3)
        assert Fraction(amplified_epsilon(oracle, 5, 0)) >= epsilon
        assert Fraction(amplified_epsilon(oracle, 2, 1e-300)) >= epsilon


@pytest.mark.slow
def test_the_amplified_epsilon_is_that_of_the_accounting() -> None:
    found = amplified(ORACLE, 10_000, 1e-6)
    (favours,) = ORACLE.favours
    assert found == blanket_model(favours, 2.0, 10_000, 1e-6)
    assert amplified_epsilon(ORACLE, 10_000, 1e-6) == found.upper < shuffle_model(2.0, 10_000, 1e-6)
    assert amplified_epsilon(ORACLE, 1, 1e-6) <= 2
    oracle = Rappor(bits=16, hashes=2, cohorts=4, f=0.5, p=0.5, q=0.75)
    local = float(oracle.spend.loss().epsilon)
    assert amplified(oracle, 100_000, 1e-6) == Bracket(0.0, shuffle_model(local, 100_000, 1e-6))
    assert amplified_epsilon(oracle, 100_000, 1e-6) < 0.02


def favoured(oracle: FrequencyOracle) -> tuple[np.ndarray, np.ndarray]:
    """Which categories each report speaks for, and the law of reports that all of them share."""
    k = oracle.categories
    if isinstance(oracle, CodeReports):
        each = [oracle.supports(Counts("", 1, row)) for row in np.eye(oracle.codes, dtype=np.int64)]
        return np.array(each) > 0, np.full(oracle.codes, 1 / oracle.codes)
    rows = np.array(list(itertools.product([0, 1], repeat=k)))
    if isinstance(oracle, SubsetSelection):
        rows = rows[rows.sum(axis=1) == oracle.size]
        return rows > 0, np.full(len(rows), 1 / len(rows))
    assert isinstance(oracle, Unary), (
        f"give in `favoured` the law of a report of {type(oracle).__name__} that is of no category"
    )
    q = oracle.channel.q
    return rows > 0, np.prod(np.where(rows > 0, q, 1 - q), axis=1)


@pytest.mark.parametrize(
    "oracle",
    [
        GRR(epsilon=1, categories=5),
        GRR(epsilon=1, categories=2),
        SUE(epsilon=1, categories=4),
        OUE(epsilon=2, categories=3),
        SubsetSelection(epsilon=Fraction(1, 2), categories=7, size=3),
        SubsetSelection(epsilon=1, categories=4, size=1),
        OLH(epsilon=1, categories=3, groups=3),
        OLH(epsilon=1, categories=9, groups=4),
        OLH(epsilon=1, categories=2, groups=2),
        ProjectiveGeometry(epsilon=1, categories=7, order=2),
        ProjectiveGeometry(epsilon=1, categories=9, order=3),
        HadamardResponse(epsilon=1, categories=6, blocks=1),
        HadamardResponse(epsilon=2, categories=7, blocks=3),
        HadamardResponse(epsilon=2, categories=4, blocks=2),
        HadamardResponse(epsilon=4, categories=5, blocks=5),
        *(kind(epsilon=1, categories=4) for kind in contract.oracles()),  # type: ignore[call-arg]
    ],
)
def test_reports_favour_as_many_categories_as_stated(oracle: FrequencyOracle) -> None:
    """By reading every report there is: each share occurs for some two categories, and no other does."""
    if not oracle.favours:
        pytest.skip("it states none, so a shuffle of it is accounted by its epsilon")
    sets, law = favoured(oracle)
    share = lambda which: float(law @ which)
    seen: set[tuple[float, ...]] = set()
    thirds: dict[tuple[float, ...], list[float]] = {}
    for x, y in itertools.permutations(range(oracle.categories), 2):
        one, other = sets[:, x], sets[:, y]
        kind = tuple(round(share(which), 12) for which in (one, one & ~other, one & other))
        seen.add(kind)
        rest = [z for z in range(oracle.categories) if z not in (x, y)]
        mine = [share(one & ~other & ~sets[:, z]) for z in rest]
        yours = [share(other & ~one & ~sets[:, z]) for z in rest]
        both = [min(pair) for pair in zip(mine, yours, strict=True) if math.isclose(*pair)]
        thirds.setdefault(kind, []).extend(both)
    stated = {(round(f.each, 12), round(f.alone, 12), round(f.both, 12)): f.third for f in oracle.favours}
    assert set(stated) == seen
    for kind, third in stated.items():
        assert third == 0 or any(math.isclose(third, found) for found in thirds[kind])
    p = oracle.channel.p
    odds = math.exp(oracle.epsilon)
    each = oracle.favours[0].each
    if not (isinstance(oracle, HadamardResponse)):
        assert p == pytest.approx(each * odds * oracle.favours[0].blanket(float(oracle.epsilon)))
    removed = oracle.loss(Distance.hamming()).remove
    assert isinstance(removed, AtomLaw)
    reveal = removed.atoms[1].p[-1]
    assert reveal == pytest.approx(max(f.alone for f in oracle.favours) * odds / (1 + (odds - 1) * each))


NOW = {1: (0.1824, 0.0530), 2: (0.5455, 0.1550), 4: (3.99, 0.6009)}
TABLE: dict[tuple[int, type[FrequencyOracle]], tuple[float, float]] = {
    (1, OLH): (0.102, 0.0294),
    (2, OLH): (0.274, 0.0798),
    (4, OLH): (0.944, 0.279),
    (1, HadamardResponse): (0.104, 0.0298),
    (2, HadamardResponse): (0.319, 0.0928),
    (4, HadamardResponse): (0.958, 0.284),
}


@pytest.mark.parametrize("case", list(TABLE))
@pytest.mark.parametrize("size", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_a_crowd_hides_more_by_the_oracles_own_shares(
    case: tuple[int, type[FrequencyOracle]], size: int
) -> None:
    """delta 1e-6; of clones at epsilon 4 and 10,000 people from .60 to .28."""
    epsilon, kind = case
    found = amplified(kind(epsilon=epsilon, categories=1000), 10 ** (3 + size), 1e-6)  # type: ignore[call-arg]
    assert found.upper == pytest.approx(TABLE[case][size], rel=0.02)
    assert 0.8 * found.upper < found.lower <= found.upper < 0.6 * NOW[epsilon][size]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "kind", "wanted"),
    [
        (1, OLH, (0.0084, 0.0024)),
        (2, OLH, (0.0231, 0.0066)),
        (4, OLH, (0.0813, 0.0236)),
        (2, HadamardResponse, (0.0269, 0.0077)),
        (4, HadamardResponse, (0.0829, 0.0240)),
    ],
)
def test_large_crowds(epsilon: int, kind: type[FrequencyOracle], wanted: tuple[float, float]) -> None:
    oracle = kind(epsilon=epsilon, categories=1000)  # type: ignore[call-arg]
    for people, value in zip((10**5, 10**6), wanted, strict=True):
        assert amplified_epsilon(oracle, people, 1e-6) == pytest.approx(value, rel=0.02)


def test_the_audit_finds_no_more_than_is_claimed() -> None:
    """Six people of three answers, counted without their order, at delta 1/100."""
    oracle = GRR(epsilon=2, categories=3)
    value, neighbour = [0, 2, 2, 2, 2, 2], [1, 2, 2, 2, 2, 2]
    code = lambda answers: (answers == 0).sum(axis=-1) + 10 * (answers == 1).sum(axis=-1)
    example = Example(
        mechanism=oracle, value=value, neighbour=neighbour, distance=Distance.hamming(), code=code
    )
    found = bound_epsilon(example, samples=200_000, delta=0.01, bits=SeededBits(5))
    claimed = amplified(oracle, 6, 0.01)
    assert 0.8 * claimed.lower < found.audited <= claimed.upper < 2


def test_reports_hide_among_those_of_their_cohort() -> None:
    oracle = Rappor(bits=16, hashes=2, cohorts=4, f=0.5, p=0.5, q=0.75)
    rows = oracle.encode(["a"], np.zeros(60, int), cohorts=[0] * 30 + [1] * 20 + [3] * 10)
    assert look_alike(oracle, rows) == 10
    assert look_alike(ORACLE, ORACLE.pack(ORACLE.sample(np.zeros(7, int)))) == 7


def test_reports_of_other_parameters_are_not_mixed() -> None:
    other = GRR(epsilon=1, categories=4)
    with pytest.raises(InvalidParameter, match="other parameters"):
        shuffle(encode(ORACLE, [0, 1]), encode(other, [0, 1]))
    with pytest.raises(InvalidParameter, match="nothing to shuffle"):
        shuffle()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"minimum": 0}, "'minimum'"),
        ({"epsilon": 1}, "'delta'"),
        ({"delta": 0.1}, "'delta'"),
        ({"epsilon": 0, "delta": 0.1}, "'epsilon'"),
        ({"epsilon": 1, "delta": 0}, "'delta'"),
    ],
)
def test_bad_rules_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        CrowdRule(**wrong)  # type: ignore[arg-type]
