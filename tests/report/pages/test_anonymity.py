import re
from fractions import Fraction

import pyarrow as pa
import pytest
import vl_convert

from sourdine.anonymity import (
    Demand,
    GeneralisationMethod,
    Intervals,
    Measures,
    Records,
    generalise_records,
    measure_records,
)
from sourdine.report import Page
from sourdine.report.charts.anonymity import COARSE, RAW, draw_hiding, draw_sizes
from sourdine.report.pages.anonymity import (
    LIMITS,
    generalised_page,
    measure_page,
    measure_rows,
    sensitive_rows,
)

TABLE = pa.table(
    {
        "age": [21, 22, 31, 32, 41, 42, 43, 44],
        "sex": list("fmfmfmfm"),
        "ill": ["flu", "none", "flu", "none", "flu", "none", "flu", "</script><b>x"],
    }
)


@pytest.fixture(scope="module")
def records() -> Records:
    return Records.read(TABLE, quasi=["age", "sex"], sensitive=["ill"])


@pytest.fixture(scope="module")
def before(records: Records) -> Measures:
    return measure_records(records, subsets=2)


def drawn(page: Page) -> None:
    """Every chart of a page can be drawn."""
    for section in page.sections:
        for figure in section.figures:
            svg = vl_convert.vegalite_to_svg({**figure.chart, "width": 400})
            assert "<path" in svg


def test_the_page_of_measures_says_what_was_found_and_what_it_is_not(before: Measures) -> None:
    page = measure_page(before, "people.csv")
    assert page.title == "people.csv: 8 of 8 (100\N{NO-BREAK SPACE}%) records are like no other"
    html = page.html()
    assert "not for publication" in html
    assert "sourdine release" in html
    for limit in LIMITS:
        assert limit.split(".")[0] in html
    titles = [figure.title for section in page.sections for figure in section.figures]
    every = "100\N{NO-BREAK SPACE}% of the records rightly"
    assert titles[2] == f"'age' alone links {every}, the most that up to 2 columns do"
    drawn(page)


@pytest.mark.parametrize("method", [GeneralisationMethod.FULL, GeneralisationMethod.MONDRIAN])
def test_the_page_of_a_generalised_table_stands_beside_the_raw_one(
    records: Records, before: Measures, method: GeneralisationMethod
) -> None:
    made = generalise_records(
        records,
        Demand(k=2),
        hierarchies={"age": Intervals(0, 100, (10, 50))},
        method=method,
        suppress=Fraction(1, 4),
    )
    page = generalised_page(made, before, measure_records(made.records), "people.csv")
    html = page.html()
    assert "not for publication" in html
    assert page.title == "people.csv: generalised to k = 2"
    assert "The highest risk falls from certainty to 1 in" in html
    assert ("no other choice of levels loses less" in html) == (method is GeneralisationMethod.FULL)
    assert re.search(r"Lost: \d", html)
    drawn(page)


def test_charts_count_every_record_once(before: Measures) -> None:
    chart = draw_sizes({RAW: before})
    rows = chart["datasets"]["rows"]  # type: ignore[index]
    assert sum(row["records"] for row in rows) == 8
    assert [row["class size"] for row in rows if row["records"]] == ["1"]
    shares = draw_hiding({RAW: before, COARSE: before})["datasets"]["rows"]  # type: ignore[index]
    assert {row["share"] for row in shares} == {1.0}


def test_rows_for_terminals_hold_every_measure(before: Measures) -> None:
    rows = {row[0]: row[1] for row in measure_rows({"value": before})}
    assert rows["k"] == "1"
    assert rows["highest risk"] == "certainty"
    assert rows["average risk"] == "100\N{NO-BREAK SPACE}%"
    sensitive = {row[1]: row[2] for row in sensitive_rows({"value": before})}
    assert sensitive["l (distinct)"] == "1"
    assert sensitive["delta"] == "∞"
    assert sensitive["t (equal)"] == "0.875"  # one of eight has the rarest value
