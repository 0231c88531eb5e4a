from typing import Any

import pytest

from sourdine.local.utility import JudgedOn
from sourdine.report import Page
from sourdine.report.pages.anonymity import utility_page, utility_table
from tests.local.utility.test_measure import measured


@pytest.fixture(scope="module")
def page() -> Page:
    return utility_page("wards.csv", measured())


def test_the_page_says_first_that_it_is_not_private(page: Page) -> None:
    assert page.lead.startswith("NOT PRIVATE")
    assert "240 rows were cleaned" in page.lead
    assert "% without noise" in page.title
    text = page.html()
    assert "one standard deviation" in text
    assert "accuracy at or below that is nothing learned" in text


def test_curves_stand_over_the_price_on_a_log_axis(page: Page) -> None:
    chart: Any = page.sections[0].figures[0].chart
    rows = chart["datasets"]["rows"]
    assert {row["epsilon"] for row in rows} > {3.0, 60.0}
    line = next(layer for layer in chart["layer"] if layer["mark"]["type"] == "line")
    assert line["encoding"]["x"]["scale"]["type"] == "log"
    assert line["encoding"]["x"]["title"] == "price, ε of a person"
    said = [row["said"] for name, held in chart["datasets"].items() if name != "rows" for row in held]
    assert set(said) == {"without noise", "always the commonest label"}


def test_what_was_asked_stands_beside_the_price() -> None:
    table = utility_table(measured(tested=list(JudgedOn)))
    assert table.columns[:2] == ("ε asked, of a column", "price, ε of a person")
    assert len(table.rows) == 2 * 3 * 3 + 2
    assert [row[:2] for row in table.rows[:1]] == [("1", table.rows[0][1])]
    assert table.rows[0][1] != "3"
    assert table.rows[-2][2] == "no noise"


def test_a_page_of_other_rows_says_so_and_draws_no_level_of_true_ones() -> None:
    page = utility_page("wards.csv", measured(each=[1], tested=[JudgedOn.CLEANED]))
    assert page.title.endswith("tested on cleaned rows and labels")
    chart: Any = page.sections[0].figures[0].chart
    assert list(chart["datasets"]) == ["rows"]
    both = utility_page("wards.csv", measured(each=[1], tested=[JudgedOn.CLEANED, JudgedOn.UNTOUCHED]))
    assert both.title.endswith("without noise")
    assert len(both.sections[0].figures) == 4
