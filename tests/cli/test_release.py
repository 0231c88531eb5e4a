import csv
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.core import files as disk
from sourdine.core.files import UNFINISHED
from tests.cli.table_case import Case, build, run

ALL = ["answers.csv", "certificate.json", "quality.csv", "release.json", "report.html"]


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return build(tmp_path)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_it_writes_answers_certificate_record_and_report(case: Case) -> None:
    folder = case.folder / "out"
    code, out, err = run("release", case.spec, "-o", folder)
    assert (code, err) == (0, "")
    assert names(folder) == ALL
    assert "Paid epsilon 0.5" in out
    assert "0.5 is left" in out
    assert all(str(folder / name) in out for name in ALL)
    found = rows(folder / "answers.csv")
    assert [(row["query"], row["sex"]) for row in found] == [("people", "f"), ("people", "m"), ("ages", "")]
    assert case.spent() == "1/2"
    code, out, _ = run("certificate", "verify", folder / "certificate.json", "--ledger", case.ledger)
    assert code == 0
    assert "line 1" in out
    assert json.loads((folder / "certificate.json").read_text())["secure"] is True


def test_with_next_to_no_noise_it_tells_the_truth(tmp_path: Path) -> None:
    case = build(tmp_path, epsilon="100000")
    case.change("epsilon = 0.5", "epsilon = 100000")
    assert run("release", case.spec, "-o", tmp_path / "out", "--no-report")[0] == 0
    values = [float(row["value"]) for row in rows(tmp_path / "out" / "answers.csv")]
    assert values == pytest.approx([100, 200, 50], abs=0.01)


def test_all_formats_hold_the_same(case: Case) -> None:
    folder = case.folder / "out"
    formats = [word for kind in ("csv", "json", "parquet") for word in ("--format", kind)]
    code, out, _ = run("release", case.spec, "-o", folder, "--no-report", "--json", *formats)
    assert code == 0
    told = json.loads(out)
    assert [Path(path).name for path in told["files"]] == [
        "answers.csv",
        "answers.json",
        "answers.parquet",
        "quality.csv",
        "quality.json",
        "quality.parquet",
        "certificate.json",
        "release.json",
    ]
    as_json = json.loads((folder / "answers.json").read_text())["rows"]
    parquet = duckdb.connect().read_parquet(str(folder / "answers.parquet"))
    as_parquet = [dict(zip(parquet.columns, row, strict=True)) for row in parquet.fetchall()]
    for one, two, three, four in zip(
        rows(folder / "answers.csv"), as_json, as_parquet, told["rows"], strict=True
    ):
        assert two == four
        for name in ("value", "lower", "upper"):
            assert float(one[name]) == two[name] == three[name]
        assert one["query"] == two["query"] == three["query"]
    assert (told["price"], told["left"], told["line"]) == ("1/2", "1/2", 1)


def test_a_long_table_is_cut_and_the_rest_is_named(case: Case) -> None:
    edges = ", ".join(str(edge) for edge in range(101))
    case.change('{ mean = "age" }', f'{{ histogram = "age", edges = [{edges}] }}')
    code, out, _ = run("release", case.spec, "-o", case.folder / "out", "--no-report")
    assert code == 0
    assert f"40 of 102 rows. The rest is in {case.folder / 'out'}." in out


def test_without_a_folder_one_is_named_after_the_specification(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(case.folder)
    assert run("release", "people.toml", "--no-report")[0] == 0
    assert names(case.folder / "people-release") == ALL[:4]


def test_the_ledger_refuses_and_nothing_is_written(case: Case) -> None:
    assert run("release", case.spec, "-o", case.folder / "a", "--no-report")[0] == 0
    assert run("release", case.spec, "-o", case.folder / "b", "--no-report")[0] == 0
    code, out, err = run("release", case.spec, "-o", case.folder / "c", "--no-report")
    assert (code, out) == (2, "")
    assert "the budget has 0 left. Nothing was spent." in err
    assert err.count("\n") == 1
    assert not (case.folder / "c").exists()
    assert case.spent() == "1"


BAD = {
    "missing column": (
        "[columns.age]",
        "[columns.height]\ntype = 'flag'\n[columns.age]",
        "none is called 'height'",
    ),
    "bounds reversed": ("lower = 0", "lower = 200", "'columns.age' is wrong: lower must be below upper"),
    "no bounds": ("lower = 0\nupper = 120", "", "'columns.age.lower' is missing"),
    "unknown query": ('"count"', '"mode"', "asks for 'mode', which is unknown"),
    "undeclared column": ('mean = "age"', 'mean = "pay"', "the column 'pay' is not declared"),
    "unit column absent": ("epsilon = 0.5", 'epsilon = 0.5\ncolumn = "id"', "none is called 'id'"),
    "no table": ("people.csv", "nobody.csv", "does not exist"),
    "unreadable ending": ("people.csv", "people.toml", "'.toml' is not read"),
    "unknown field": ("size = 300", "sice = 300", "'table.sice' is unknown"),
    "unknown block": ("[table]", "[tabel]\na = 1\n[table]", "no block 'tabel'"),
    "broken TOML": ("epsilon = 0.5", "epsilon = ", "is not valid TOML"),
    "no epsilon": ("epsilon = 0.5", "", "'privacy.epsilon' is missing"),
    "negative epsilon": ("epsilon = 0.5", "epsilon = -1", "'privacy.epsilon' is wrong"),
    "blank": ("lower = 0", 'lower = "FILL IN"', "'columns.age.lower' of"),
    "no ledger named": ('ledger = "people.ledger"', "", "names no ledger"),
    "no ledger there": ("people.ledger", "other.ledger", "make it with: sourdine ledger create"),
    "not a ledger": ('ledger = "people.ledger"', 'ledger = "people.csv"', "people.csv"),
    "another unit": ('unit = "person"', 'unit = "household"', "Name them alike"),
    "another relation": ("epsilon = 0.5", 'epsilon = 0.5\nneighbours = "replace"', "Declare neighbours ="),
    "another filter": ("epsilon = 0.5", 'epsilon = 0.5\ndelta = 1e-6\nnoise = "gaussian"', "has one, with"),
}


@pytest.mark.parametrize("slip", BAD)
def test_bad_input_is_told_in_one_sentence_and_costs_nothing(slip: str, case: Case) -> None:
    old, new, words = BAD[slip]
    case.change(old, new)
    code, out, err = run("release", case.spec, "-o", case.folder / "out")
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert not (case.folder / "out").exists()
    assert case.spent() == "0"


def test_a_column_of_another_type_is_refused(case: Case) -> None:
    duckdb.connect().execute(
        "COPY (SELECT DATE '2000-12-31' AS age, 'f' AS sex) "
        f"TO '{case.folder / 'people.parquet'}' (FORMAT parquet)"
    )
    case.change("people.csv", "people.parquet")
    code, out, err = run("release", case.spec, "-o", case.folder / "out")
    assert (code, out) == (2, "")
    assert "The column 'age' is declared to hold numbers, and the table holds DATE." in err
    assert case.spent() == "0"


def test_a_file_that_is_no_parquet_is_refused(case: Case) -> None:
    (case.folder / "people.parquet").write_text("age,sex\n")
    case.change("people.csv", "people.parquet")
    code, _, err = run("release", case.spec, "-o", case.folder / "out")
    assert (code, case.spent()) == (2, "0")
    assert "cannot be read as parquet" in err


def test_the_missing_ledger_is_made_by_the_command_that_is_told(case: Case) -> None:
    case.change("people.ledger", "our people.ledger")
    case.change("epsilon = 0.5", "epsilon = 0.5\ndelta = 1e-6")
    _, _, err = run("release", case.spec, "-o", case.folder / "out")
    words = shlex.split(err.split("make it with: sourdine ")[1])
    assert run(*words)[0] == 0
    assert run("release", case.spec, "-o", case.folder / "out", "--no-report")[0] == 0


@pytest.mark.parametrize("taken", ALL)
def test_what_is_published_is_never_written_over(case: Case, taken: str) -> None:
    folder = case.folder / "out"
    folder.mkdir()
    (folder / taken).write_text("mine")
    code, _, err = run("release", case.spec, "-o", folder)
    assert code == 2
    assert f"already holds a file {taken}" in err
    assert names(folder) == [taken]
    assert (folder / taken).read_text() == "mine"
    assert case.spent() == "0"


def test_a_place_that_cannot_be_a_folder_costs_nothing(case: Case) -> None:
    code, _, err = run("release", case.spec, "-o", case.spec)
    assert (code, case.spent()) == (2, "0")
    assert "cannot be a folder" in err


def test_an_unknown_format_costs_nothing(case: Case) -> None:
    code, _, err = run("release", case.spec, "-o", case.folder / "out", "--format", "ods")
    assert (code, case.spent()) == (2, "0")
    assert "must be one of csv, json, parquet, xlsx" in err


def test_what_is_paid_is_published_even_if_no_page_can_be_drawn(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("sourdine.tables.publication.page_of", fail)
    assert run("release", case.spec, "-o", case.folder / "out")[0] != 0
    assert names(case.folder / "out") == ALL[:4]


def _full(monkeypatch: pytest.MonkeyPatch, places: str) -> None:
    """A disk that is full where a path holds these letters, from the record on."""
    write = disk.write_new

    def full(path: Path, content: str) -> None:
        write(path, content[:10] if path.name == "release.json" else content)
        if path.name == "release.json" and places in str(path):
            raise OSError(28, "No space left on device")
        if path.name == "release.json":
            path.unlink()
            write(path, content)

    monkeypatch.setattr(disk, "write_new", full)


def test_on_a_full_disk_nothing_is_published_and_the_payment_is_told(
    case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    _full(monkeypatch, "")
    before = names(case.folder)
    code, out, err = run("release", case.spec, "-o", case.folder / "out")
    assert (code, out) == (2, "")
    assert "The release was paid: line 1 of the ledger." in err
    assert "What was charged stays charged, and once more would be other noise" in err
    assert err.count("\n") == 1
    assert case.spent() == "1/2"
    assert names(case.folder) == before


def test_what_is_paid_is_kept_elsewhere_if_the_place_is_full(
    case: Case, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    _full(monkeypatch, "unfinished")
    before = names(case.folder)
    code, out, err = run("release", case.spec, "-o", case.folder / "out")
    assert (code, out) == (2, "")
    assert names(case.folder) == before
    (kept,) = other.glob("sourdine-kept-*/out")
    assert f"They lie whole in {kept}: move that folder" in " ".join(err.split())
    assert names(kept) == ALL
    assert verify(case, kept)[0] == 0
    assert case.spent() == "1/2"


def test_without_room_nothing_is_paid(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, start: int, length: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    before = names(case.folder)
    code, _, err = run("release", case.spec, "-o", case.folder / "out")
    assert (code, case.spent()) == (2, "0")
    assert "Nothing was spent. Make room" in err
    assert names(case.folder) == before


def test_files_are_for_their_owner_unless_they_are_shared(case: Case) -> None:
    before = os.umask(0o022)
    try:
        assert run("release", case.spec, "-o", case.folder / "own", "--format", "parquet")[0] == 0
        assert run("release", case.spec, "-o", case.folder / "all", "--format", "parquet", "--shared")[0] == 0
        assert run("--shared", "ledger", "export", case.ledger, "-o", case.folder / "all.csv")[0] == 0
        assert run("ledger", "export", case.ledger, "-o", case.folder / "own.csv")[0] == 0
    finally:
        assert os.umask(before) == 0o022
    rights = {
        name: {(case.folder / name).stat().st_mode & 0o777}
        | {path.stat().st_mode & 0o777 for path in (case.folder / name).iterdir()}
        for name in ("own", "all")
    }
    assert rights == {"own": {0o700, 0o600}, "all": {0o755, 0o644}}
    assert [(case.folder / f"{name}.csv").stat().st_mode & 0o777 for name in rights] == [0o600, 0o644]


KILLED = """
import json, os, signal, sys
from pathlib import Path
from sourdine.accounting.ledger import Ledger
from sourdine.cli import release
import altair, duckdb, jinja2, narwhals, sourdine.report.pages.release, sourdine.tables.release
from sourdine.tables.publication import Record

EVENTS = {"open", "os.rename", "os.link", "os.mkdir", "os.rmdir", "os.chmod", "os.remove", "shutil.rmtree"}
folder, found = Path(sys.argv[1]), []
for last in range(0, 200, 6):
    out = folder / f"out{last}"
    if not (child := os.fork()):
        of, sync, seen = Record.of, os.fsync, []

        def step(event, words):
            if seen and event in EVENTS and str(words[0]).startswith(str(folder)):
                seen.append(event)
                if len(seen) > last + 1:
                    os.kill(os.getpid(), signal.SIGKILL)

        def counted(handle):
            sync(handle)
            step("open", [folder])

        def begun(*words):
            seen.append("the noise is drawn")
            return of(*words)

        Record.of, os.fsync = begun, counted
        sys.addaudithook(step)
        release.publish(folder / "people.toml", out)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    kept = sorted(path.name for path in out.iterdir()) if out.exists() else []
    found.append([os.waitstatus_to_exitcode(status), kept])
    if found[-1][0] == 0:
        break
print(json.dumps(found))
"""


@pytest.mark.slow
def test_killed_at_any_step_all_files_are_there_or_none(tmp_path: Path) -> None:
    case = build(tmp_path, epsilon="100")
    words = [sys.executable, "-W", "ignore", "-c", KILLED, str(case.folder)]
    told = subprocess.run(words, capture_output=True, text=True, timeout=1200, check=False)
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout.strip().splitlines()[-1])
    assert [code for code, _ in found] == [-signal.SIGKILL] * (len(found) - 1) + [0]
    assert len(found) > 8
    kept = [names for _, names in found]
    assert [] in kept
    assert all(names in ([], ALL) for names in kept)
    with Ledger.open(case.ledger) as ledger:
        assert len(ledger.history()) == len(found)


def test_an_empty_table_is_answered_like_any_other(case: Case) -> None:
    (case.folder / "people.csv").write_text("age,sex\n")
    case.change(
        '[{ mean = "age" }]',
        '[{ mean = "age" }, { deviation = "age" }, { quantiles = "age", levels = [0.5] }, { sum = "age" }, '
        '{ proportion = "age", below = 9 }, { histogram = "age", edges = [0, 9] }]',
    )
    code, _, err = run("release", case.spec, "-o", case.folder / "out")
    assert (code, err) == (0, "")
    assert names(case.folder / "out") == ALL


def test_killed_between_charge_and_output_the_spend_stands_alone(case: Case) -> None:
    marker, folder = case.folder / "reading", case.folder / "out"
    script = (
        "import sys, time\n"
        "from sourdine.frames.source import Source\n"
        "def hang(self, *words):\n"
        f"    open({str(marker)!r}, 'w').close()\n"
        "    time.sleep(600)\n"
        "Source.ask = Source.columns = hang\n"
        "from sourdine.cli import main\n"
        "main()\n"
    )
    words = [sys.executable, "-c", script, "release", str(case.spec), "-o", str(folder)]
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
    assert case.spent() == "1/2"
    with Ledger.open(case.ledger) as ledger:
        assert len(ledger.history()) == 1
    assert not folder.exists()
    assert names(case.folder / f".out{UNFINISHED}") == ["ballast", "out"]
    code, _, err = run("release", case.spec, "-o", folder)
    assert code == 2
    assert "was cut short after it was paid. It holds no certificate, so it is not whole" in err
    assert case.spent() == "1/2"


def test_the_last_of_three_releases_is_not_paid(case: Case) -> None:
    case.change("epsilon = 0.5", "epsilon = 0.4")
    told = [run("release", case.spec, "--no-report", "-o", case.folder / f"out{k}") for k in range(3)]
    assert [code for code, _, _ in told] == [0, 0, 2]
    assert "Nothing was spent" in told[2][2]
    assert case.spent() == "4/5"
    assert [(case.folder / f"out{k}").exists() for k in range(3)] == [True, True, False]


@pytest.mark.slow
def test_processes_that_release_at_once_never_overspend(case: Case) -> None:
    case.change("epsilon = 0.5", "epsilon = 0.4")
    program = "from sourdine.cli import main; main()"
    words = [sys.executable, "-c", program, "release", str(case.spec), "--no-report", "-o"]
    started = [
        subprocess.Popen(
            [*words, str(case.folder / f"out{k}")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for k in range(3)
    ]
    told = [process.communicate(timeout=300) for process in started]
    codes = [process.returncode for process in started]
    assert sorted(codes) == [0, 0, 2], told
    assert case.spent() == "4/5"
    for k, (code, (_, err)) in enumerate(zip(codes, told, strict=True)):
        assert (case.folder / f"out{k}").exists() == (code == 0)
        assert ("Nothing was spent" in err) == (code == 2)


def test_help_shows_an_example() -> None:
    for verb in ("init", "plan", "release", "report", "demo"):
        code, out, _ = run(verb, "--help")
        assert code == 0
        assert f"sourdine {verb}" in out.replace("Usage: sourdine", "")


def test_files_terminal_and_report_show_the_same_numbers(case: Case) -> None:
    folder = case.folder / "out"
    out = run("release", case.spec, "-o", folder)[1]
    listed = [
        [float(row[end]) for end in ("value", "lower", "upper")] for row in rows(folder / "answers.csv")
    ]
    told = out[: out.index("Data quality:")]
    shown = [line.split("│")[4:7] for line in told.splitlines() if line.startswith("│")]
    assert [[float(cell.replace(",", "")) for cell in line] for line in shown] == listed
    held = json.loads((folder / "release.json").read_text())["answers"]
    ends = [each for one in held for each in zip(one["value"], one["lower"], one["upper"], strict=True)]
    assert [list(each) for each in ends] == listed
    page = (folder / "report.html").read_text()
    body = page[page.index("All values") : page.index("How well the data fits")]
    cells = re.findall(r'data-column="(?:value|lower|upper)" class="number">([^<]*)<', body)
    assert [float(cell.replace(",", "")) for cell in cells] == [number for line in listed for number in line]


def verify(case: Case, place: Path) -> tuple[int, str, str]:
    code, out, err = run("certificate", "verify", place, "--ledger", case.ledger)
    return code, " ".join(out.split()), err


def test_the_certificate_is_tied_to_the_files(case: Case) -> None:
    folder = case.folder / "out"
    run("release", case.spec, "-o", folder, "--no-report")
    stated = json.loads((folder / "certificate.json").read_text())["digests"]
    for name in ("answers.csv", "quality.csv", "release.json"):
        assert stated[name] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    for place in (folder, folder / "certificate.json"):
        code, out, _ = verify(case, place)
        assert code == 0
        assert "As published with the certificate: answers.csv, quality.csv, release.json." in out
        assert "The ledger vouches for the payment, not for the numbers" in out
    told = json.loads(run("certificate", "verify", folder, "--ledger", case.ledger, "--json")[1])
    assert (told["files"], told["absent"]) == (["answers.csv", "quality.csv", "release.json"], [])
    (folder / "release.json").unlink()
    alone = folder / "certificate.json"
    assert "Not beside the certificate, so not compared: release.json." in verify(case, alone)[1]
    code, out, err = verify(case, folder)
    assert code == 1
    assert "release.json is missing: it was published with the certificate." in err
    (folder / "answers.csv").write_text("query,value\npeople,7\n")
    for place in (folder, alone):
        code, out, err = verify(case, place)
        assert code == 1
        assert "answers.csv was cut short or changed" in err


def test_the_certificate_covers_every_file(case: Case) -> None:
    folder = case.folder / "out"
    run("release", case.spec, "-o", folder, "--format", "csv", "--format", "json", "--format", "parquet")
    stated = json.loads((folder / "certificate.json").read_text())
    assert stated["complete"] is True
    assert sorted([*stated["digests"], "certificate.json"]) == names(folder)
    assert stated["sizes"] == {name: (folder / name).stat().st_size for name in stated["digests"]}


def test_a_file_in_another_encoding_is_read_as_declared(tmp_path: Path) -> None:
    case = build(tmp_path, epsilon="100000")
    case.change("epsilon = 0.5", "epsilon = 100000")
    case.change('["f", "m"]', '["é", "m"]')
    case.change("size = 300", 'encoding = "latin-1"')
    table = case.folder / "people.csv"
    table.write_bytes(table.read_text().replace("f", "é").encode("latin-1"))
    assert run("release", case.spec, "-o", tmp_path / "out", "--no-report")[0] == 0
    assert [float(row["value"]) for row in rows(tmp_path / "out" / "answers.csv")][:2] == [100, 200]
    case.change('"latin-1"', '"ebcdic"')
    code, _, err = run("release", case.spec, "-o", tmp_path / "again")
    assert code == 2
    assert "must be one of" in err
