"""Intervals of rows that noise chose: valid given the selection, or for all declared keys at once."""

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import mpmath
import numpy as np
import pyarrow as pa
import pytest

import sourdine as sd
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Mechanism
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.tables import Query, TableRelease
from sourdine.tables.intervals import LinearNoise, half_width, interval_above
from sourdine.tables.publication import Record
from sourdine.tables.synthetic import from_release
from sourdine.testing import SeededBits

KEYS = 400
NAMES = [f"k{place:03}" for place in range(KEYS)]
COLUMNS = {
    "k": {"type": "category", "keys": NAMES},
    "sex": {"type": "category", "keys": ["f", "m"]},
    "pay": {"type": "integer", "lower": 0, "upper": 10},
}
CONSTANT = "SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) > 12"
LARGEST = "SELECT k, COUNT(*) AS n FROM t GROUP BY k ORDER BY n DESC LIMIT 20"


def masses_of_laplace(scale: float) -> tuple[np.ndarray, np.ndarray]:
    """The law of discrete Laplace noise by its definition, to a mass of e^-60."""
    reach = math.ceil(60 * scale) + 2
    places = np.arange(-reach, reach + 1)
    masses = np.exp(-np.abs(places) / scale)
    return places, masses / masses.sum()


def masses_of_gaussian(sigma: float) -> tuple[np.ndarray, np.ndarray]:
    """The law of discrete Gaussian noise by its definition."""
    reach = math.ceil(12 * sigma)
    places = np.arange(-reach, reach + 1)
    masses = np.exp(-(places**2) / (2 * sigma**2))
    return places, masses / masses.sum()


def twice(law: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The law of the sum of two."""
    places, masses = law
    return np.arange(2 * places[0], 2 * places[-1] + 1), np.convolve(masses, masses)


LAWS: dict[str, tuple[Mechanism, int, tuple[np.ndarray, np.ndarray]]] = {
    "Laplace 0.7": (Laplace(scale=0.7), 1, masses_of_laplace(0.7)),
    "Laplace 2": (Laplace(scale=2), 1, masses_of_laplace(2)),
    "Laplace 50": (Laplace(scale=50), 1, masses_of_laplace(50)),
    "two of Laplace 9": (Laplace(scale=9), 2, twice(masses_of_laplace(9))),
    "Gaussian 9": (Gaussian(sigma=9), 1, masses_of_gaussian(9)),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_coverage_given_a_threshold_is_that_of_the_law(name: str, confidence: float) -> None:
    """Summed over all outcomes that are shown, for every true number around the threshold."""
    mechanism, terms, (places, masses) = LAWS[name]
    noise, threshold = LinearNoise(mechanism, np.ones(terms)), 30
    spread = math.sqrt(float((masses * places**2).sum()))
    for truth in range(0, 30 + math.ceil(4 * spread), max(1, round(spread / 3))):
        shown = truth + places >= threshold
        values, law = (truth + places[shown]).astype(float), masses[shown] / masses[shown].sum()
        lower, upper = interval_above(values, threshold - 0.5, noise, confidence, 0.0)
        assert ((lower <= values) & (values <= upper)).all()
        covered = float(law[(lower <= truth) & (truth <= upper)].sum())
        assert covered >= confidence - 1e-4, (truth, covered)


def test_intervals_of_the_usual_kind_miss_where_only_noise_passes() -> None:
    places, masses = masses_of_laplace(2)
    shown = places >= 13
    law, reach = masses[shown] / masses[shown].sum(), Laplace(scale=2).error(0.95)
    assert float(law[places[shown] - reach <= 0].sum()) < 0.05


def test_far_above_the_threshold_an_interval_is_the_usual_one() -> None:
    noise = LinearNoise(Laplace(scale=3), np.ones(1))
    lower, upper = interval_above(np.array([1000.0]), 12.5, noise, 0.95, 0.0)
    reach = Laplace(scale=3).error(0.95)
    assert abs(1000 - lower[0] - reach) <= 1.001
    assert abs(upper[0] - 1000 - reach) <= 1.001


def weighted_tail(weights: tuple[float, ...], x: float) -> mpmath.mpf:
    """P[|sum of weights times Laplace noises| > x], by partial fractions in 60 digits."""
    with mpmath.workdps(60):
        total = mpmath.mpf(0)
        for one in weights:
            part = mpmath.exp(-mpmath.mpf(x) / one)
            for other in weights:
                if other != one:
                    part *= mpmath.mpf(one) ** 2 / (mpmath.mpf(one) ** 2 - mpmath.mpf(other) ** 2)
            total += part
        return total


@pytest.mark.parametrize(
    "weights", [(1, 0.5), (1, 0.8), (1, 0.3, 0.29), (1, 0.95, 0.1), (5, 3, 2.9, 2.8, 2.7)]
)
@pytest.mark.parametrize("keys", [20, 2_000, 1 << 24])
def test_sums_with_unlike_weights_stay_within_a_bound_however_many_keys(
    weights: tuple[float, ...], keys: int
) -> None:
    level = 1 - 0.05 / keys
    reach = float(half_width(Laplace(scale=1 << 16), weights, level)) / (1 << 16)
    tail = weighted_tail(weights, reach)
    assert tail <= 1 - level
    assert tail >= (1 - level) / 6  # not much wider than it need be


DRAWS = np.random.default_rng(8)
SIZES = DRAWS.poisson(2, KEYS) + (DRAWS.random(KEYS) < 0.1) * DRAWS.integers(0, 25, KEYS)
PLACES = np.repeat(np.arange(KEYS), SIZES)
PAY = np.arange(len(PLACES)) % 11
TRUTH = {
    "count": np.bincount(PLACES, minlength=KEYS),
    "sum of pay": np.bincount(PLACES, weights=np.minimum(PAY, 10), minlength=KEYS),
}


@pytest.fixture(scope="module")
def people() -> sd.Table:
    keys, sexes = np.array(NAMES)[PLACES], np.array(["f", "m"])[np.arange(len(PLACES)) % 2]
    return sd.Table(pa.table({"k": keys, "sex": sexes, "pay": PAY}), unit="person", columns=COLUMNS)


@pytest.fixture
def releases(people: sd.Table, tmp_path: Path) -> Iterator[Callable[..., list[TableRelease]]]:
    """Releases of a question with seeds of their own, from a ledger that never ends."""
    ledger = sd.Ledger.create(tmp_path / "people.ledger", epsilon=1 << 30)

    def release(sql: str, many: int) -> list[TableRelease]:
        plan = people.plan(people.sql(sql), epsilon=0.5, quality=False)
        return [people.release(plan, ledger, bits=SeededBits(seed)) for seed in range(many)]

    yield release
    ledger.close()


def test_what_the_choice_of_rows_depends_on_decides_the_intervals(people: sd.Table) -> None:
    def notes(sql: str, **more: object) -> list[str]:
        plan = people.plan(people.sql(sql), epsilon=1, quality=False, **more)  # type: ignore[arg-type]
        return [each.note.split(" keys")[0] for each in plan.intervals.values()]

    given, of_all = "intervals given that the row is shown", f"intervals for all {KEYS}"
    assert notes("SELECT k, COUNT(*) FROM t GROUP BY k ORDER BY COUNT(*)") == []
    assert notes(CONSTANT) == [given]
    assert notes(CONSTANT.replace(">", ">=") + " AND k <> 'k003'") == [given]
    assert notes("SELECT k, SUM(pay) FROM t GROUP BY k HAVING SUM(pay) > 40") == [given]
    assert notes(LARGEST) == [of_all]
    # a mean and a sum of one column share noise, a count by itself has its own
    shared = "SELECT k, COUNT(*) AS n, SUM(pay) AS s, AVG(pay) AS m FROM t GROUP BY k "
    assert sorted(notes(shared + "HAVING COUNT(*) > 12")) == ["", "", given]
    assert sorted(notes(shared + "HAVING AVG(pay) > 5 ORDER BY k LIMIT 3")) == ["", of_all, of_all]
    # for what is kept below a threshold Laplace noise may leave an interval without an end
    assert notes(CONSTANT.replace(">", "<")) == [of_all]
    assert notes(CONSTANT.replace("> 12", "= 12")) == [of_all]
    assert notes("SELECT k, COUNT(*) FROM t GROUP BY k HAVING k <> 'k001'") == [""]
    assert notes("SELECT k, COUNT(*) FROM t GROUP BY k ORDER BY k LIMIT 5") == [""]
    assert notes(f"SELECT k, COUNT(*) AS n FROM t GROUP BY k ORDER BY n LIMIT {KEYS}") == []


def test_forecasts_are_of_the_intervals_that_will_be_shown(people: sd.Table) -> None:
    (usual,) = people.plan(people.sql("SELECT k, COUNT(*) FROM t GROUP BY k"), epsilon=1).forecast()
    (wide,) = people.plan(people.sql(LARGEST), epsilon=1).forecast()
    assert usual.error is not None
    assert wide.error is not None
    # b ln(K / alpha) for b ln(1 / alpha), within a step of rounding
    assert abs(wide.error / usual.error - math.log(KEYS / 0.05) / math.log(1 / 0.05)) < 0.4
    assert "for all 400 keys at once" in wide.note


@pytest.mark.parametrize(
    "sql",
    [CONSTANT, LARGEST, "SELECT k, SUM(pay) FROM t GROUP BY k HAVING SUM(pay) > 80"],
    ids=["count above", "largest", "sum above"],
)
def test_few_releases_show_rows_that_are_covered(
    sql: str, releases: Callable[..., list[TableRelease]]
) -> None:
    """Each shown row misses with a probability of 0.05 at most, independently where HAVING keeps it."""
    shown = covered = 0
    for release in releases(sql, 12):
        (answer,) = release.values.each
        truth = TRUTH["count" if "COUNT" in sql else "sum of pay"]
        for (key,), _, lower, upper in answer.rows():
            shown, covered = shown + 1, covered + (lower <= truth[int(str(key)[1:])] <= upper)
    assert shown > 150
    assert covered / shown >= 0.95 - 4.9 * math.sqrt(0.95 * 0.05 / shown)  # at a rate of 1e-6


def test_sums_over_groups_that_may_be_hidden_are_refused_before_the_charge(people: sd.Table) -> None:
    share = "SELECT k, COUNT(*) / SUM(COUNT(*)) OVER () AS part FROM t WHERE k IS NOT NULL GROUP BY k "
    for text in (share + "HAVING COUNT(*) > 12", share + "ORDER BY k LIMIT 3"):
        with pytest.raises(InvalidParameter, match="shares of a total"):
            people.plan(people.sql(text), epsilon=1)
    block = {"name": "q", "ask": [{"contingency": ["k", "sex"]}], "show": {"limit": 2}}
    for ask in (block, {**block, "show": {"having": [{"of": "k by sex", "sign": ">", "value": 1}]}}):
        with pytest.raises(InvalidParameter, match="sums over its groups"):
            people.plan(Query.read(ask), epsilon=1)


def test_a_crosstab_of_rows_that_noise_chose_has_no_sums(
    people: sd.Table, releases: Callable[..., list[TableRelease]]
) -> None:
    (release,) = releases("SELECT k, sex, COUNT(*) FROM t GROUP BY k, sex HAVING COUNT(*) > -1000", 1)
    crosstab = release.crosstab("k", "sex")
    assert len(crosstab.row_keys) == KEYS
    assert "all" not in (*crosstab.row_keys, *crosstab.column_keys)
    assert any("given that the row is shown" in each for each in crosstab.notes)


def test_files_and_pages_tell_what_the_intervals_are(
    releases: Callable[..., list[TableRelease]], tmp_path: Path
) -> None:
    (release,) = releases(LARGEST, 1)
    assert "intervals for all 400 keys at once" in release.values.csv().splitlines()[1]
    assert json.loads(release.values.json())["rows"][0]["note"] == "intervals for all 400 keys at once"
    release.write(tmp_path / "published", tmp_path / "people.ledger")
    record = Record.from_json((tmp_path / "published" / "release.json").read_text())
    (again,) = record.answers.each
    assert again.hidden
    assert again.selection == release.values.each[0].selection
    assert "intervals for all 400 keys at once" in (tmp_path / "published" / "report.html").read_text()


def test_rows_that_noise_chose_make_no_synthetic_table(releases: Callable[..., list[TableRelease]]) -> None:
    (release,) = releases("SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) > -1000", 1)
    assert len(release.values.each[0].keys) == KEYS
    with pytest.raises(InvalidParameter, match="no counts of all records"):
        from_release(release)


def test_keys_that_were_chosen_are_bounded_by_what_is_declared() -> None:
    keys = np.repeat([f"k{place:03}" for place in range(30)], 100)
    columns = {"k": {"type": "text"}}
    sized = sd.Table(pa.table({"k": keys}), unit="person", columns=columns, size=3000)
    bare = sd.Table(pa.table({"k": keys}), unit="person", columns=columns)
    for people, most in ((sized, 3001), (bare, (1 << 24) + 1)):
        plan = people.plan(people.sql(LARGEST), epsilon=1, delta=1e-6)
        assert [each.keys for each in plan.intervals.values()] == [most]
        having = people.plan(people.sql(CONSTANT), epsilon=1, delta=1e-6, selection_delta=1e-6)
        assert [each.note for each in having.intervals.values()] == ["intervals given that the row is shown"]
