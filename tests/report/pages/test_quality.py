from fractions import Fraction

from sourdine.frames import PrivacyUnit, Schema
from sourdine.mechanisms import Laplace
from sourdine.report.pages.release import misfit_section, quality_section
from sourdine.tables import DataQuality
from sourdine.tables.quality import data_quality


def quality(odd: float, *columns: str) -> DataQuality:
    numbers = [1_000.0 - odd, 0.0, odd] if columns else [1_000.0]
    return data_quality(
        numbers,
        Laplace(scale=Fraction(5)),
        columns=columns,
        schema=Schema.read({"sex": {"type": "category", "keys": ["f", "m"]}}),
        unit=PrivacyUnit(),
        size=1_000,
        confidence=0.95,
    )


def test_warnings_have_a_section_of_their_own() -> None:
    (section,) = misfit_section(quality(250, "sex"))
    assert section.title == "Not all records fit what was declared"
    assert section.points[0].startswith("About 25 % of the records (between 23")
    assert "declarations may be corrected by them" in section.paragraphs[0]
    assert "'sourdine check', or Table.check in Python, which is not private" in section.paragraphs[0]
    assert list(misfit_section(quality(0, "sex"))) == []
    assert list(misfit_section(None)) == []


def test_every_cell_has_its_row_with_an_interval() -> None:
    (section,) = quality_section(quality(250, "sex"), PrivacyUnit())
    (table,) = section.tables
    assert table.rows == (
        ("sex", "missing", "0", "-15", "15", "0 %"),
        ("sex", "unknown key", "250", "235", "265", "25 %"),
    )
    assert "About 1,000 records were read (between 9" in section.paragraphs[0]
    assert "part of what was paid" in section.paragraphs[0]


def test_single_intervals_that_miss_by_chance_raise_no_alarm() -> None:
    for odd, calm in ((17, True), (250, False)):  # 17 is beyond an interval of 95 %, and noise explains it
        (section,) = quality_section(quality(odd, "sex"), PrivacyUnit())
        assert ("none of them is beyond what noise" in section.tables[0].note) is calm


def test_of_units_it_says_how_much_counts() -> None:
    (section,) = quality_section(quality(0, "sex"), PrivacyUnit(name="patient", column="who"))
    assert (
        "Of each patient at most 1 record counts here, and records without one do not."
        in section.paragraphs[0]
    )
    (section,) = quality_section(quality(0, "sex"), PrivacyUnit(name="patient", column="who", max_rows=3))
    assert "at most 3 records count here" in section.paragraphs[0]


def test_without_columns_there_is_no_table() -> None:
    (section,) = quality_section(quality(0), PrivacyUnit())
    assert section.tables == ()
    assert list(quality_section(None, PrivacyUnit())) == []
