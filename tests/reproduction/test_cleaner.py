from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sourdine.local.cleaner import Method
from sourdine.testing import SeededBits
from sourdine_reproduction import Result, Settings, Standing, find_experiments
from sourdine_reproduction.cleaner.measure import (
    JUDGED,
    NOISED,
    TRUE,
    as_corrected,
    as_published,
    classes,
    division,
)
from sourdine_reproduction.cleaner.pima import DECLARED, FEATURES, FILE, SIZE, UNMEASURED, read_pima
from tests.reproduction.results import table, verdict


@pytest.fixture(scope="module")
def result() -> Result:
    return find_experiments()["cleaner"].run(Settings(quick=True))


@pytest.mark.slow
def test_the_staircase_costs_more_than_was_stated(result: Result) -> None:
    stated, laplace, staircase = zip(*table(result, "levels").rows, strict=True)
    assert laplace == stated
    # the worst log-ratios, by search over a fine grid: 1.48, 1.33, 1.16 and 1.07 times epsilon
    assert staircase == pytest.approx([0.1476, 1.3323, 4.6233, 10.69], rel=2e-3)
    assert verdict(result, "slides.staircase.bounded").standing is Standing.WRONG
    assert verdict(result, "slides.staircase").standing is Standing.REPRODUCED  # the slide has no bounds
    assert verdict(result, "slides.staircase").finding == "1 exactly at ε = 1"
    assert verdict(result, "slides.laplace").standing is Standing.REPRODUCED
    assert verdict(result, "slides.total").finding == "9"


@pytest.mark.slow
def test_learning_from_reports_is_better_than_from_cleaned_rows(result: Result) -> None:
    shown = table(result, "scores")
    scores = {row[:3]: row[3:] for row in shown.rows}
    for metric in (0, 2):
        ours = scores[1.0, "from reports (ours)", TRUE][metric]
        for noise in ("bounded Laplace", "bounded staircase"):
            assert ours > scores[1.0, f"{noise}, as corrected", TRUE][metric]  # type: ignore[operator]


@pytest.mark.slow
def test_without_the_table_a_made_up_one_is_said_to_be_so(result: Result) -> None:
    for name in ("accuracy.plain", "f1.one", "above"):
        assert verdict(result, f"slides.{name}").standing is Standing.UNTESTED
    assert "made-up" in verdict(result, "slides.accuracy.plain").why
    assert "not at hand" in result.sections[0].paragraphs[0]


@pytest.mark.slow
def test_the_page_is_written_with_its_tables(result: Result, tmp_path: Path) -> None:
    kept = {path.name for path in result.write(tmp_path)}
    assert {"cleaner.html", "cleaner_scores.csv", "cleaner_levels.csv", "cleaner_figure_4.png"} <= kept
    text = (tmp_path / "cleaner.html").read_text(encoding="utf-8")
    assert "as published (not private)" in text
    assert "one standard deviation" in text


def test_the_made_up_table_has_the_moments_of_the_real_one() -> None:
    made = read_pima(None)
    assert not made.real
    assert made.ill.sum() == 268
    glucose = made.columns["Glucose"]
    for ill, mean, deviation in ((False, 110.6, 24.75), (True, 142.3, 29.54)):
        part = glucose[made.ill == ill]
        part = part[~np.isnan(part)]
        assert abs(part.mean() - mean) < 5 * deviation / np.sqrt(len(part))
        assert part.std() == pytest.approx(deviation, rel=0.2)
    assert 0.4 < np.isnan(made.columns["Insulin"]).mean() < 0.6


def test_the_real_table_is_read_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.parent.mkdir()
    rows = [[6, 148, 72, 35, 94, 33.6, 0.627, 50, 1], [0, 0, 66, 29, 0, 26.6, 0.351, 31, 0]] * (SIZE // 2)
    np.savetxt(path, np.array(rows), delimiter=",")
    held = read_pima(tmp_path)
    assert held.real
    assert held.ill[:2].tolist() == [True, False]
    assert np.isnan(held.columns["Glucose"][1])
    assert held.columns["Pregnancies"][1] == 0
    assert held.imputed()[1, 1] == DECLARED["Glucose"]["missing"]
    assert held.with_medians()[1, 1] == 148
    assert len(held.train) == 614
    header = ",".join((*FEATURES, "Outcome"))  # as the source's file had it
    np.savetxt(tmp_path / "diabetes.csv", np.array(rows), delimiter=",", header=header, comments="")
    path.unlink()
    again = read_pima(tmp_path)
    assert again.real
    assert all(np.array_equal(again.columns[name], held.columns[name], equal_nan=True) for name in FEATURES)
    assert np.array_equal(again.ill, held.ill)
    assert sorted([*held.train, *held.test]) == list(range(SIZE))


def test_what_is_declared_holds_for_what_is_measured() -> None:
    assert set(UNMEASURED) < set(FEATURES)
    for column in DECLARED.values():
        assert column["lower"] < column["missing"] < column["upper"]


def test_with_next_to_no_noise_nothing_is_lost() -> None:
    pima = read_pima(None)
    for clean in (as_published, as_corrected):
        made = clean(pima, Fraction(60), Method.STAIRCASE, 2, SeededBits(1))
        assert [rows.features.shape for rows in made.cleaned] == [(SIZE, len(FEATURES))] * 2
        for judged in JUDGED:
            assert made.scores.of("accuracy", judged).min() > 0.7
    assert as_corrected(pima, Fraction(60), Method.LAPLACE, 1, SeededBits(1)).scores.f1[NOISED][0] > 0.5


def test_the_budget_is_divided_and_spent() -> None:
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(10)):
        label, count, each = division(9 * epsilon, 8)
        assert label + count * each == 9 * epsilon
        assert 1 <= count <= 8
        assert label <= 4
    assert division(Fraction(9), 8) == (3, 2, 3)


def test_class_means_from_reports_are_right() -> None:
    rng = np.random.default_rng(1)
    ill = rng.random(40_000) < 0.3
    features = np.clip(rng.normal(np.where(ill, 0.4, -0.2)[:, None], 0.2, (40_000, 4)), -1, 1)
    made = classes(features, ill, Fraction(6), SeededBits(2))
    assert made.shares[1] == pytest.approx(0.3, abs=0.03)
    assert made.means[0] == pytest.approx(np.full(4, -0.2), abs=0.1)
    assert made.means[1] == pytest.approx(np.full(4, 0.4), abs=0.15)
