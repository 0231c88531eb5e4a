"""Signs of made-up reports: bounds that hold, no alarm for honest people, and one for each crude attack."""

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sourdine.local import (
    GRR,
    OLH,
    OUE,
    SUE,
    Duchi,
    HadamardResponse,
    Oracle,
    Piecewise,
    ProjectiveGeometry,
    SubsetSelection,
)
from sourdine.local.frequency.supports import CodedOracle
from sourdine.local.poisoning import RowWatch, Sign, alarms, attackers_reach, signs_of_counts, signs_of_rows
from sourdine.local.poisoning import signs as module
from sourdine.local.rappor import BasicRappor
from sourdine.testing import SeededBits
from tests.laws import law_of

RAPPOR = BasicRappor(categories=40, f=Fraction(1, 2), p=Fraction(1, 4), q=Fraction(3, 4))
CODED: list[Any] = [
    OLH(epsilon=1, categories=7, groups=3),
    OLH(epsilon=1, categories=7, groups=3, trivial=False),
    OLH(epsilon=2, categories=11, groups=9, trivial=False),
    HadamardResponse(epsilon=1, categories=6, blocks=1),
    HadamardResponse(epsilon=1, categories=6, blocks=1, trivial=False),
    HadamardResponse(epsilon=2, categories=8, blocks=3),
    ProjectiveGeometry(epsilon=1, categories=11, order=3),
]


def signs(oracle: Oracle, reports: np.ndarray) -> tuple[Sign, ...]:
    return (*signs_of_counts(oracle, oracle.tally(reports)), *signs_of_rows(oracle, oracle.pack(reports)))


@pytest.mark.parametrize("oracle", CODED, ids=str)
def test_what_a_report_supports_by_enumeration(oracle: Any) -> None:
    """Sizes, means and variances against the true law of every answer, and the likeliest report."""
    sizes = np.array([oracle.supports(oracle.tally(np.array([code]))).sum() for code in range(oracle.codes)])
    assert oracle.support_sizes().tolist() == sizes.tolist()
    laws = np.array(
        [list(dict(sorted(law_of(oracle, x).items())).values()) for x in range(oracle.categories)]
    )
    means, squares = laws @ sizes, laws @ sizes**2
    known = module._support_law(oracle)
    assert known is not None
    assert (known.least, known.most) == pytest.approx((means.min(), means.max()))
    assert known.variance == pytest.approx((squares - means**2).max(), abs=1e-9)
    assert known.reach >= np.abs(sizes - means[:, None]).max() - 1e-9
    sign = module._commonest(oracle, oracle.tally(np.zeros(1000, np.int64)))
    assert sign is not None
    likeliest = laws.max()
    if isinstance(oracle, OLH):
        likeliest = laws.reshape(oracle.categories, -1, oracle.groups).sum(axis=2).max()
    if isinstance(oracle, HadamardResponse):
        blocks = laws.reshape(oracle.categories, oracle.blocks, -1)
        likeliest = (blocks / blocks.sum(axis=2, keepdims=True)).max()
    assert float(sign.expected.split()[3].replace(",", "")) == pytest.approx(1000 * likeliest, rel=1e-3)


@pytest.mark.parametrize("oracle", [OUE(epsilon=1, categories=5), SubsetSelection(epsilon=1, categories=6)])
def test_the_likeliest_row_by_enumeration(oracle: Any) -> None:
    most = max(max(law_of(oracle, x).values()) for x in range(oracle.categories))
    assert np.exp(module._log_likeliest_row(oracle)) == pytest.approx(most)


def test_weights_of_rows_by_enumeration() -> None:
    oracle = OUE(epsilon=1, categories=6)
    law: dict[int, float] = {}
    for row, chance in law_of(oracle, 2).items():
        law[bin(row).count("1")] = law.get(bin(row).count("1"), 0.0) + chance
    for ones in range(7):
        rows = np.packbits(np.arange(8) < ones)[None]
        tails = [sum(law[i] for i in range(7) if i >= ones), sum(law[i] for i in range(7) if i <= ones)]
        assert signs_of_rows(oracle, rows)[1].chance == pytest.approx(min(1.0, 2 * 1 * 2 * min(tails)))


HONEST: list[Any] = [
    GRR(epsilon=1, categories=5),
    OUE(epsilon=1, categories=12),
    SUE(epsilon=3, categories=4),
    SubsetSelection(epsilon=1, categories=12),
    *CODED,
    RAPPOR,
]


@pytest.mark.parametrize("oracle", HONEST, ids=str)
def test_honest_people_raise_no_alarm_and_chances_are_no_larger_than_stated(oracle: Any) -> None:
    """In 60 surveys of people with one answer, or all; a chance below 0.02 comes in at most 2 % of them."""
    seen: dict[str, list[float]] = {}
    for seed in range(60):
        values = np.arange(400) % oracle.categories if seed % 2 else np.full(400, seed % oracle.categories)
        for sign in signs(oracle, oracle.sample(values, SeededBits(seed))):
            assert not sign.alarm
            seen.setdefault(sign.name, []).append(sign.chance)
    for chances in seen.values():
        assert (np.array(chances) < 0.02).mean() < 0.02 + 5 * (0.02 / 60) ** 0.5


PEOPLE, CROWD = 99_000, 1000
ATTACKS: dict[str, tuple[Any, Any]] = {
    "seed 0, response 0": (OLH(epsilon=1, categories=100), 0),
    "column 0": (HadamardResponse(epsilon=1, categories=100), 0),
    "one seed": (OLH(epsilon=1, categories=100, trivial=False), 77),
    "one column": (HadamardResponse(epsilon=1, categories=100, trivial=False), 5),
    "one column of several blocks": (HadamardResponse(epsilon=3, categories=100), 117),
    "one point": (ProjectiveGeometry(epsilon=1, categories=100), 9),
    "target bit alone, optimal": (OUE(epsilon=1, categories=100), [7]),
    "target bit alone, symmetric": (SUE(epsilon=1, categories=100), [7]),
    "all bits, optimal": (OUE(epsilon=1, categories=100), range(100)),
    "all bits, symmetric": (SUE(epsilon=1, categories=100), range(100)),
    "no bit": (OUE(epsilon=1, categories=100), []),
    "all bits, RAPPOR": (RAPPOR, range(40)),
    "equal rows, padded to the mean": (OUE(epsilon=1, categories=100), range(27)),
    "equal rows of a subset": (SubsetSelection(epsilon=1, categories=100), range(27)),
    "one code": (Piecewise(epsilon=1, lower=0, upper=1), 226),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_one_percent_of_crude_poisoners_is_flagged(attack: str) -> None:
    oracle, sent = ATTACKS[attack]
    values = np.random.default_rng(1).zipf(1.5, PEOPLE) % 100
    honest = oracle.sample(values / 100 if isinstance(oracle, Piecewise) else values, SeededBits(1))
    if isinstance(sent, int):
        crowd = np.full(CROWD, sent)
    else:
        crowd = np.repeat(np.packbits(np.isin(np.arange(oracle.categories), list(sent)))[None], CROWD, axis=0)
    assert alarms(signs(oracle, honest)) == []
    found = alarms(signs(oracle, np.concatenate([honest, crowd])))
    assert found
    assert all("honest reports have" in sentence for sentence in found)


@pytest.mark.parametrize("bits", [[7], range(100)], ids=["target alone", "all"])
def test_counts_alone_tell_of_unary_poisoners(bits: Any) -> None:
    """Counts are all that a collector may keep: 1 % of them show there too."""
    oracle = OUE(epsilon=1, categories=100)
    counts = oracle.tally(oracle.sample(np.arange(20_000) % 100, SeededBits(1)))
    crowd = np.repeat(np.packbits(np.isin(np.arange(100), list(bits)))[None], 200, axis=0)
    assert alarms(signs_of_counts(oracle, counts)) == []
    assert len(alarms(signs_of_counts(oracle, counts + oracle.tally(crowd)))) == 1


def test_what_no_test_sees_is_within_reach() -> None:
    """Poisoners of k-ary response send what honest people send; how far they came is stated all the same."""
    oracle = GRR(epsilon=1, categories=100)
    honest = oracle.sample(np.zeros(PEOPLE, np.int64), SeededBits(1))
    reports = np.concatenate([honest, np.full(CROWD, 42)])
    assert alarms(signs(oracle, reports)) == []
    estimate = oracle.estimate(oracle.tally(reports))
    assert estimate.value[42] > 0.4
    assert attackers_reach(oracle, estimate, 0.01).lower[42] == 0.0


@pytest.mark.parametrize("oracle", [GRR(epsilon=1, categories=4), Duchi(epsilon=1, lower=0, upper=1)])
def test_nothing_is_said_without_reports_or_without_a_test(oracle: Any) -> None:
    empty = oracle.tally(np.zeros(0, np.int64))
    assert signs_of_counts(oracle, empty) == ()
    assert signs_of_rows(oracle, np.zeros((0, 1), np.uint8)) == ()
    assert signs_of_rows(oracle, np.zeros((3, 1), np.uint8)) == ()


def test_a_share_that_no_people_have_is_flagged() -> None:
    oracle = GRR(epsilon=1, categories=4)
    assert len(alarms(signs_of_counts(oracle, oracle.tally(np.zeros(1000, np.int64))))) == 1


def test_rows_are_watched_as_they_come_and_no_more_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = OUE(epsilon=1, categories=100)
    rows = oracle.sample(np.arange(500) % 100, SeededBits(1))
    watch = RowWatch(oracle)
    assert watch.signs() == ()
    for part in np.array_split(rows, 7):
        watch.add(part)
    assert watch.signs() == signs_of_rows(oracle, rows)
    monkeypatch.setattr(module, "_MOST_BYTES", 13 * 100)
    short = RowWatch(oracle)
    for part in itertools.chain(np.array_split(rows, 7)):
        short.add(part)
    assert short.signs() == signs_of_rows(oracle, rows[:100])


def test_counts_beyond_what_is_worth_working_out_have_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CODES", 4)
    oracle = OLH(epsilon=1, categories=7)
    assert isinstance(oracle, CodedOracle)
    names = [sign.name for sign in signs_of_counts(oracle, oracle.tally(np.arange(9)))]
    assert "Categories that a report supports on average" not in names
