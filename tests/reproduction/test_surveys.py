import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2

from sourdine.core.display import Figure
from sourdine.local import Survey
from sourdine.mechanisms import OneCoin, TwoCoins, Warner
from sourdine_reproduction import Result, Settings, Standing, find_experiments
from sourdine_reproduction.surveys import coins, endpoint, queries
from sourdine_reproduction.surveys.proportions import frequency, mean, root_mean_square
from tests.reproduction.results import number, table, verdict


@pytest.fixture(scope="module")
def result() -> Result:
    return find_experiments()["surveys"].run(Settings(quick=True))


def rows_of(figure: Figure) -> list[dict[str, float | str]]:
    rows: list[dict[str, float | str]] = json.loads(json.dumps(figure.chart))["datasets"]["rows"]
    return rows


@pytest.mark.slow
def test_open_questions_are_answered(result: Result) -> None:
    for name in ("biased", "variance", "others"):
        assert verdict(result, f"slides.{name}").standing is None
    assert "0.0274" in verdict(result, "slides.variance").finding  # sqrt(3/4000)


@pytest.mark.slow
def test_epsilons_of_the_surveys(result: Result) -> None:
    assert verdict(result, "slides.ln3").standing is Standing.REPRODUCED
    assert "1.0986" in verdict(result, "slides.ln3").finding
    assert verdict(result, "thesis.coin").standing is Standing.REPRODUCED
    assert verdict(result, "thesis.objection").finding == "ε is infinite"
    assert verdict(result, "thesis.warner").standing is Standing.WRONG
    assert "it has mean 0.5 and the printed one" in verdict(result, "notes.kary.estimate").finding


def test_a_biased_estimate_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    class Bent(TwoCoins):
        def sample(self, values: object, bits: object = None) -> np.ndarray:
            return Warner(truth=0.7).sample(values, bits)  # type: ignore[arg-type]

    monkeypatch.setitem(coins.TRIED, "two coins", Bent())
    found = coins.reproduce(Settings(quick=True)).verdicts
    assert found[0].finding.startswith("yes: mean error")


@pytest.mark.slow
def test_the_sample_size_of_queries(result: Result) -> None:
    found = verdict(result, "notes.queries")
    assert found.standing is Standing.WRONG
    assert "4,000" in found.statement.published
    assert found.finding == "37,010 for 95 %, 56,120 by Hoeffding"
    for _, by, _, error, _, exactly, _, measured, _ in table(result, "queries").rows:
        exact, seen = (float(str(cell).removesuffix(" %")) for cell in (exactly, measured))
        assert abs(exact - seen) < 25
        assert (float(error) > 1) == (by == "published")  # type: ignore[arg-type]
        assert exact < 3 if by == "published" else exact >= 95


@pytest.mark.slow
def test_splitting_epsilon_is_worse(result: Result) -> None:
    rows = table(result, "ways").rows
    alone, all_ten = (
        {number(row[1]): number(row[2]) for row in rows if row[0] == way} for way in queries.WAYS.values()
    )
    most = max(alone)
    assert alone[most] > 0.8
    assert all_ten[most] < 0.6


@pytest.mark.slow
def test_local_against_central(result: Result) -> None:
    found = verdict(result, "notes.factor")
    assert found.standing is Standing.REPRODUCED
    assert "4.68" in found.why
    for what, _, *cells in table(result, "shares").rows:
        trials, measured, lower, upper, formula = (float(cell) for cell in cells)  # type: ignore[arg-type]
        assert lower < measured < upper
        ratio = (measured / formula) ** 2  # times the trials, a chi-square where errors are normal
        if what == "central, people at hand":  # no normal law: its fourth moment is about 6
            assert abs(ratio - 1) < 5 * math.sqrt(5 / trials)
        else:
            assert 1e-6 < chi2.cdf(trials * ratio, trials) < 1 - 1e-6
    assert verdict(result, "notes.central").finding.startswith("2/(n²ε²); so 2.0e-06 ")


@pytest.mark.slow
def test_the_end_of_uniform_values(result: Result) -> None:
    for name in ("central", "local"):
        assert verdict(result, f"notes.end.{name}").standing is Standing.LOOSE
    error = {(row[0], row[1]): float(row[2]) for row in table(result, "ends").rows}  # type: ignore[arg-type]
    judged = [error[name, endpoint.JUDGED] for name in endpoint.METHODS]
    assert judged == sorted(judged)  # plain, curator, thresholds, mean, noisy maximum
    assert error["local, noisy maximum", 10_000] > error["local, noisy maximum", 1000] > 400


@pytest.mark.slow
def test_designs_and_people(result: Result) -> None:
    designs = {str(row[0]): row for row in table(result, "designs").rows}
    assert designs["one coin"][3] == math.inf
    assert designs["two coins"][1:] == pytest.approx(designs["Warner, truth 3/4"][1:])
    assert designs["the same at ε = ln 3"][3] == pytest.approx(math.log(3))
    assert designs["two coins"][4] == pytest.approx(100 * math.sqrt(0.75 / 1000))
    for name, _, normal, exact, surely in table(result, "people").rows:
        assert float(normal) * 0.99 < float(exact) < float(surely), name  # type: ignore[arg-type]


@pytest.mark.slow
def test_figures_show_what_their_titles_say(result: Result) -> None:
    first, second, *_ = (figure for section in result.sections for figure in section.figures)
    by_coin: dict[object, dict[object, float]] = {}
    for row in rows_of(first):
        by_coin.setdefault(row["coin"], {})[row["share"]] = float(row["variance"])
    fair = by_coin.pop("second coin says yes in 50 %")
    assert all(fair[share] < other[share] for other in by_coin.values() for share in fair)
    assert "1,068" in second.title


@pytest.mark.slow
def test_it_can_be_kept(result: Result, tmp_path: Path) -> None:
    names = {path.name for path in result.write(tmp_path)}
    assert {"surveys.html", "surveys_verdicts.csv", "surveys_queries.csv", "surveys_figure_6.png"} <= names


def test_measured_numbers_carry_their_error() -> None:
    assert mean([1.0, 3.0]) == pytest.approx((2.0, 0.0, 4.0))
    low, high = root_mean_square(np.tile([1.0, -2.0], 500))[1:]
    assert low < math.sqrt(2.5) < high
    assert frequency(0, 100).lower == 0
    assert frequency(0, 100).upper == pytest.approx(4 / 104)
    share = frequency(50, 100)
    assert (share.lower + share.upper) / 2 == pytest.approx(0.5)


def test_the_channel_of_one_coin() -> None:
    assert Survey.of(OneCoin()).channel == (1.0, 0.5)
