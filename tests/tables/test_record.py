import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames import open_source
from sourdine.tables import Specification, rehearse
from sourdine.tables.publication import Record
from sourdine.tables.release import release

BLOCKS = {
    "table": {"source": "secret place/people.csv", "size": 50},
    "privacy": {"unit": "person", "epsilon": 1, "ledger": "ledgers/people.ledger"},
    "columns": {
        "age": {"type": "integer", "lower": 0, "upper": 120},
        "pay": {"type": "real", "lower": 0.0, "upper": 10.0},
        "well": {"type": "flag"},
        "site": {"type": "category", "keys": [1, 2]},
    },
    "queries": [
        {"name": "n", "ask": ["count"], "by": ["well", "site"], "where": {"age": {"at_least": 18}}},
        {
            "name": "q",
            "ask": [{"quantiles": "pay", "levels": [0.25, 0.5]}, {"histogram": "age", "edges": [0, 50, 99]}],
        },
        {"name": "c", "ask": [{"contingency": ["well", "site"]}]},
    ],
}


@pytest.fixture
def record(tmp_path: Path) -> Record:
    spec = Specification.read(BLOCKS)
    table = pa.table({"age": [30] * 50, "pay": [5.0] * 50, "well": [True] * 50, "site": [1] * 50})
    terms = Terms(budget=PureBudget(limit=Fraction(3)), unit="person", neighbours=Neighbours.ADD_REMOVE)
    with Ledger.create(tmp_path / "l", terms) as ledger:
        made = release(spec.plan(), open_source(table, spec.schema_of), ledger, purpose="test")
    return Record.of(spec, made)


def test_it_survives_json(record: Record) -> None:
    again = Record.from_json(record.to_json())
    assert again.to_json() == record.to_json()
    assert (again.spent, again.limit, again.payment) == (1, 3, record.payment)
    assert again.specification.plan() == again.specification.plan()
    assert again.specification.plan().spends == record.specification.plan().spends
    for one, two in zip(record.answers.each, again.answers.each, strict=True):
        assert (one.keys, one.columns, one.kind, one.whole) == (two.keys, two.columns, two.kind, two.whole)
        np.testing.assert_array_equal(one.estimate.value, two.estimate.value)
        np.testing.assert_array_equal(one.estimate.upper, two.estimate.upper)


def test_it_does_not_tell_where_files_were(record: Record) -> None:
    text = record.to_json()
    assert "people.csv" in text
    assert "secret place" not in text
    assert "ledgers/" not in text


def test_what_was_not_paid_has_no_record() -> None:
    spec = Specification.read(BLOCKS)
    with pytest.raises(InvalidParameter, match="was not paid"):
        Record.of(spec, rehearse(spec.plan()))


@pytest.mark.parametrize(
    "change",
    [
        {"format": 3},
        {"format": 1, "answers": 3},
        {"quality": None},
        {"quality": {"answers": [{}], "warnings": []}},
        {"answers": [{}]},
        {"answers": 3},
        {"limit": "1/0"},
        {"specification": {}},
        {"confidence": "high"},
    ],
)
def test_what_was_changed_is_refused(record: Record, change: dict[str, object]) -> None:
    held = json.loads(record.to_json())
    with pytest.raises(InvalidParameter, match="cannot be read"):
        Record.from_json(json.dumps(held | change))


def test_unlike_lengths_are_refused(record: Record) -> None:
    held = json.loads(record.to_json())
    held["answers"][0]["value"].pop()
    with pytest.raises(InvalidParameter, match="cannot be read"):
        Record.from_json(json.dumps(held))


def test_data_quality_is_kept_with_its_warnings(record: Record) -> None:
    assert record.quality is not None
    again = Record.from_json(record.to_json()).quality
    assert again is not None
    assert again.warnings == record.quality.warnings
    assert again.answers.csv() == record.quality.answers.csv()
    assert list(again.rows()) == list(record.quality.rows())


def test_a_record_of_the_first_format_told_nothing_of_it(record: Record) -> None:
    """Such a record has no word about it, and its release did not pay for it."""
    held = json.loads(record.to_json())
    del (
        held["quality"],
        held["specification"]["privacy"]["quality"],
        held["specification"]["table"]["checked"],
    )
    again = Record.from_json(json.dumps(held | {"format": 1}))
    assert again.quality is None
    plan = again.specification.plan()
    assert not plan.quality
    assert not plan.checked
    assert sum(line.share for line in plan.lines) == 1
    with pytest.raises(InvalidParameter, match="cannot be read"):
        Record.from_json(json.dumps(held))
