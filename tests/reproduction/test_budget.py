import math

import mpmath
import pytest

from sourdine.accounting import Bracket
from sourdine_reproduction import Result, Settings, Standing, find_experiments
from tests.reproduction.results import table, told, verdict, written


@pytest.fixture(scope="module")
def result() -> Result:
    return find_experiments()["budget"].run(Settings(quick=True))


def source(rate: float, noise: float, steps: int, delta: float, order: float) -> float:
    """The conversion of 2017 at any order, by integration in big numbers."""
    with mpmath.workdps(25):

        def ratio(z: mpmath.mpf) -> mpmath.mpf:
            likelihood = 1 - rate + rate * mpmath.exp((2 * z - 1) / (2 * noise**2))
            return likelihood**order * mpmath.npdf(z, 0, noise)

        moment = mpmath.quad(ratio, [-12 * noise, 0, 2, 4, 8, 14 * noise + order])
        return float((steps * mpmath.log(moment) - mpmath.log(delta)) / (order - 1))


@pytest.mark.slow
def test_the_printed_run_comes_out(result: Result) -> None:
    for claim, found in (
        ("steps", "14070"),
        ("rate", "0.1067"),
        ("order", "13"),
    ):
        one = verdict(result, f"thesis.{claim}")
        assert one.standing is Standing.REPRODUCED
        assert one.finding == found


@pytest.mark.slow
def test_the_printed_run_is_loose_for_poisson_and_understated_for_shuffled_batches(result: Result) -> None:
    printed = verdict(result, "thesis.epsilon")
    assert printed.standing is Standing.LOOSE
    assert printed.finding == "1.1663 by the same method; 0.6115 certified"
    shuffled = verdict(result, "thesis.batches")
    assert shuffled.standing is Standing.WRONG
    assert shuffled.finding.startswith("2.928 to 23.35 for the printed run; ")


@pytest.mark.slow
def test_two_rows_of_the_flowers_table_are_understated(result: Result) -> None:
    rows = table(result, "flowers").rows
    assert len(rows) == 13
    low = [row for row in rows if row[-1] == "wrong"]
    assert [(row[2], row[5]) for row in low] == [(120, 6.2), (105, 5.8)]
    assert low[0][6] == pytest.approx(source(64 / 6552, 1.0, 120 * 103, 1e-4, 3.8), abs=1e-3)
    assert low[1][6] == pytest.approx(source(64 / 6552, 1.0, 105 * 103, 1e-4, 4.0), abs=1e-3)
    assert [row[-1] for row in rows].count("reproduced") == 11
    assert verdict(result, "thesis.flowers.120").finding.startswith("7.33 ")
    assert verdict(result, "thesis.flowers.105").finding.startswith("6.81 ")
    assert verdict(result, "thesis.flowers.delta").standing is Standing.REPRODUCED


@pytest.mark.slow
def test_the_certified_column_lies_below_the_method_of_the_thesis(result: Result) -> None:
    for row in table(result, "flowers").rows:
        certified, shuffled = row[7], row[8]
        assert isinstance(certified, Bracket)
        assert isinstance(shuffled, Bracket)
        assert certified.upper < float(row[6])  # type: ignore[arg-type]
        assert shuffled.upper > 10 * certified.upper


@pytest.mark.slow
def test_readings_of_the_curves(result: Result) -> None:
    assert verdict(result, "thesis.batch").standing is Standing.REPRODUCED
    assert verdict(result, "thesis.size").standing is Standing.LOOSE
    assert verdict(result, "thesis.first").standing is Standing.REPRODUCED
    assert verdict(result, "thesis.price").standing is Standing.REPRODUCED


@pytest.mark.slow
def test_the_printed_gaussian_variance_fails_by_its_closed_form(result: Result) -> None:
    for epsilon, printed, found, textbook, also, least in table(result, "gaussian").rows:
        for sigma, delta in ((printed, found), (textbook, also), (least, 1e-5)):
            with mpmath.workdps(30):
                mu, e = 1 / mpmath.mpf(sigma), mpmath.mpf(epsilon)
                truth = mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)
            assert delta == pytest.approx(float(truth), rel=1e-3)
        assert float(printed) == pytest.approx(math.sqrt(float(textbook)))  # type: ignore[arg-type]
    assert verdict(result, "notes.gaussian").standing is Standing.WRONG
    assert verdict(result, "thesis.gaussian").standing is Standing.LOOSE


@pytest.mark.slow
def test_laplace_composition_and_groups(result: Result) -> None:
    assert verdict(result, "notes.laplace.largest").standing is Standing.REPRODUCED
    assert verdict(result, "notes.gaussian.largest").standing is Standing.WRONG
    assert verdict(result, "notes.sum").standing is Standing.LOOSE
    assert verdict(result, "notes.parallel").finding.startswith("1 ε if a person is added or removed, 2 ε")
    for size, epsilon, printed, tight in table(result, "groups").rows:
        assert float(printed) == pytest.approx(size * math.exp(epsilon) * 1e-6)  # type: ignore[arg-type, operator]
        assert tight == pytest.approx(1e-6 * math.expm1(float(epsilon)) / math.expm1(0.1), rel=1e-6)  # type: ignore[arg-type]


@pytest.mark.slow
def test_printed_formulas_understate(result: Result) -> None:
    rows = table(result, "formulas").rows
    assert [round(float(row[2]), 2) for row in rows[:2]] == [6.5, 6.5]  # type: ignore[arg-type]
    one = math.log(
        sum(
            math.comb(13, k) * (1 - 64 / 6e4) ** (13 - k) * (64 / 6e4) ** k * math.exp((k * k - k) / 2)
            for k in range(14)
        )
    )
    assert rows[2][2] == pytest.approx(one / 12, rel=1e-9)
    assert float(rows[2][1]) < 0  # type: ignore[arg-type]
    assert all(float(row[1]) < float(row[2]) for row in rows)  # type: ignore[arg-type]


@pytest.mark.slow
def test_quick_leaves_the_figures_out(result: Result) -> None:
    assert not any(section.figures for section in result.sections)


@pytest.mark.slow
def test_the_whole_experiment_has_every_curve() -> None:
    whole = find_experiments()["budget"].run(Settings())
    assert sum(len(section.figures) for section in whole.sections) == 8


@pytest.mark.slow
def test_the_documentation_has_these_verdicts(result: Result) -> None:
    assert told(result) == written("budget")
