"""Quantiles without intervals: pages, charts and sentences say so, and never draw or compare more."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vl_convert

from sourdine.accounting.ledger import Ledger
from sourdine.cli.release import publish
from sourdine.frames.keys import Keys
from sourdine.report.charts.answers import draw_answer
from sourdine.report.finding import finding, named_rows
from sourdine.report.pages.release import release_page
from sourdine.tables import Answer, Answers
from sourdine.tables.intervals import GroupEstimate
from sourdine.tables.publication import Record
from tests.cli.table_case import Case, build, run


def answer(keys: list[tuple[Any, ...]], *, bounded: bool = False) -> Answer:
    value = np.linspace(10, 90, len(keys))
    end = 2.0 if bounded else np.nan
    return Answer(
        query="ages",
        statistic="quantiles of age",
        kind="quantiles",
        columns=("sex", "quantile")[2 - len(keys[0]) :],
        keys=Keys.of(keys, len(keys[0])),
        estimate=GroupEstimate(value, value - end, value + end),
        measure="age",
        span=(0.0, 100.0),
    )


LEVELS = [(0.25,), (0.5,), (0.75,)]
GROUPS = [(sex, level) for sex in ("f", "m") for level in (0.25, 0.5)]


@pytest.mark.parametrize("keys", [LEVELS, GROUPS])
def test_no_line_is_drawn_where_there_is_no_interval(keys: list[tuple[Any, ...]]) -> None:
    charts = {bounded: draw_answer(answer(keys, bounded=bounded)) for bounded in (False, True)}
    assert charts[False] is not None
    assert charts[True] is not None
    texts = {bounded: json.dumps(chart) for bounded, chart in charts.items()}
    assert '"rule"' in texts[True]
    for word in ('"rule"', '"lower', '"upper', "NaN"):
        assert word not in texts[False]
    assert "(no interval)" in texts[False]
    drawn = vl_convert.vegalite_to_svg(texts[False])
    assert drawn.count('aria-roledescription="point"') == len(keys)
    assert 'aria-roledescription="rule"' not in drawn


def test_sentences_say_so_and_do_not_compare() -> None:
    told = finding(answer(LEVELS), 0.95)
    assert told.startswith("Half of the values of age lie below about 50 (no interval)")
    told = finding(answer(GROUPS), 0.95)
    assert told == "The median of age: no interval is known, so groups are not compared"
    assert "than for" in finding(answer(GROUPS, bounded=True), 0.95)


def test_rows_for_a_terminal_say_so() -> None:
    (first, *_) = named_rows(Answers((answer(LEVELS),), 0.95))
    assert first[3:] == ("10", "no interval", "", "age")


@pytest.fixture
def case(tmp_path: Path) -> Case:
    made = build(tmp_path)
    made.change(
        'ask = [{ mean = "age" }]', 'ask = [{ quantiles = "age", levels = [0.25, 0.5], ties = true }]'
    )
    return made


def test_a_page_says_so(case: Case) -> None:
    published = publish(case.spec, case.folder / "out")
    record = Record.from_json((case.folder / "out" / "release.json").read_text())
    np.testing.assert_array_equal(
        record.answers["ages"].estimate.lower, published.release.values["ages"].estimate.lower
    )
    page = release_page(record, published.certificate)
    html = page.html()
    assert "there is no interval for the quantiles of age in 'ages'" in page.lead
    assert "No interval is known." in html
    assert "joint, since under add-remove neighbours" in html
    assert "1 value<" in html
    assert "nan" not in page.lead.lower()
    table = next(t for section in page.sections for t in section.tables if t.title.startswith("ages"))
    assert table.columns == ("quantile", "value")
    with Ledger.open(case.ledger) as ledger:
        assert published.certificate.verify(ledger) == ()


def test_commands_say_so(case: Case) -> None:
    code, shown, _ = run("plan", case.spec, "--dry-run")
    assert code == 0
    assert "no interval" in shown
    code, shown, _ = run("plan", case.spec, "--json")
    (each,) = [row for row in json.loads(shown)["forecasts"] if row["query"] == "ages"]
    assert each["note"].endswith("no interval")
    code, shown, _ = run("release", case.spec, "-o", case.folder / "out")
    assert code == 0
    assert "no interval" in shown
    assert "no interval" in (case.folder / "out" / "answers.csv").read_text()
    code, shown, _ = run("report", case.folder / "out")
    assert code == 0


@pytest.mark.parametrize(("kind", "end"), [("count", "lower"), ("quantiles", "value")])
def test_a_record_that_lacks_other_numbers_is_refused(case: Case, kind: str, end: str) -> None:
    publish(case.spec, case.folder / "out", report=False)
    held = json.loads((case.folder / "out" / "release.json").read_text())
    next(each for each in held["answers"] if each["kind"] == kind)[end][0] = None
    with pytest.raises(ValueError, match="cannot be read"):
        Record.from_json(json.dumps(held))
