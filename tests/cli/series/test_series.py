"""`sourdine series`: start, publish, status, report, extend, resume."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli import table_case

SPECIFICATION = """\
[table]
source = "visits.csv"

[privacy]
unit = "person"
column = "id"
ledger = "visits.ledger"
epsilon = 4
delta = 1e-6

[columns.arrived]
type = "date"
first = 2024-01-01
last = 2024-12-31

[columns.region]
type = "category"
keys = ["north", "south"]

[[queries]]
name = "visits"
ask = ["count"]
by = "region"

[series]
period = "week"
first = 2024-01-01
periods = 4
arrived = "arrived"
publish = ["total", "period"]
extensible = true
"""


@dataclass(frozen=True)
class Run:
    """What a command said, and how it ended."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return " ".join((self.stdout + self.stderr).split())


def run(*words: object) -> Run:
    return Run(*table_case.run(*words))


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    days = ["2024-01-01", "2024-01-08", "2024-01-15", "2024-01-22"]
    rows = [f"{i},{days[i % 4]},{'north' if i % 3 else 'south'}" for i in range(400)]
    (tmp_path / "visits.csv").write_text("id,arrived,region\n" + "\n".join(rows) + "\n")
    (tmp_path / "visits.toml").write_text(SPECIFICATION)
    ledger = str(tmp_path / "visits.ledger")
    assert run("ledger", "create", ledger, "--epsilon", "9", "--delta", "1e-6").exit_code == 0
    return tmp_path / "visits.toml"


def status(spec: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(run("series", "status", str(spec), "--json").stdout)
    return found


def test_from_start_to_report(spec: Path, tmp_path: Path) -> None:
    planned = run("series", "start", str(spec), "--plan")
    assert planned.exit_code == 0, planned.output
    assert "paid anew" in planned.stdout
    assert "Nothing was read or spent" in planned.output
    assert not (tmp_path / "visits.series").exists()
    started = run("series", "start", str(spec))
    assert "Paid for all 4 periods" in started.output
    assert status(spec)["next_period"] == "2024-W01"
    first = run("series", "publish", str(spec), "-o", str(tmp_path / "first.csv"))
    assert first.exit_code == 0, first.output
    assert "Period 2024-W01, 1 of 4" in first.stdout
    assert run("series", "publish", str(spec), "--period", "2024-W01").stdout == first.stdout
    second = json.loads(run("series", "publish", str(spec), "--json").stdout)
    assert second["period"] == "2024-W02"
    assert {row["view"] for row in second["answers"]} == {"total", "period"}
    lines = (tmp_path / "first.csv").read_text().splitlines()
    assert lines[0].startswith("query,statistic,key,view,period,value,lower,upper")
    assert len(lines) == 5
    made = run("series", "report", str(spec), "-o", str(tmp_path / "series.html"))
    assert made.exit_code == 0, made.output
    page = (tmp_path / "series.html").read_text()
    assert "What correlated noise gained" in page
    assert "2024-W01 to 2024-W02" in page


def test_a_longer_horizon_and_a_restored_state(spec: Path, tmp_path: Path) -> None:
    run("series", "start", str(spec))
    assert "6 periods now" in run("series", "extend", str(spec), "--periods", "6").output
    run("series", "publish", str(spec))
    shutil.copy(tmp_path / "visits.series", tmp_path / "backup")
    run("series", "publish", str(spec))
    shutil.copyfile(tmp_path / "backup", tmp_path / "visits.series")
    assert "resume --shown" in run("series", "status", str(spec)).output
    refused = run("series", "publish", str(spec))
    assert refused.exit_code != 0
    assert "was restored" in refused.output
    again = run("series", "resume", str(spec), "--shown", "2")
    assert "1 periods that were shown and are lost" in again.output
    assert run("series", "publish", str(spec)).exit_code == 0


def test_other_verbs_point_to_a_series_and_back(spec: Path, tmp_path: Path) -> None:
    for verb in (("release", str(spec), "-o", str(tmp_path / "out")), ("plan", str(spec))):
        refused = run(*verb)
        assert refused.exit_code != 0
        assert "series start" in refused.output
    spec.write_text(SPECIFICATION.partition("[series]")[0])
    refused = run("series", "start", str(spec))
    assert refused.exit_code != 0
    assert "declares no series" in refused.output
    assert "Publish a growing table" in run("series").stdout


def test_dates_that_cannot_be_read_are_counted_before_a_period_is_closed(spec: Path) -> None:
    """A date written in another way is missing, and its record would count in no period."""
    table = spec.with_name("visits.csv")
    table.write_text(table.read_text().replace("2024-01-08", "2024-01-08T10:00:00Z"))
    told = json.loads(run("check", spec, "--json").stdout)
    assert [each["records"] for each in told["cells"] if each["column"] == "arrived"].count(100) == 1


def test_new_keys_are_named_when_they_are_chosen(spec: Path) -> None:
    text = spec.read_text().replace('type = "category"\nkeys = ["north", "south"]', 'type = "text"')
    spec.write_text(text)
    assert "--selection-delta 5e-07" in run("series", "start", spec, "--plan").output + _hint(spec)
    ledger = spec.with_name("towns.ledger")
    run("ledger", "create", ledger, "--epsilon", 4, "--delta", 1e-6, "--selection-delta", 5e-7)
    spec.write_text(text.replace("visits.ledger", "towns.ledger"))
    assert run("series", "start", spec).exit_code == 0
    first = run("series", "publish", spec)
    assert "Chosen in this period: north" in first.output
    assert "Chosen" not in run("series", "publish", spec, "--period", "2024-W01", "--json").output


def _hint(spec: Path) -> str:
    shutil.move(spec.with_name("visits.ledger"), spec.with_name("elsewhere.ledger"))
    return run("series", "start", spec).output.replace("5e-7", "5e-07")
