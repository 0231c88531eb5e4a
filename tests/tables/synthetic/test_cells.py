import numpy as np
import pyarrow as pa
import pytest

from sourdine.frames import PrivacyUnit, Schema, open_source
from sourdine.frames.quality import record_codes
from sourdine.tables.synthetic.cells import CellColumn, cells_of
from sourdine.testing import SeededBits


def cells(column: dict[str, object], bins: object = None) -> CellColumn:
    return cells_of("x", Schema.read({"x": column}).columns["x"], bins)  # type: ignore[arg-type]


INTEGER = {"type": "integer", "lower": 0, "upper": 99}
CASES = {
    "keys": ({"type": "category", "keys": ["a", "b"]}, None),
    "numbers as keys": ({"type": "category", "keys": [7, 3]}, None),
    "a key for what is missing": ({"type": "category", "keys": ["a", "b"], "missing": "b"}, None),
    "flags": ({"type": "flag"}, None),
    "bins": (INTEGER, 7),
    "edges": (INTEGER, (0, 18, 65, 99)),
    "edges beyond the bounds": (INTEGER, (-5, 18, 65, 120)),
    "each value": ({"type": "integer", "lower": -3, "upper": 3}, None),
    "a number for what is missing": ({**INTEGER, "missing": 5}, 4),
    "reals": ({"type": "real", "lower": -1, "upper": 2.5, "granularity": 0.01}, 5),
    "reals on the default grid": ({"type": "real", "lower": 0, "upper": 1e6}, None),
    "days": ({"type": "date", "first": "2024-01-15", "last": "2024-03-10", "period": "month"}, None),
    "weeks": ({"type": "date", "first": "2024-01-15", "last": "2024-03-10", "period": "week"}, None),
    "times": (
        {"type": "datetime", "first": "2024-01-15 10:30:00", "last": "2024-01-16 01:00:00", "period": "hour"},
        None,
    ),
}


@pytest.mark.parametrize(("column", "bins"), CASES.values(), ids=CASES)
def test_a_drawn_value_lies_in_the_cell_it_was_drawn_from(column: dict[str, object], bins: object) -> None:
    """Drawn, read back by the engine, and found in the same cell."""
    ours = cells(column, bins)
    places = np.repeat(np.arange(ours.size), 50)
    values = ours.values(places, SeededBits(1))
    source = open_source(pa.table({"x": values.tolist()}), Schema.read({"x": column}))
    (read,) = record_codes(source, [ours.grouping(source)], unit=PrivacyUnit(), bits=SeededBits(2))
    assert read.tolist() == places.tolist()
    assert len(ours.labels) == ours.size


@pytest.mark.parametrize(("column", "bins"), CASES.values(), ids=CASES)
def test_every_value_there_is_has_a_cell(column: dict[str, object], bins: object) -> None:
    ours = cells(column, bins)
    texts = ["", "a", "b", "zz", "1e400", "-7", "3", "nan", "true", "2024-02-30", "2024-02-03", None]
    source = open_source(pa.table({"x": texts}), Schema.read({"x": column}))
    (read,) = record_codes(source, [ours.grouping(source)], unit=PrivacyUnit(), bits=SeededBits(2))
    assert len(read) == len(texts)
    assert read.max() <= ours.size - (0 if ours.missing else 1)


def test_numbers_are_drawn_evenly_within_their_bin() -> None:
    ours = cells(INTEGER, (0, 10, 99))
    values = ours.values(np.zeros(20_000, np.int64), SeededBits(1))
    counts = np.bincount(np.ma.getdata(values), minlength=10)
    assert len(counts) == 10
    assert ((counts - 2000) ** 2 / 2000).sum() < 48  # chi-square with 9 degrees of freedom, 1 - 2.5e-7


def test_reals_stay_within_their_bounds() -> None:
    ours = cells({"type": "real", "lower": 0.001, "upper": 0.999, "granularity": 0.01}, 3)
    values = ours.values(np.repeat([0, 1, 2], 300), SeededBits(1))
    assert 0.001 <= values.min() <= values.max() <= 0.999
    assert set(np.round(np.ma.getdata(values), 3)) <= {0.001, 0.999, *(k / 100 for k in range(100))}
