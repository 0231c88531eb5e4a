"""Releases with comparisons are shown, drawn, kept and read back, also where an interval has no end."""

import json
from fractions import Fraction
from pathlib import Path

import pyarrow as pa

import sourdine as sd
from sourdine.core.format import endless
from sourdine.report.pages.release import release_page
from sourdine.tables import Specification
from sourdine.tables.publication import Record
from sourdine.tables.release import release

COLUMNS = {
    "pay": {"type": "real", "lower": 0.0, "upper": 10.0},
    "sex": {"type": "category", "keys": ["f", "m"]},
    "month": {"type": "category", "keys": [1, 2]},
}
QUERY = {
    "name": "q",
    "by": ["sex", "month"],
    "ask": [{"mean": "pay"}, {"sum": "pay"}, "count"],
    "compare": [
        {"difference": "mean of pay", "column": "sex", "first": "m", "second": "f"},
        {"ratio": "sum of pay", "per": "count"},
        {"share": "count"},
        {"change": "count", "column": "month", "relative": True},
        {"formula": "mean of pay", "factor": 12},
    ],
}


def test_comparisons_are_published_like_other_answers(tmp_path: Path) -> None:
    """At so small an epsilon a ratio has no end, which must not stop what was paid for."""
    specification = Specification.read(
        {
            "table": {"source": "people.csv"},
            "privacy": {"unit": "person", "epsilon": 0.01},
            "columns": COLUMNS,
            "queries": [QUERY],
        }
    )
    rows = pa.table({"pay": [1.0, 2.0], "sex": ["f", "m"], "month": [1, 2]})
    people = sd.Table(rows, unit="person", columns=COLUMNS)
    with sd.Ledger.create(tmp_path / "l", epsilon=Fraction(1)) as ledger:
        made = release(specification.plan(), people.source, ledger, purpose="test")
        certificate = made.certificate(ledger, made.declared)
    assert endless(made["q", "sum of pay per count"].estimate.upper.max())
    record = Record.of(specification, made)
    again = Record.from_json(record.to_json())
    assert [repr(each) for each in again.answers] == [repr(each) for each in record.answers]
    assert len(json.loads(made.values.json())["rows"]) == sum(len(each.keys) for each in made)
    page = release_page(again, certificate).html()
    assert "Share of count" in page
    for answer in made:
        assert answer._repr_html_()
        json.dumps(answer.chart().chart, allow_nan=False)
    assert "∞" in str(made)
