import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from sourdine.core.display import Figure
from sourdine.local.rappor import Rappor
from sourdine.testing import SeededBits
from sourdine_reproduction import Result, Settings, Standing, find_experiments
from sourdine_reproduction.rappor import exponential_law, home_pages, normal_law, one_life, processes
from sourdine_reproduction.rappor.collecting import Finds, WordLaw, collect, spread
from tests.reproduction.results import table, verdict

T = TypeVar("T")


@pytest.fixture(scope="module")
def result() -> Result:
    return find_experiments()["rappor"].run(Settings(quick=True))


def figures(result: Result) -> list[Figure]:
    return [figure for section in result.sections for figure in section.figures]


def rows_of(figure: Figure) -> list[dict[str, float | str | None]]:
    sets = figure.chart["datasets"]
    assert isinstance(sets, dict)
    rows: list[dict[str, float | str | None]] = sets["rows"]
    return rows


def numbers(rows: list[dict[str, float | str | None]], field: str) -> np.ndarray:
    return np.array([row[field] for row in rows], float)


@pytest.mark.slow
def test_epsilons_are_those_of_the_source(result: Result) -> None:
    assert verdict(result, "rappor.processes.epsilon").standing is Standing.REPRODUCED
    assert verdict(result, "rappor.pages.epsilon").standing is Standing.REPRODUCED
    assert verdict(result, "rappor.ln3").finding.startswith("1.0986 for one bit a value and f = 0; ")
    assert "ε₁ = 1.075, ε∞ = 4.395" in verdict(result, "rappor.ln3").finding
    rows = {str(row[0]): row[1:] for row in table(result, "costs").rows}
    assert rows["endlessly many"] == pytest.approx((8 * math.log(3), 4 * math.log(3)))
    star = math.log(11 / 16 * 7 / 16 / (9 / 16 * 5 / 16))  # q* = 11/16 and p* = 9/16
    assert rows["1"] == pytest.approx((4 * star, 2 * star))


@pytest.mark.slow
def test_the_life_of_a_report(result: Result) -> None:
    rows = rows_of(figures(result)[0])
    ones = {
        stage: [row for row in rows if row["stage"] == stage] for stage in ("filter", "permanent", "report")
    }
    assert [row["kind"] for row in ones["filter"]] == [one_life.SET] * 4
    # binomial numbers of ones: 252 bits at 1/4 and 4 at 3/4; then 9/16 and 11/16
    assert abs(len(ones["permanent"]) - 66) < 5 * math.sqrt(256 * 3 / 16)
    assert abs(len(ones["report"]) - 144.5) < 5 * math.sqrt(256 / 4)
    shown = sum(row["kind"] == one_life.SET for row in ones["report"])
    assert f"shows {shown} among {len(ones['report'])} ones" in figures(result)[0].title


@pytest.mark.slow
def test_a_normal_law_appears_with_reports(result: Result) -> None:
    assert verdict(result, "rappor.normal").standing is Standing.REPRODUCED
    for reports, error, formula, height, _, _ in table(result, "normal").rows:
        # 101 squared errors in units of a deviation that is nearly 2/sqrt(n): a chi-square
        assert float(error) / float(formula) == pytest.approx(1, abs=5 / math.sqrt(2 * 101))  # type: ignore[arg-type]
        assert formula == pytest.approx(2 / math.sqrt(float(reports)), rel=0.02)  # type: ignore[arg-type]
        assert height == pytest.approx(0.0399 * math.sqrt(float(reports)) / 2, rel=0.05)  # type: ignore[arg-type]
    for figure in figures(result)[1:4]:
        rows = rows_of(figure)
        truth, low, high = (numbers(rows, name) for name in ("true", "lower", "upper"))
        assert 86 <= ((low <= truth) & (truth <= high)).sum() <= 101
        assert truth.sum() == pytest.approx(1)


@pytest.mark.slow
def test_an_exponential_law(result: Result) -> None:
    rows = {str(row[0]): row for row in table(result, "exponential").rows}
    bonferroni, rate, plain = (
        rows[rule] for rule in (exponential_law.BONFERRONI, exponential_law.SQUARES, exponential_law.PLAIN)
    )
    found = [float(row[1]) for row in (bonferroni, rate, plain)]  # type: ignore[arg-type]
    assert found == sorted(found)
    assert 28 <= found[0] <= 38
    assert 38 <= found[1] <= 48
    assert bonferroni[3] == 0
    assert rate[5] == 24
    assert verdict(result, "rappor.exponential").standing is Standing.OTHERWISE
    assert verdict(result, "rappor.exponential").statement.published == "47, 2 of them false"
    assert verdict(result, "rappor.frequent").standing is Standing.OTHERWISE  # by Bonferroni
    assert float(rate[4]) > float(bonferroni[4])  # type: ignore[arg-type]
    (bars,) = [figure for figure in figures(result) if "where 47 were published" in figure.title]
    drawn = {(row["rule"], row["kind"]): row["count"] for row in rows_of(bars)}
    assert (drawn["published", "there"], drawn["published", "absent"]) == (45, 2)


@pytest.mark.slow
def test_names_of_processes(result: Result) -> None:
    law = processes.LAW
    assert law.shares.sum() == pytest.approx(1)
    assert law.shares[0] == pytest.approx(0.045)
    assert law.shares[law.words.index(processes.MALWARE)] == pytest.approx(0.026)
    assert len(set(law.words)) == processes.CANDIDATES
    assert np.all(np.diff(law.shares[: int(law.present.sum()) - 1]) < 0)
    assert verdict(result, "rappor.processes").standing is Standing.UNTESTED  # the names are made up
    assert verdict(result, "rappor.malware").standing is Standing.UNTESTED
    (rows,) = [rows_of(figure) for figure in figures(result) if "malware" in figure.title]
    assert [row["word"] for row in rows] == list(law.words[:20])


@pytest.mark.slow
def test_home_pages(result: Result) -> None:
    law = home_pages.law_of(home_pages.FULL)
    assert law.shares.sum() == pytest.approx(1)
    assert law.shares[:43].sum() == pytest.approx(0.85)
    assert 12e6 * law.shares[42] == pytest.approx(14_000)
    assert len(set(law.words)) == 8600
    found = verdict(result, "rappor.pages.least")
    assert found.standing is Standing.OTHERWISE
    # p*(1-p*)/(q*-p*)^2 = 0.5938 x 0.4062 / 0.0625^2 = 61.75, halved by two hashes
    assert home_pages.error_in_users(home_pages.ORACLE, 12_000_000) == pytest.approx(
        math.sqrt(61.75 / 2 * 12e6)
    )
    # the permanent response alone: 0.375 x 0.625 / 0.25^2 = 3.75
    assert home_pages.error_in_users(home_pages.ORACLE.once(), 12_000_000) == pytest.approx(
        math.sqrt(3.75 / 2 * 12e6)
    )
    one, endless = table(result, "pages").rows
    assert float(one[5]) < float(endless[5])  # type: ignore[arg-type]
    assert "quick: 600,000 reports" in verdict(result, "rappor.pages.unexpected").finding
    assert "too small to judge" in verdict(result, "rappor.pages.unexpected").why


@pytest.mark.slow
def test_a_quick_run_says_so(result: Result) -> None:
    assert "quick" in result.lead
    texts = [text for section in result.sections for text in section.paragraphs]
    assert sum("uick" in text for text in texts) == 3


@pytest.mark.slow
def test_it_can_be_kept(result: Result, tmp_path: Path) -> None:
    names = {path.name for path in result.write(tmp_path)}
    tables = ("costs", "normal", "exponential", "processes", "pages", "verdicts")
    assert names >= {"rappor.html", *(f"rappor_{name}.csv" for name in tables)}
    assert sum(name.endswith(".png") for name in names) == 9


def test_people_are_drawn_by_their_law() -> None:
    law = WordLaw(("a", "b", "c", "d"), np.array([0.5, 0.3, 0.2, 0.0]))
    drawn = np.bincount(law.draw(100_000, SeededBits(1)), minlength=4)
    assert drawn[3] == 0
    assert np.all(np.abs(drawn[:3] - 100_000 * law.shares[:3]) < 5 * np.sqrt(100_000 * 0.25))
    oracle = Rappor(bits=16, hashes=1, cohorts=2, f=Fraction(1, 4), p=Fraction(1, 4), q=Fraction(3, 4))
    told = []

    def watch(label: str, things: Sequence[T]) -> Iterable[T]:
        told.append(label)
        return things

    counts = collect(oracle, law, 1000, bits=SeededBits(2), settings=Settings(), label="few")
    assert counts.reports == 1000
    again = collect(oracle, law, 1000, bits=SeededBits(2), settings=Settings(watch=watch), label="few")
    assert np.array_equal(counts.sums, again.sums)
    assert told == ["few"]


def test_finds_and_means() -> None:
    law = WordLaw(("a", "b"), np.array([1.0, 0.0]))
    assert Finds.among(np.array([True, True]), law) == Finds(2, 1)
    assert spread([1.0, 3.0]) == pytest.approx((2.0, 2.0))
    assert spread([4.0]) == (4.0, 0.0)


def test_a_bent_channel_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    truth = normal_law.TRUTH[::-1] ** 3
    monkeypatch.setattr(normal_law, "TRUTH", np.roll(truth / truth.sum(), 25))
    monkeypatch.setattr(normal_law, "SIZES", (10_000, 20_000, 30_000))
    assert normal_law.reproduce(Settings(quick=True)).verdicts[0].standing is Standing.OTHERWISE
