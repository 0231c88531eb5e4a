import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from fractions import Fraction
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

import pytest

from sourdine.accounting import Spend
from sourdine.accounting.ledger import Ledger, Period, PureBudget, RenyiBudget, Terms, store
from sourdine.accounting.ledger.chain import fingerprint
from sourdine.accounting.ledger.file import database
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter, LedgerError
from sourdine.mechanisms import Gaussian, Laplace
from tests.accounting.ledger.files import behind, forget, in_old_form, rewrite
from tests.campaigns.ledger.crash import new_ledger, one_spend
from tests.errors import refusal_of
from tests.narrow import some

SPEND = one_spend()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "survey.ledger"


def charged(path: Path, count: int = 3) -> Ledger:
    ledger = new_ledger(path, Fraction(1))
    for _ in range(count):
        ledger.charge(SPEND, purpose="p")
    return ledger


# The main file alone, after the ledger is closed in each possible way.


@pytest.mark.parametrize("way", ["close", "with", "forgotten"])
def test_a_closed_ledger_is_one_file(path: Path, tmp_path: Path, way: str) -> None:
    ledger = charged(path)
    if way == "with":
        with ledger:
            pass
    elif way == "close":
        ledger.close()
    del ledger
    assert sorted(item.name for item in tmp_path.iterdir()) == ["survey.ledger"]
    moved = tmp_path / "moved.ledger"
    shutil.copy(path, moved)
    assert Ledger.open(moved).status().blocks == 3


def test_a_program_that_ends_leaves_one_file(path: Path, tmp_path: Path) -> None:
    charged(path, 1).close()
    program = f"""
        import sys
        from tests.campaigns.ledger.crash import one_spend
        from sourdine.accounting.ledger import Ledger
        sys.ledger = Ledger.open({str(path)!r})
        sys.ledger.charge(one_spend(), purpose="p")
    """
    root = Path(__file__).parents[4]
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, cwd=root)
    assert [item.name for item in tmp_path.iterdir()] == ["survey.ledger"]
    assert Ledger.open(path).status().blocks == 2


def test_closing_beside_another_writer_loses_nothing_and_the_next_use_opens_again(path: Path) -> None:
    first = charged(path)
    second = Ledger.open(path)
    second.charge(SPEND, purpose="p")
    first.close()
    second.charge(SPEND, purpose="p")
    assert first.charge(SPEND, purpose="p").number == 6
    assert len(second.history()) == 6


def test_a_child_that_closes_leaves_the_ledger_of_its_parent_alone(path: Path) -> None:
    ledger = charged(path)
    child = os.fork()
    if child == 0:
        ledger.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert ledger.charge(SPEND, purpose="p").number == 4
    assert len(Ledger.open(path).history()) == 4


# Backups.


def test_a_backup_is_read_and_never_charged(path: Path, tmp_path: Path) -> None:
    ledger = charged(path)
    kept = ledger.backup(tmp_path / "kept.ledger")
    ledger.charge(SPEND, purpose="later")
    assert [entry.fingerprint for entry in kept.history()] == [
        entry.fingerprint for entry in ledger.history()[:3]
    ]
    assert kept.terms == ledger.terms
    assert (kept.is_backup, ledger.is_backup) == (True, False)
    assert kept.status().is_backup
    assert "pays for nothing" in kept._repr_html_()
    for opened in (kept, Ledger.open(tmp_path / "kept.ledger")):
        with pytest.raises(LedgerError, match="is a backup, and a backup pays for nothing"):
            opened.charge(SPEND, purpose="twice")
    again = kept.backup(tmp_path / "again.ledger")
    with pytest.raises(LedgerError, match="pays for nothing"):
        again.charge(SPEND, purpose="twice")
    assert not list(tmp_path.glob("kept.ledger-*"))  # a backup has no log


def test_a_backup_refuses_lines_by_itself_even_in_the_hands_of_other_software(
    path: Path, tmp_path: Path
) -> None:
    charged(path).backup(tmp_path / "kept.ledger")
    with closing(sqlite3.connect(tmp_path / "kept.ledger")) as kept, closing(sqlite3.connect(path)) as live:
        with pytest.raises(sqlite3.IntegrityError, match="a backup takes no lines"):
            kept.execute("INSERT INTO lines VALUES (4, '', '', '')")
        forms = [each.execute("PRAGMA application_id").fetchone() for each in (kept, live)]
        assert forms[0] != forms[1]


def test_a_ledger_that_cannot_be_opened_leaves_no_connection_open(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From 3.13 on Python warns of such a connection."""
    charged(path).close()
    with behind(path) as connection:
        connection.execute("UPDATE terms SET content = '{}'")
    connect, made = database.connect, list[sqlite3.Connection]()

    def noted(place: Path, *, look: bool = False, guarded: bool = False) -> sqlite3.Connection:
        made.append(connect(place, look=look, guarded=guarded))
        return made[-1]

    monkeypatch.setattr(database, "connect", noted)
    with pytest.raises(LedgerError):
        Ledger.open(path)
    assert made
    for each in made:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            each.execute("SELECT 1")


def test_a_backup_overwrites_nothing_and_is_not_made_of_a_damaged_ledger(path: Path, tmp_path: Path) -> None:
    ledger = charged(path)
    with pytest.raises(LedgerError, match=r"a file at .* already"):
        ledger.backup(path)
    rewrite(path, 1, total="1/2")
    with pytest.raises(LedgerError, match="changed outside Sourdine"):
        ledger.backup(tmp_path / "kept.ledger")
    assert not (tmp_path / "kept.ledger").exists()


# Without the right to write.


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def as_nobody(act: Callable[[], str]) -> str:
    """What an act says in a process without rights."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            os.write(write, act().encode())
        except LedgerError as problem:
            os.write(write, f"LedgerError: {problem}".encode())
        except BaseException as problem:
            os.write(write, repr(problem).encode())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as answer:
        return answer.read()


@pytest.mark.parametrize("folder_mode", [0o555, 0o777])
@pytest.mark.parametrize("live", [False, True])
def test_a_ledger_that_may_only_be_read_is_read(open_folder: Path, folder_mode: int, live: bool) -> None:
    path = open_folder / "a.ledger"
    ledger = charged(path)
    if not live:
        ledger.close()
    path.chmod(0o444)
    open_folder.chmod(folder_mode)
    files = sorted(item.name for item in open_folder.iterdir())
    assert as_nobody(lambda: str(Ledger.open(path).status().blocks)) == "3"
    assert as_nobody(lambda: str(len(Ledger.open(path).history()))) == "3"
    refusal = as_nobody(lambda: str(Ledger.open(path).charge(SPEND, purpose="p")))
    assert refusal.startswith("LedgerError: ")
    assert "cannot be written here. Nothing was spent." in refusal
    assert sorted(item.name for item in open_folder.iterdir()) == files  # readers leave nothing behind


def test_a_reader_sees_each_later_charge(open_folder: Path) -> None:
    path = open_folder / "a.ledger"
    charged(path).close()
    path.chmod(0o644)

    def watch() -> str:
        reader = Ledger.open(path)
        first = reader.status().blocks
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        return f"{first} {reader.status().blocks}"

    ready, go = os.pipe(), os.pipe()
    writer = os.fork()
    if writer == 0:
        os.read(ready[0], 1)
        with Ledger.open(path) as ledger:
            ledger.charge(SPEND, purpose="p")
        os.write(go[1], b"x")
        os._exit(0)
    assert as_nobody(watch) == "3 4"
    os.waitpid(writer, 0)


def test_a_log_that_cannot_be_read_is_not_passed_over(open_folder: Path) -> None:
    """A file of the old form and its log without SQLite's index, in a folder that takes none."""
    path, live = open_folder / "a.ledger", open_folder / "live.ledger"
    charged(open_folder / "new.ledger").close()
    connection = in_old_form(open_folder / "new.ledger", live)
    shutil.copy(live, path)
    shutil.copy(f"{live}-wal", f"{path}-wal")
    connection.close()
    path.chmod(0o444)
    open_folder.chmod(0o555)
    told = as_nobody(lambda: str(Ledger.open(path).status().blocks))
    assert "in its log, which cannot be read here" in told


def test_a_ledger_that_may_not_be_read_is_one_sentence(open_folder: Path) -> None:
    path = open_folder / "a.ledger"
    charged(path).close()
    path.chmod(0)
    assert "cannot be read here" in as_nobody(lambda: str(Ledger.open(path).status()))
    path.chmod(0o444)
    open_folder.chmod(0)
    assert "cannot be read here" in as_nobody(lambda: str(Ledger.open(path).status()))


# Damage that keeps the chain whole.


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        "{",
        "[]",
        "null",
        "{}",
        '{"price": "1/0"}',
        '{"price": "1e999999999"}',
        '{"price": 5}',
        '{"price": "-1"}',
        '{"price": "1/2"}',  # more than the total
    ],
)
@pytest.mark.parametrize("act", ["status", "history", "charge", "entry", "forecast"])
def test_a_damaged_last_line_is_one_sentence(path: Path, content: str, act: str) -> None:
    charged(path, 2).close()
    rewrite(path, 2, content=content)
    ledger = Ledger.open(path)
    acts: dict[str, Callable[[], object]] = {
        "status": ledger.status,
        "history": ledger.history,
        "charge": lambda: ledger.charge(SPEND, purpose="p"),
        "entry": lambda: ledger.entry(2),
        "forecast": lambda: ledger.forecast(SPEND),
    }
    with pytest.raises(LedgerError, match=r"Line 2 of the ledger .* cannot be read, or contradicts itself"):
        acts[act]()


@pytest.mark.parametrize("total", ["1/0", "-1", "0", "1/2000", "1e999999999", "x"])
def test_a_damaged_total_is_never_built_on(path: Path, total: str) -> None:
    charged(path, 2).close()
    rewrite(path, 2, total=total)
    with pytest.raises(LedgerError, match="contradicts itself"):
        Ledger.open(path).charge(SPEND, purpose="p")
    with pytest.raises(LedgerError, match="contradicts itself"):
        Ledger.open(path).status()


@pytest.mark.parametrize("field", ["time", "purpose", "author", "spends", "software"])
@pytest.mark.parametrize("value", [None, 5, True, {}, [[]], [{"mechanism": {}}], "x"])
def test_a_field_of_another_kind_is_one_sentence(path: Path, field: str, value: object) -> None:
    if value == "x" and field in ("purpose", "author", "software"):
        value = ["x"]
    charged(path, 1).close()
    with Ledger.open(path) as ledger:
        held = json.loads(some(ledger._store.line(1)).content)
    rewrite(path, 1, content=json.dumps(held | {field: value}))
    with pytest.raises(LedgerError, match="Line 1 of the ledger"):
        Ledger.open(path).history()


@pytest.mark.parametrize("change", [{"period": 5}, {"period_total": "x"}, {"period_total": "1/9999"}])
def test_a_damaged_period_is_one_sentence(path: Path, change: dict[str, object]) -> None:
    terms = Terms(
        budget=PureBudget(limit=Fraction(1)),
        unit="person",
        neighbours=Neighbours.ADD_REMOVE,
        period=Period.DAY,
        period_limit=Fraction(1, 2),
    )
    ledger = Ledger.create(path, terms)
    ledger.charge(SPEND, purpose="p")
    held = json.loads(some(ledger._store.line(1)).content)
    ledger.close()
    rewrite(path, 1, content=json.dumps(held | change))
    for act in (Ledger.status, Ledger.history, lambda opened: opened.charge(SPEND, purpose="p")):
        with pytest.raises(LedgerError, match="contradicts itself"):
            act(Ledger.open(path))


@pytest.mark.parametrize(
    "content", ["[" * 100_000, "[]", "{}", '{"budget": {"name": "pure", "limit": "1/0"}}']
)
def test_terms_that_cannot_be_read_are_one_sentence(path: Path, content: str) -> None:
    charged(path, 1).close()
    with behind(path) as connection:
        mark = fingerprint("", content)
        connection.execute("UPDATE terms SET content = ?, fingerprint = ?", (content, mark))
    with pytest.raises(LedgerError, match=r"terms of the ledger .* cannot be read"):
        Ledger.open(path)


def test_a_missing_line_before_the_last_shows_at_once(path: Path) -> None:
    ledger = charged(path, 3)
    with behind(path) as connection:
        connection.execute("DELETE FROM lines WHERE number = 2")
    with pytest.raises(LedgerError, match="changed outside Sourdine"):
        ledger.charge(SPEND, purpose="p")
    with pytest.raises(LedgerError, match="changed outside Sourdine"):
        ledger.entry(3)


def test_a_line_changed_by_another_process_shows_to_a_ledger_that_wrote_it(path: Path) -> None:
    """What was checked once is remembered, but the file is still read at every charge."""
    ledger = charged(path, 3)
    with behind(path) as connection:
        connection.execute("UPDATE lines SET total = '1/1000' WHERE number = 3")
    with pytest.raises(LedgerError, match="changed outside Sourdine"):
        ledger.charge(SPEND, purpose="p")
    with behind(path) as connection:
        connection.execute("UPDATE lines SET total = '3/1000' WHERE number = 3")
        connection.execute("UPDATE lines SET fingerprint = 'x' WHERE number = 2")
    with pytest.raises(LedgerError, match="changed outside Sourdine"):
        ledger.charge(SPEND, purpose="p")


# Prices replayed.


def lowered(path: Path, share: Fraction) -> None:
    """The first line with its price and total scaled."""
    with Ledger.open(path) as ledger:
        line = some(ledger._store.line(1))
    held = json.loads(line.content)
    price = str(Fraction(held["price"]) * share)
    rewrite(path, 1, content=json.dumps(held | {"price": price}), total=price)


@pytest.mark.parametrize(
    ("budget", "mechanism", "is_float"),
    [
        (PureBudget(limit=Fraction(9)), Laplace(scale=Fraction(3)), False),
        (RenyiBudget(limit=Fraction(9), order=Fraction(8)), Gaussian(sigma=Fraction(3)), True),
    ],
)
def test_floats_replay_within_rounding_and_fractions_exactly(
    path: Path, budget: PureBudget | RenyiBudget, mechanism: Laplace | Gaussian, is_float: bool
) -> None:
    terms = Terms(budget=budget, unit="person", neighbours=Neighbours.ADD_REMOVE, delta=1e-6)
    distance = Distance.l2(1) if isinstance(mechanism, Gaussian) else Distance.l1(1)
    with Ledger.create(path, terms) as ledger:
        ledger.charge(Spend(mechanism=mechanism, distance=distance), purpose="p")
    lowered(path, 1 - Fraction(1, 10**10))
    if is_float:
        assert len(Ledger.open(path).history()) == 1
    else:
        with pytest.raises(LedgerError, match="does not replay"):
            Ledger.open(path).history()


def test_a_price_in_floats_that_is_too_low_shows(path: Path) -> None:
    terms = Terms(
        budget=RenyiBudget(limit=Fraction(9), order=Fraction(8)),
        unit="person",
        neighbours=Neighbours.ADD_REMOVE,
        delta=1e-6,
    )
    with Ledger.create(path, terms) as ledger:
        ledger.charge(Spend(mechanism=Gaussian(sigma=3), distance=Distance.l2(1)), purpose="p")
    lowered(path, 1 - Fraction(1, 10**8))
    with pytest.raises(LedgerError, match="does not replay"):
        Ledger.open(path).history()


def test_hundreds_of_scales_without_a_common_factor_can_be_paid(path: Path) -> None:
    """Each float scale brings a denominator of its own; their exact sum would have thousands of digits."""
    ledger = new_ledger(path, Fraction(10**6))
    scales = [10 / (k + 3) + 0.1 for k in range(400)]
    spends = [Spend(mechanism=Laplace(scale=scale), distance=Distance.l1(1)) for scale in scales]
    for spend in spends[:300]:
        ledger.charge(spend, purpose="p")
    ledger.charge(*spends, purpose="all in one block")
    truth = sum((1 / Fraction(scale) for scale in scales[:300] + scales), Fraction(0))
    spent = ledger.status().spent
    assert truth <= spent < truth + Fraction(1, 2**200)
    assert ledger.history()[-1].total == spent


# What a charge states.


def test_a_charge_without_spends_is_refused(path: Path) -> None:
    with pytest.raises(InvalidParameter, match="at least one spend"):
        new_ledger(path, Fraction(1)).charge(purpose="nothing")


def test_what_is_stated_with_a_charge_is_recorded_as_it_was(path: Path) -> None:
    ledger, declared = new_ledger(path, Fraction(1)), {"upper": "10"}
    ledger.charge(SPEND, purpose='a "quoted" purpose', author="Zoë\n", secure=True, declared=declared)
    declared["upper"] = "11"
    ledger.charge(SPEND, purpose='a "quoted" purpose', author="Zoë\n", secure=True, declared=declared)
    ledger.charge(SPEND, purpose='a "quoted" purpose', author="Zoë\n", secure=False)
    ledger.charge(SPEND, purpose="plain", author="Zoë\n")
    entries = ledger.history()
    # SHA-256 of the very characters, as any other tool computes it
    marks = [sha256(text).hexdigest() for text in (b'{"upper":"10"}', b'{"upper":"11"}')]
    assert [entry.declared_digest for entry in entries] == [*marks, None, None]
    assert {entry.declared for entry in entries} == {None}
    assert [entry.secure for entry in entries] == [True, True, False, None]
    assert [entry.purpose for entry in entries] == ['a "quoted" purpose'] * 3 + ["plain"]
    assert {entry.author for entry in entries} == {"Zoë\n"}
    assert {entry.software for entry in entries} == {f"sourdine {version('sourdine')}"}
    assert ledger.entry(2) == entries[1]
    assert ledger.entry(5) is None


@pytest.mark.parametrize(
    "stated",
    [
        {"secure": "false"},
        {"secure": 1},
        {"declared": "x"},
        {"declared": {"x": 1}},
        {"declared": {1: "x"}},
    ],
)
def test_a_bad_statement_is_refused(path: Path, stated: dict[str, object]) -> None:
    ledger = new_ledger(path, Fraction(1))
    with refusal_of(next(iter(stated)), "Ledger"):
        ledger.charge(SPEND, purpose="p", **stated)  # type: ignore[arg-type]
    assert ledger.status().blocks == 0


# What this process has seen.


@pytest.mark.parametrize("way", ["over", "instead"])
def test_an_older_copy_that_is_put_back_is_refused_by_who_saw_later_lines(
    path: Path, tmp_path: Path, way: str
) -> None:
    ledger = charged(path, 2)
    shutil.copy(path, tmp_path / "copy")
    ledger.charge(SPEND, purpose="later")
    if way == "over":
        shutil.copy(tmp_path / "copy", path)
    else:
        (tmp_path / "copy").rename(path)
        with pytest.raises(LedgerError, match="no longer the ledger that was opened"):
            ledger.charge(SPEND, purpose="again")
    for opened in (ledger, Ledger.open(path)):
        for act in (opened.status, opened.history, lambda: ledger.charge(SPEND, purpose="again")):
            with pytest.raises(LedgerError, match=r"ends at line 2, .* line 3 was there before"):
                act()
    forget()
    assert Ledger.open(path).status().blocks == 2


def test_lines_that_follow_an_older_copy_are_not_overwritten_from_what_was_read_before(path: Path) -> None:
    """SQLite takes its pages for current if the file was changed as often."""
    first, second = new_ledger(path, Fraction(1)), Ledger.open(path)
    first.charge(one_spend(), purpose="before")
    older = path.read_bytes()
    second.charge(one_spend(), purpose="gone with the copy")
    path.write_bytes(older)
    forget()
    first.charge(one_spend(), purpose="after")
    forget()
    second.charge(one_spend(), purpose="after that")
    assert [entry.purpose for entry in Ledger.open(path).history()] == ["before", "after", "after that"]


@pytest.mark.parametrize("flip", [0x80, 0x01])
def test_a_flipped_bit_is_one_sentence_or_changes_nothing(path: Path, flip: int) -> None:
    """It may make a text of what is none, or nothing of a text."""
    whole = charged(path, 2).history()
    content = path.read_bytes()
    used = [place for place, byte in enumerate(content) if byte]
    for place in used[flip % 7 :: 7]:
        path.write_bytes(content[:place] + bytes([content[place] ^ flip]) + content[place + 1 :])
        forget()
        with suppress(LedgerError), Ledger.open(path) as ledger:
            assert ledger.history() == whole


@pytest.mark.parametrize(("column", "wrong"), [("content", None), ("total", 1), ("fingerprint", None)])
def test_a_line_of_other_types_is_damage(path: Path, column: str, wrong: object) -> None:
    charged(path, 2)
    with behind(path) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET sql = 'CREATE TABLE lines (number INTEGER PRIMARY KEY, "
            "content, total, fingerprint)' WHERE name = 'lines'"
        )
    with behind(path) as connection:
        connection.execute(f"UPDATE lines SET {column} = ? WHERE number = 1", (wrong,))
    with Ledger.open(path) as ledger:
        for act in (ledger.status, ledger.history, lambda: ledger.charge(SPEND, purpose="p")):
            with pytest.raises(LedgerError, match="damaged"):
                act()


def test_a_line_that_was_seen_and_is_another_now_is_refused(path: Path, tmp_path: Path) -> None:
    ledger = charged(path, 2)
    shutil.copy(path, tmp_path / "twin")
    ledger.charge(SPEND, purpose="here")
    twin = Ledger.open(tmp_path / "twin")
    for _ in range(2):
        twin.charge(SPEND, purpose="there")
    twin.close()
    shutil.copy(tmp_path / "twin", path)
    with pytest.raises(LedgerError, match="line 3 was there before"):
        ledger.charge(SPEND, purpose="again")


def test_a_new_ledger_at_an_old_place_is_another_ledger(path: Path) -> None:
    charged(path, 2).close()
    path.unlink()
    assert charged(path, 1).status().blocks == 1


# Ledgers of version 0.1, with a log and without a mark.


def test_an_old_form_is_read_as_it_is_and_brought_up_by_the_first_charge(path: Path, tmp_path: Path) -> None:
    charged(path).close()
    old = tmp_path / "old.ledger"
    in_old_form(path, old).close()
    before = old.read_bytes()
    first, second = Ledger.open(old), Ledger.open(old)
    assert [first.status().blocks, len(second.history())] == [3, 3]
    assert old.read_bytes() == before
    assert second.charge(SPEND, purpose="p").number == 4
    assert first.charge(SPEND, purpose="p").number == 5
    assert sorted(item.name for item in tmp_path.iterdir()) == ["old.ledger", "survey.ledger"]
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone()[0] == database.VERSION == 4
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
        assert connection.execute("SELECT number FROM mark").fetchall() == [(5,)]


def test_an_old_form_that_somebody_has_open_is_read_and_not_brought_up(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.Store, "patience", 0.05)
    charged(path).close()
    connection = in_old_form(path, tmp_path / "old.ledger")
    ledger = Ledger.open(tmp_path / "old.ledger")
    assert ledger.status().blocks == 3
    with pytest.raises(LedgerError, match=r"busy\. Nothing was spent"):
        ledger.charge(SPEND, purpose="p")
    connection.close()
    assert ledger.charge(SPEND, purpose="p").number == 4


@pytest.mark.parametrize("live", [False, True])
def test_an_old_form_that_may_only_be_read_is_read(open_folder: Path, live: bool) -> None:
    charged(open_folder / "new.ledger").close()
    path = open_folder / "old.ledger"
    connection = in_old_form(open_folder / "new.ledger", path)
    if not live:
        connection.close()
    path.chmod(0o444)
    open_folder.chmod(0o555)
    assert as_nobody(lambda: str(Ledger.open(path).status().blocks)) == "3"
    assert "cannot be written here" in as_nobody(lambda: str(Ledger.open(path).charge(SPEND, purpose="p")))
    connection.close()


def test_a_log_that_other_software_gave_the_file_is_taken_away(path: Path) -> None:
    charged(path, 2).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    ledger = Ledger.open(path)
    assert ledger.charge(SPEND, purpose="p").number == 3
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete"


def test_a_charge_waits_for_the_disk_at_every_step(path: Path) -> None:
    ledger = charged(path, 1)
    asked = ledger._store._connection
    assert asked is not None
    assert asked.execute("PRAGMA synchronous").fetchall() == [(3,)]  # EXTRA
    assert asked.execute("PRAGMA journal_mode").fetchall() == [("delete",)]


def test_an_sqlite_that_is_too_old_is_refused_with_what_to_do(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = charged(path, 1)
    ledger.close()
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    for act in (ledger.status, lambda: Ledger.open(path), lambda: ledger.charge(SPEND, purpose="p")):
        with pytest.raises(LedgerError, match=r"needs SQLite 3\.37\.0 or later.*Use a newer Python"):
            act()


# Charges that are cut off.


def cut_off(path: Path, into: Path) -> None:
    """The file and its journal in the middle of a commit, as a kill would leave them."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("BEGIN IMMEDIATE")
    for number in range(4, 200):
        connection.execute("INSERT INTO lines VALUES (?, ?, '', 'x')", (number, "x" * 900))
    shutil.copy(path, into)
    shutil.copy(f"{path}-journal", f"{into}-journal")
    connection.close()


def test_a_charge_that_was_cut_off_is_undone_by_the_next_who_may_write(
    open_folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.ledger"
    charged(path).close()
    cut_off(path, open_folder / "a.ledger")
    for item in open_folder.iterdir():
        item.chmod(0o644)  # others may read it
    open_folder.chmod(0o555)
    told = as_nobody(lambda: str(Ledger.open(open_folder / "a.ledger").status()))
    assert "was cut off, and its file must be put in order" in told
    open_folder.chmod(0o755)
    assert Ledger.open(open_folder / "a.ledger").status().blocks == 3
    assert len(Ledger.open(open_folder / "a.ledger").history()) == 3
    assert [item.name for item in open_folder.iterdir()] == ["a.ledger"]


def test_a_charge_that_was_cut_off_and_lost_its_journal_is_refused(path: Path, tmp_path: Path) -> None:
    charged(path).close()
    cut_off(path, tmp_path / "b.ledger")
    Path(f"{tmp_path}/b.ledger-journal").unlink()
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.open(tmp_path / "b.ledger").status()


def test_a_reader_that_stays_makes_a_charge_wait_and_then_nothing_is_spent(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store.Store, "patience", 0.05)
    ledger = charged(path, 1)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM lines").fetchall()
        with pytest.raises(LedgerError, match=r"busy\. Nothing was spent"):
            ledger.charge(SPEND, purpose="p")
        reader.execute("COMMIT")
    assert ledger.charge(SPEND, purpose="p").number == 2


def test_an_older_copy_with_damaged_terms_pays_for_nothing(path: Path) -> None:
    # what a process knows of a ledger was filed under terms that were read anew
    ledger = charged(path, 1)
    ledger.close()
    older = path.read_bytes()
    ledger.charge(SPEND, purpose="p")
    ledger.close()
    path.write_bytes(older)
    with pytest.raises(LedgerError, match="ends at line 1"):
        ledger.charge(SPEND, purpose="p")
    with closing(sqlite3.connect(path)) as connection:
        (mark,) = connection.execute("SELECT fingerprint FROM terms").fetchone()
    path.write_bytes(older.replace(mark.encode(), bytes(len(mark))))
    with pytest.raises(LedgerError, match="Nothing was spent"):
        ledger.charge(SPEND, purpose="p")
    with pytest.raises(LedgerError):
        Ledger.open(path)
