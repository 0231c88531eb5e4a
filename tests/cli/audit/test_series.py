import json
from pathlib import Path

import pytest

from tests.cli.table_case import run

SPEC = """\
[table]
source = "visits.csv"
[privacy]
unit = "person"
column = "id"
ledger = "visits.ledger"
epsilon = 1
delta = 1e-6
[columns.arrived]
type = "date"
first = 2026-01-01
last = 2026-12-31
[columns.place]
type = "category"
keys = ["north", "south"]
[[queries]]
name = "visits"
ask = ["count"]
by = "place"
[series]
period = "week"
first = 2026-01-05
periods = 5
times = 2
separation = 2
arrived = "arrived"
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "visits.toml"
    path.write_text(SPEC)
    return path


def test_a_series_is_published_to_its_end_without_its_table(spec: Path) -> None:
    code, out, err = run("audit", "series", str(spec), "--pairs", "3")
    assert (code, err) == (0, "")
    assert "3 pairs of neighbours were published over 5 periods" in " ".join(out.split())
    assert "not refuted" in out
    assert [each.name for each in spec.parent.iterdir()] == ["visits.toml"]  # nothing is kept


def test_machines_are_told_how_far_it_moved(spec: Path) -> None:
    code, out, _ = run("audit", "series", str(spec), "--pairs", "2", "--seed", "5", "--json")
    found = json.loads(out)
    assert (code, found["good"], found["periods"], found["pairs"]) == (0, True, 5, 2)
    assert 0 < found["farthest"] <= 1


def test_pairs_are_counted_from_one(spec: Path) -> None:
    code, _, err = run("audit", "series", str(spec), "--pairs", "0")
    assert code != 0
    assert "'pairs'" in err
