import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sourdine.tables.quantiles import InverseSensitivity
from sourdine.tables.quantiles.api import Grid
from sourdine.tables.quantiles.theorems import Stated, Tail, histogram_error
from sourdine.testing import SeededBits
from sourdine_reproduction import Result, Settings, Standing, find_experiments
from sourdine_reproduction.quantiles import bounds, claims, repeated, salaries
from sourdine_reproduction.quantiles.claims import Trial
from sourdine_reproduction.quantiles.far import histogram_distance, histogram_ranks, inverse_ranks
from sourdine_reproduction.quantiles.measure import (
    METHODS,
    NORMAL,
    UNIFORM,
    mean_rmse,
    method_for,
    read_methods,
    read_pairs,
    rmse,
    thin,
    true_deciles,
)
from tests.reproduction.results import table, verdict


@pytest.fixture(scope="module")
def result() -> Result:
    return find_experiments()["quantiles"].run(Settings(quick=True))


@pytest.mark.slow
def test_published_theorems_that_fail(result: Result) -> None:
    for theorem in ("2.4.1.3", "2.4.1.4", "2.4.2.1", "2.5.0.1", "3.3.1.2", "3.3.2.1"):
        assert verdict(result, f"report.{theorem}").standing is Standing.WRONG
    for theorem in ("3.3.1.1", "3.3.2.2"):
        assert verdict(result, f"report.{theorem}").standing is Standing.LOOSE
    assert verdict(result, "report.least").finding == "10,824"


@pytest.mark.slow
def test_corrected_theorems_hold_and_say_something_somewhere(result: Result) -> None:
    rows = table(result, "theorems").rows
    assert {row[-1] for row in rows} == {"holds"}
    for theorem in ("2.4.1.3", "2.5.0.1", "3.3.1.1", "3.3.1.2", "3.3.2.1"):
        allowed = [str(row[4]).rpartition(" ")[2] for row in rows if row[0] == theorem]
        assert min(float(each) for each in allowed) < 0.01


def test_a_trial_tells_a_bound_that_fails_from_one_that_holds() -> None:
    distances = np.array([0.0] * 900 + [1.0] * 100)
    good, bad = Tail(0.5, 0.1), Tail(0.5, 0.01)
    assert Trial("x", "here", Stated(bad, good), distances).refuted
    assert Trial("x", "here", Stated(bad, good), distances).holds
    assert not Trial("x", "here", Stated(good, bad), distances).refuted
    assert not Trial("x", "here", Stated(good, bad), distances).holds
    assert Trial("x", "here", Stated(0.01, 0.1), distances).refuted
    assert Trial("x", "here", Stated(0.01, 0.1), distances).holds
    assert Trial("x", "here", Stated(bad, good), distances).row()[2:4] == ("P(> 0.5) ≤ 0.01", "0.1")


@pytest.mark.slow
def test_errors_on_uniform_values_are_those_known(result: Result) -> None:
    # means over many more samples, computed apart: histogram, inverse sensitivity, joint
    known = {1000: (0.0823, 0.0245, 0.0070), 5000: (0.0159, 0.0049, 0.00141)}
    for epsilon, n, *errors in table(result, "uniform").rows:
        if epsilon == 1.0 and n in known:
            assert errors == pytest.approx(known[n], rel=0.35)  # type: ignore[index]
    assert verdict(result, "report.fit.histogram").standing is Standing.OTHERWISE
    assert verdict(result, "report.fit.inverse").standing is Standing.REPRODUCED
    assert verdict(result, "report.common").standing is Standing.REPRODUCED  # up to 10^8, as the source says
    assert verdict(result, "report.asymptotic").standing is Standing.WRONG
    assert verdict(result, "report.normal").standing is Standing.REPRODUCED  # the histogram is less good
    for name in ("closer", "order", "small", "twenty"):  # on a made-up register
        assert verdict(result, f"report.salaries.{name}").standing is Standing.UNTESTED


@pytest.mark.parametrize("size", [1e6, 1e20])
def test_ranks_of_very_many_values_are_those_of_a_simulation(size: float) -> None:
    bits, trials, width = np.random.default_rng(3), 20_000, math.log(size) / 1.5
    below = np.arange(-math.ceil(600 / width), math.ceil(600 / width)) * width
    above = below + bits.laplace(0, 36, (trials, len(below))) > bits.laplace(0, 18, (trials, 1))
    found = math.sqrt((below[above.argmax(axis=1)] ** 2).mean())
    assert histogram_ranks(size, 1.0) == pytest.approx(found, rel=0.03)
    steps = bits.geometric(1 - math.exp(-1 / 18), (2, 200_000))
    assert inverse_ranks(1.0) == pytest.approx(float((steps[0] - steps[1]).std()), rel=0.01)


def test_a_mean_distance_by_blocks_of_cut_points_is_that_of_a_simulation() -> None:
    bits, size, epsilon, trials = np.random.default_rng(4), 20_000, 0.1, 1000
    cuts = np.arange(1, round(1.5 * size / math.log(size)) + 1) * math.log(size) / (1.5 * size)
    noise = bits.laplace(0, 36 / epsilon / size, (trials, len(cuts)))
    above = cuts + noise > 0.5 + bits.laplace(0, 18 / epsilon / size, (trials, 1))
    found = float(np.abs(cuts[above.argmax(axis=1)] - 0.5).mean())
    assert histogram_distance(size, epsilon, decile=5) == pytest.approx(found, rel=0.05)
    stated = histogram_error(10**12, 3.5e-9, decile=5).published  # at the least epsilon that it allows
    assert histogram_distance(1e12, 3.5e-9, decile=5) > 1.05 * stated


@pytest.mark.slow
def test_the_joint_mechanism_is_closest_everywhere(result: Result) -> None:
    for name in ("uniform", "uniform_by_epsilon", "normal", "salaries"):
        shown = table(result, name)
        places = [shown.columns.index(method) for method in METHODS]
        for row in shown.rows:
            mine, theirs, best = (float(row[place]) for place in places)  # type: ignore[arg-type]
            assert best < theirs < mine


@pytest.mark.slow
def test_repeated_values_break_inverse_sensitivity_only(result: Result) -> None:
    last = table(result, "repeated").rows[-1]
    share, counts, lost, narrow, wide, best = (float(cell) for cell in last)  # type: ignore[arg-type]
    assert share == 1
    assert best < narrow < wide < counts < lost / 50
    assert verdict(result, "report.uniform").standing is Standing.REPRODUCED


@pytest.mark.slow
def test_without_data_there_are_no_published_curves(result: Result) -> None:
    assert not any("published" in column for column in table(result, "normal").columns)
    assert "points of the curves" not in verdict(result, "report.figure2").finding
    assert sum(len(section.figures) for section in result.sections) == 6


@pytest.mark.slow
def test_the_page_is_written_with_its_tables(result: Result, tmp_path: Path) -> None:
    kept = result.write(tmp_path)
    assert kept[0].name == "quantiles.html"
    page = kept[0].read_text(encoding="utf-8")
    assert "half of its scale" in page
    assert (tmp_path / "quantiles_fits.csv").read_text(encoding="utf-8").startswith("method,as printed")


def write_curves(folder: Path) -> None:
    """Curves of the form that the source's have, with numbers of our own."""
    seeds = folder / "seed-figures"
    seeds.mkdir()
    rows = "".join(
        f"{method},{n},{c / n}\n"
        for n in range(100, 5001, 100)
        for method, c in (("histogram", 35), ("inverse", 20))
    )
    for law in ("fig3-uniform", "fig4-normal"):
        for epsilon in ("1", "0.5"):
            (seeds / f"{law}-eps{epsilon}.csv").write_text(f"method,n,rmse\n{rows}", encoding="utf-8")
    (seeds / "fig2-histogram-bound-eps1.dat").write_text("910 0.676131\n7980 0.0313518\n\n", encoding="utf-8")


def test_published_curves_are_read_where_they_are(tmp_path: Path) -> None:
    assert read_methods(tmp_path, "fig3-uniform-eps1.csv") == {}
    assert read_pairs(None, "fig2-histogram-bound-eps1.dat") is None
    write_curves(tmp_path)
    curves = read_methods(tmp_path, "fig3-uniform-eps1.csv")
    assert list(curves) == ["histogram", "inverse sensitivity"]
    sizes, errors = curves["histogram"]
    assert errors == pytest.approx(35 / sizes)
    points = thin(curves["histogram"])
    assert len(points) <= 24
    assert all(error == pytest.approx(35 / n, rel=0.05) for n, error in points)
    pairs = read_pairs(tmp_path, "fig2-histogram-bound-eps1.dat")
    assert pairs is not None
    assert pairs[0].tolist() == [910, 7980]


def test_the_published_bounds_agree_with_their_curve(tmp_path: Path) -> None:
    write_curves(tmp_path)
    first = bounds.reproduce(Settings(data=tmp_path)).verdicts[0]
    assert first.finding.endswith("1 points of the curves agree to 1e-05")


def test_the_register_has_the_published_deciles() -> None:
    for size in (400_000, 20_000):
        people = salaries.register(size)
        assert [int(people[i * size // 10 - 1]) for i in range(1, 10)] == list(salaries.PUBLISHED)
        assert np.all(np.diff(people) >= 0)
        assert np.all(people == np.rint(people))
        assert people.min() >= 0
        assert people.max() <= salaries.BOUNDS[1]


def test_samples_follow_their_laws() -> None:
    values = NORMAL.sample(40_000, SeededBits(1))
    assert abs(values.mean()) < 5 / math.sqrt(40_000)
    assert values.std() == pytest.approx(1, abs=0.02)
    assert true_deciles(np.arange(1.0, 26.0)).tolist() == [3, 5, 8, 10, 13, 15, 18, 20, 23]
    people = repeated.crowd(0.5, SeededBits(2))
    assert (people == repeated.SHARED).sum() == repeated.SIZE // 2
    assert np.median(people) == repeated.SHARED


def test_errors_are_root_mean_squares_over_the_deciles() -> None:
    values = np.linspace(0.0, 1.0, 1001)
    grid = Grid.declared((0.0, 1.0), 1e-3)
    exact = InverseSensitivity(epsilon=Fraction(10**5), levels=method_levels(), places=grid.places)
    assert rmse(exact, values, grid, 3, SeededBits(1)).tolist() == pytest.approx([0, 0, 0], abs=1e-9)
    naive = method_for("histogram", grid.places, 1e-4, 1001)
    assert rmse(naive, values, grid, 50, SeededBits(1)).mean() > 0.3
    small = mean_rmse("inverse sensitivity", UNIFORM, 2000, 8.0, samples=3, bits=SeededBits(3))
    large = mean_rmse("inverse sensitivity", UNIFORM, 2000, 0.5, samples=3, bits=SeededBits(3))
    assert small < large / 4


def method_levels() -> tuple[Fraction, ...]:
    return tuple(Fraction(i, 10) for i in range(1, 10))


@pytest.mark.slow
def test_the_whole_experiment_with_curves(tmp_path: Path) -> None:
    write_curves(tmp_path)
    whole = find_experiments()["quantiles"].run(Settings(data=tmp_path))
    assert any("published" in column for column in table(whole, "normal").columns)
    assert all(row[-1] == "holds" for row in table(whole, "theorems").rows)
    assert claims.reproduce(Settings()).verdicts[0].statement.name == "report.naive"
