import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from sourdine.accounting.ledger import Ledger
from tests.cli.table_case import run
from tests.tables.synthetic.case import rows

SPECIFICATION = """\
[table]
source = "people.csv"
size = 2000

[privacy]
unit = "person"
ledger = "people.ledger"
epsilon = 1.0
delta = 1e-6

[columns.age]
type = "integer"
lower = 0
upper = 99

[columns.sex]
type = "category"
keys = ["f", "m"]

[columns.works]
type = "flag"

[columns.town]
type = "category"
keys = ["Lille", "Nice", "Toulon"]

[hierarchies.places]
levels = ["region", "town"]
rows = [["north", "Lille"], ["south", "Nice"], ["south", "Toulon"]]

[synthetic]
mark = "kind"
bins = { age = [0, 20, 65, 99] }
"""
FILES = ["certificate.json", "model.json", "report.html", "synthetic.csv"]


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    pl.DataFrame(rows(2000)).write_csv(tmp_path / "people.csv")
    path = tmp_path / "people.toml"
    path.write_text(SPECIFICATION)
    words = ["--epsilon", "2", "--delta", "1e-6", "--unit", "person"]
    assert run("ledger", "create", tmp_path / "people.ledger", *words)[0] == 0
    return path


def charges(spec: Path) -> int:
    with Ledger.open(spec.parent / "people.ledger") as ledger:
        return len(ledger.history())


def change(spec: Path, old: str, new: str) -> None:
    text = spec.read_text()
    assert old in text
    spec.write_text(text.replace(old, new))


def test_a_table_appears_with_all_that_belongs_to_it(spec: Path) -> None:
    folder = spec.parent / "out"
    code, out, err = run("synthesize", spec, "-o", folder / "synthetic.csv")
    assert (code, err) == (0, "")
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert "No row is of anybody" in out
    frame = pl.read_csv(folder / "synthetic.csv")
    assert set(frame.columns) == {"age", "sex", "works", "region", "town", "kind"}
    assert set(frame["kind"]) == {"synthetic"}
    lies_in = dict(frame.select("town", "region").unique().drop_nulls().rows())
    assert lies_in == {"Lille": "north", "Nice": "south", "Toulon": "south"}
    assert abs(len(frame) - 2000) < 100
    assert charges(spec) == 1
    ledger = spec.parent / "people.ledger"
    assert run("certificate", "verify", folder / "certificate.json", "--ledger", ledger)[0] == 0
    page = (folder / "report.html").read_text()
    assert "What not to conclude" in page
    assert "Relations that were not measured" in page
    model = json.loads((folder / "model.json").read_text())
    assert len(model["parts"][0]["edges"]) == 3


def test_a_plan_costs_nothing(spec: Path) -> None:
    code, out, _ = run("synthesize", spec, "--plan")
    assert code == 0
    assert "Nothing is spent" in out
    told = json.loads(run("synthesize", spec, "--plan", "--json")[1])
    assert told["columns"] == {"age": 4, "sex": 3, "works": 3, "town": 4}
    assert charges(spec) == 0


def test_its_holder_compares_it_with_the_real_one(spec: Path) -> None:
    folder = spec.parent / "out"
    assert run("synthesize", spec, "-o", folder, "--no-report")[0] == 0
    code, out, err = run("synthesize", "evaluate", spec, folder / "synthetic.csv", "--label", "works")
    assert code == 0, err
    assert "NOT PRIVATE" in err
    assert "Total variation" in out
    assert charges(spec) == 1


def test_it_is_compared_whatever_the_real_one_is_written_in(tmp_path: Path) -> None:
    """An id, a column left out, dates and numbers in a format: the synthetic table has none of those."""
    many = 3000
    days = [f"{1 + place % 28:02d}.{1 + place % 2:02d}.2024" for place in range(many)]
    jobs = ["smith" if place % 2 else "nurse" for place in range(many)]
    lines = [f"{place};{days[place]};{place % 10},5;{jobs[place]};x" for place in range(many)]
    (tmp_path / "people.csv").write_text("\n".join(["id;day;hours;job;note", *lines]) + "\n")
    words = ["--epsilon", "9", "--delta", "4e-6", "--selection-delta", "2e-6", "--unit", "person"]
    assert run("ledger", "create", tmp_path / "people.ledger", *words)[0] == 0
    spec = tmp_path / "people.toml"
    spec.write_text(
        """\
[table]
source = "people.csv"
delimiter = ";"
decimal = ","
[privacy]
unit = "person"
column = "id"
max_rows = 1
ledger = "people.ledger"
epsilon = 4
delta = 1e-6
selection_delta = 5e-7
[columns]
day = { type = "date", first = 2024-01-01, last = 2024-02-29, period = "month", format = "%d.%m.%Y" }
hours = { type = "real", lower = 0, upper = 10, granularity = 0.5 }
job = { type = "text" }
note = { type = "category", keys = ["x"] }
[synthetic]
leave_out = ["note"]
"""
    )
    for ending in ("csv", "parquet"):
        file = tmp_path / ending / f"synthetic.{ending}"
        code, _, err = run("synthesize", spec, "-o", file, "--no-report")
        assert code == 0, err
        code, out, err = run("synthesize", "evaluate", spec, file, "--json")
        assert code == 0, err
        pairs = json.loads(out)["pairs"]
        assert len(pairs) == 3
        assert json.loads(out)["two_way"] < 0.2
    assert pl.read_parquet(file).schema["day"] == pl.Date


WRONG = {
    "undeclared": ("bins = { age", 'columns = ["height"]\nbins = { age', "not declared"),
    "no delta": ("delta = 1e-6\n", "", "needs a delta"),
    "a small target": ("[synthetic]", '[synthetic]\ntarget = "town"', "With the target 'town'"),
    "a word that is none": ("mark =", "marc =", "'synthetic.marc' is unknown. Did you mean 'mark'?"),
    "a word of a table that is none": ("size =", "sze =", "'table.sze' is unknown. Did you mean 'size'?"),
    "too large a pair": (
        "[hierarchies.places]",
        "".join(
            f"[columns.{name}]\ntype = 'date'\nfirst = 1950-01-01\nlast = 2020-12-31\nperiod = 'day'\n"
            for name in ("born", "moved")
        )
        + "[hierarchies.places]",
        "Declare fewer bins",
    ),
    "too many records for any machine": ("size = 2000", "size = 900000000000", "GiB of memory"),
    "a target that is no column": ("[synthetic]", '[synthetic]\ntarget = "height"', "not declared"),
    "a column of numbers without bounds": ("upper = 99\n", "", "upper"),
    "text, and a ledger without a part for keys": (
        "[hierarchies.places]",
        '[columns.pay]\ntype = "text"\n\n[hierarchies.places]',
        "keeps none for that",
    ),
    "unbounded": ("lower = 0\n", "", "lower"),
}


@pytest.mark.parametrize(("old", "new", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_costs_nothing_and_is_told_once(spec: Path, old: str, new: str, words: str) -> None:
    change(spec, old, new)
    if words.startswith("With"):
        change(spec, "size = 2000", "size = 200")
    code, out, err = run("synthesize", spec, "-o", spec.parent / "out")
    assert code == 2
    assert out == ""
    assert words in err
    assert err.count("\n") == 1
    assert not (spec.parent / "out").exists()
    assert charges(spec) == 0


def test_lines_that_end_in_carriage_returns_alone_are_refused_and_nothing_is_spent(spec: Path) -> None:
    file = spec.parent / "people.csv"
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r"))
    code, out, err = run("synthesize", spec, "-o", spec.parent / "out")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "carriage returns alone" in err
    assert not (spec.parent / "out").exists()
    assert charges(spec) == 0


@pytest.mark.slow  # two processes
def test_two_commands_at_once_never_overspend(spec: Path) -> None:
    """The ledger pays for one of them: the other is told so, and writes nothing."""
    change(spec, "epsilon = 1.0", "epsilon = 1.5")
    start = "from sourdine.cli import main; main()"
    folders = [spec.parent / name for name in ("one", "other")]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", start, "synthesize", str(spec), "-o", str(folder), "--no-report"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for folder in folders
    ]
    told = [process.communicate()[1] for process in started]
    codes = [process.returncode for process in started]
    assert codes.count(0) == 1, told
    refused = next(place for place, code in enumerate(codes) if code)
    *progress, why = told[refused].splitlines()
    assert all(line.endswith("s so far") for line in progress), told  # said where it takes two seconds
    assert "the budget has" in why
    assert [folder.exists() for folder in folders] == [place != refused for place in range(2)]
    assert charges(spec) == 1


def test_texts_that_nobody_listed_are_drawn_where_the_ledger_has_a_part_for_keys(spec: Path) -> None:
    frame = pl.DataFrame(rows(2000))
    jobs = pl.Series("job", ["nurse", "smith"] * 900 + [f"rare {place}" for place in range(200)])
    frame.with_columns(jobs).write_csv(spec.parent / "people.csv")
    words = ["--epsilon", "2", "--delta", "1e-6", "--selection-delta", "5e-7", "--unit", "person"]
    assert run("ledger", "create", spec.parent / "keys.ledger", *words)[0] == 0
    change(spec, "people.ledger", "keys.ledger")
    change(spec, "[hierarchies.places]", '[columns.job]\ntype = "text"\n\n[hierarchies.places]')
    folder = spec.parent / "out"
    assert run("synthesize", spec, "-o", folder / "synthetic.csv", "--no-report")[0] == 0
    found = pl.read_csv(folder / "synthetic.csv")["job"]
    assert set(found) == {"nurse", "smith", None}
    assert "rare" not in (folder / "model.json").read_text()


def test_other_mistakes_of_the_command_line(spec: Path) -> None:
    for words in (["synthesize"], ["synthesize", spec, "-o", spec.parent / "out.docx"], ["release", spec]):
        code, out, err = run(*words)
        assert (code, out, err.count("\n")) == (2, "", 1)
    assert charges(spec) == 0


def test_killed_half_way_it_is_paid_and_nothing_is_written(spec: Path) -> None:
    marker, folder = spec.parent / "reading", spec.parent / "out"
    script = (
        "import time\n"
        "from sourdine.frames.source import Source\n"
        "def hang(self, *words):\n"
        f"    open({str(marker)!r}, 'w').close()\n"
        "    time.sleep(600)\n"
        "Source.ask = Source.columns = hang\n"
        "from sourdine.cli import main\n"
        "main()\n"
    )
    words = [sys.executable, "-c", script, "synthesize", str(spec), "-o", str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        for _ in range(1200):
            if marker.exists() or process.poll() is not None:
                break
            time.sleep(0.05)
        assert process.poll() is None, process.communicate()
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert marker.exists()
    assert charges(spec) == 1
    assert not folder.exists()


def test_a_specification_may_ask_for_both(spec: Path) -> None:
    change(spec, "[synthetic]", '[[queries]]\nname = "people"\nask = ["count"]\nby = ["sex"]\n\n[synthetic]')
    assert run("synthesize", spec, "-o", spec.parent / "out", "--no-report")[0] == 0
    assert run("release", spec, "-o", spec.parent / "answers", "--no-report")[0] == 0
    assert charges(spec) == 2
