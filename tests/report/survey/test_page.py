"""The page of a survey: estimates, the price, alarms, and no text of anybody that a browser obeys."""

import numpy as np

from sourdine.local import GRR, OUE, Duchi, Question
from sourdine.report.pages.survey import price_points, survey_page
from sourdine.testing import SeededBits


def drawn(question: Question, values: np.ndarray) -> np.ndarray:
    return question.oracle.pack(question.oracle.sample(values, SeededBits(1)))


WORK = Question(name="work", oracle=GRR(epsilon=1, categories=3), labels=("<b>walk</b>", "bus", "car"))


def test_estimates_with_intervals() -> None:
    counts = WORK.tally(drawn(WORK, np.repeat([0, 1, 2], [500, 300, 200])))
    page = survey_page(WORK, [counts], faults={"damaged": 3})
    assert page.bars[0].name == "<b>walk</b>"
    for bar in page.bars:
        assert bar.lower <= bar.value <= bar.upper
    html = page.html()
    assert "&lt;b&gt;walk" in html
    assert "<b>walk" not in html
    assert "1,000 reports so far" in html
    assert "damaged" in html
    assert "<script" not in html
    assert page.narrowing is None


def test_intervals_narrow() -> None:
    counts = WORK.tally(drawn(WORK, np.zeros(1000, np.int64)))
    page = survey_page(WORK, [counts], history=[(10, 0.5), (100, 0.2)])
    assert page.narrowing is not None
    assert len(page.narrowing.points.split()) == 3
    assert "from ±50 percentage points" in page.narrowing.title


def test_an_alarm_is_told_first() -> None:
    question = Question(name="bits", oracle=OUE(epsilon=1, categories=20))
    rows = np.concatenate(
        [drawn(question, np.arange(2000) % 20), np.full((400, 3), [255, 255, 240], np.uint8)]
    )
    page = survey_page(question, [question.tally(rows)])
    assert page.alarms
    assert 'role="alert"' in page.html()


def test_numbers_and_nothing_yet() -> None:
    pay = Question(name="pay", oracle=Duchi(epsilon=1, lower=0, upper=100))
    page = survey_page(pay, [pay.tally(drawn(pay, np.full(1000, 40.0)))])
    assert [words for _, words in page.ticks] == ["0", "25", "50", "75", "100"]
    empty = survey_page(WORK, [WORK.tally(np.zeros((0, 1), np.uint8))])
    assert "No report has come in yet" in empty.html()


def test_the_price_in_words() -> None:
    """At epsilon 1 odds change by e, and one half becomes e/(1 + e) = 73.1 %."""
    assert "at most 74 chances in 100" in price_points(WORK)[1]
    assert "factor of 2.72" in price_points(WORK)[1]
