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


WRONG = {
    "undeclared": ("bins = { age", 'columns = ["height"]\nbins = { age', "not declared"),
    "no delta": ("delta = 1e-6\n", "", "needs a delta"),
    "a small target": ("[synthetic]", '[synthetic]\ntarget = "town"', "With the target 'town'"),
    "a word that is none": ("mark =", "marc =", "marc"),
    "text": (
        "[hierarchies.places]",
        '[columns.pay]\ntype = "text"\n\n[hierarchies.places]',
        "texts that nobody listed",
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
