"""Crosstabs on pages: keys on both sides, fewer across, sums marked, and what is hidden told."""

import numpy as np

from sourdine.frames.keys import Keys
from sourdine.report import Page, Section
from sourdine.report.crosstab import cross_table
from sourdine.report.pages.release import fitting_crosstab
from sourdine.tables import Answer
from sourdine.tables.crosstab import crosstab_of
from sourdine.tables.intervals import GroupEstimate

EVIL = "</script><b>x"


def answer(rows: int, columns: int, kind: str = "count", first: object = EVIL) -> Answer:
    value = np.arange(float(rows * columns))
    return Answer(
        query="q",
        statistic="count",
        kind=kind,
        columns=("town", "year"),
        keys=Keys.product([[str(first), *(f"t{n}" for n in range(rows - 1))], list(range(columns))]),
        estimate=GroupEstimate(value, value - 2, value + 2),
        measure="people",
        whole=True,
    )


def test_a_page_shows_values_over_their_intervals_and_obeys_no_key() -> None:
    table = cross_table(crosstab_of(answer(3, 2), "town", "year"), 200, where="Only records with age >= 18.")
    html = Page(title="t", lead="", sections=(Section(title="s", tables=(table,)),)).html()
    assert "<b>x" not in html
    assert '<td class="number">0<small>-2 to 2</small></td>' in html
    assert html.count('<th scope="row">') == 4
    assert '<tr class="sum">' in html
    assert html.count('class="number sum"') == 4
    assert "they add up" in html
    assert "Only records with age &gt;= 18." in html


def test_rows_beyond_what_is_shown_are_counted_and_the_sums_stay() -> None:
    table = cross_table(crosstab_of(answer(30, 2), "town", "year"), 10)
    assert table.rows[-1][0] == "all"
    assert len(table.rows) == 11
    assert "20 more rows" in table.note
    lines = list(table.lines())
    assert lines[0] == "People by town and year"
    assert len(lines) == 1 + 1 + 11 + 1


def test_the_side_with_fewer_keys_is_across_and_wide_ones_stay_lists() -> None:
    flat = fitting_crosstab(answer(2, 9))
    assert flat is not None
    assert (flat.rows, flat.columns) == ("year", "town")
    tall = fitting_crosstab(answer(9, 2))
    assert tall is not None
    assert (tall.rows, tall.columns) == ("town", "year")
    assert fitting_crosstab(answer(20, 20)) is None
    assert fitting_crosstab(answer(3, 2, kind="top")) is None
