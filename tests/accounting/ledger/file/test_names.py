"""One file, one name: links, mounts, and what is left beside a file."""

import os
import shutil
import subprocess
import sys
import textwrap
from fractions import Fraction
from pathlib import Path

import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.file import names
from sourdine.accounting.ledger.file.store import FileStore
from sourdine.core import files as disk
from sourdine.core.errors import LedgerError
from tests.accounting.ledger.files import in_old_form
from tests.campaigns.ledger.crash import new_ledger, one_spend

ROOT = Path(__file__).parents[4]
_MOUNT = ["unshare", "--mount", "sh", "-c"]


def can_mount() -> bool:
    """Whether a mount can be made in a namespace of one's own."""
    if sys.platform != "linux" or shutil.which("unshare") is None or shutil.which("mount") is None:
        return False
    trial = subprocess.run([*_MOUNT, "mount --bind /tmp /tmp"], capture_output=True, check=False)
    return trial.returncode == 0


def where_mounted(command: str, program: str, *words: object) -> str:
    """What a program says after a command has made a mount, in a namespace of its own."""
    python = f'{command} && exec "$0" "$@"'
    words = (sys.executable, "-c", textwrap.dedent(program), *words)
    command_line = [*_MOUNT, python, *map(str, words)]
    return subprocess.run(command_line, capture_output=True, text=True, cwd=ROOT, check=True).stdout


_CHARGE = """
    import sys
    from tests.campaigns.ledger.crash import one_spend
    from sourdine.accounting.ledger import Ledger
    from sourdine.core.errors import LedgerError
    try:
        print("line", Ledger.open(sys.argv[1]).charge(one_spend(), purpose="in a container").number)
    except LedgerError as problem:
        print(problem)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data/a.ledger"


@pytest.mark.skipif(not can_mount(), reason="mounts are not permitted here")
def test_a_file_that_is_mounted_by_itself_is_refused_and_its_folder_is_not(
    path: Path, tmp_path: Path
) -> None:
    """As with a container's `-v a.ledger:/x/a.ledger`: its journal would lie beside another name."""
    ledger = new_ledger(path, Fraction(1))
    ledger.charge(one_spend(), purpose="outside")
    other = tmp_path / "container"
    other.mkdir()
    (other / "a.ledger").touch()
    told = where_mounted(f"mount --bind {path} {other}/a.ledger", _CHARGE, other / "a.ledger")
    assert "mounted here as a single file" in told
    assert f"Mount the folder that holds it, such as `-v /data/ledgers:{other}`" in told
    assert ledger.status().blocks == 1
    assert where_mounted(f"mount --bind {path.parent} {other}", _CHARGE, other / "a.ledger") == "line 2\n"
    assert [entry.purpose for entry in ledger.history()] == ["outside", "in a container"]


@pytest.mark.slow
@pytest.mark.skipif(not can_mount(), reason="mounts are not permitted here")
def test_a_mount_shows_by_the_disk_where_the_system_does_not_number_mounts(
    path: Path, tmp_path: Path
) -> None:
    new_ledger(path, Fraction(1)).close()
    hide = "import os; del os.O_PATH\n" + textwrap.dedent(_CHARGE)
    disk = f"mount -t tmpfs none {tmp_path}/data && cp {tmp_path}/kept {path} && touch {tmp_path}/b"
    shutil.copy(path, tmp_path / "kept")
    told = where_mounted(f"{disk} && mount --bind {path} {tmp_path}/b", hide, tmp_path / "b")
    assert "mounted here as a single file" in told
    assert where_mounted(disk, hide, path) == "line 1\n"


def test_links_lead_to_the_file_itself(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.ledger"
    link.symlink_to(path)
    ledger = new_ledger(path, Fraction(1))
    ledger.charge(one_spend(), purpose="p")
    through = Ledger.open(link)
    through.charge(one_spend(), purpose="p")
    assert ledger.status().blocks == through.status().blocks == 2
    assert [item.name for item in path.parent.iterdir()] == ["a.ledger"]
    assert sorted(item.name for item in tmp_path.iterdir()) == ["data", "link.ledger"]


def test_a_link_to_an_older_form_shows_no_old_total(path: Path, tmp_path: Path) -> None:
    """Its newest lines are in a log beside the file, and none lies beside the link."""
    old, link = tmp_path / "data/old.ledger", tmp_path / "link.ledger"
    ledger = new_ledger(path, Fraction(1))
    for _ in range(3):
        ledger.charge(one_spend(), purpose="p")
    connection = in_old_form(path, old)
    link.symlink_to(old)
    assert Path(f"{old}-wal").stat().st_size
    store = Ledger.open(link)._store
    assert isinstance(store, FileStore)
    assert store._look is False
    assert Ledger.open(link).status().blocks == 3
    connection.close()


def test_a_program_that_goes_elsewhere_keeps_its_ledger(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    ledger = new_ledger(Path("a.ledger"), Fraction(1))
    monkeypatch.chdir(tmp_path)
    assert ledger.charge(one_spend(), purpose="p").number == 1
    assert ledger.path == Path("a.ledger")


def test_a_second_name_on_the_disk_is_refused(path: Path, tmp_path: Path) -> None:
    ledger = new_ledger(path, Fraction(1))
    os.link(path, tmp_path / "second.ledger")
    for act in (ledger.status, lambda: Ledger.open(tmp_path / "second.ledger")):
        with pytest.raises(LedgerError, match=r"second name .* Remove the other name"):
            act()
    (tmp_path / "second.ledger").unlink()
    assert ledger.status().blocks == 0


@pytest.mark.parametrize("left", names.BESIDE)
def test_nothing_is_made_where_an_earlier_ledger_left_its_journal(path: Path, left: str) -> None:
    """SQLite would take what lies there for the new file's, and undo the new one with it."""
    beside = Path(f"{path}{left}")
    beside.write_bytes(b"x")
    with pytest.raises(LedgerError, match=f"lies a.ledger{left}, which belongs to an earlier ledger"):
        new_ledger(path, Fraction(1))
    beside.unlink()
    new_ledger(path, Fraction(1))


def test_looking_at_a_mount_leaves_the_locks_of_sqlite_alone(path: Path) -> None:
    """Closing a handle of a file drops every lock the process has on it, unless it is only a place."""
    ledger = new_ledger(path, Fraction(1))
    program = f"""
        import sqlite3
        connection = sqlite3.connect({str(path)!r}, timeout=0, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as problem:
            print(problem)
    """

    def build(last: object) -> tuple[str, str]:
        names.refuse_mounted(path)
        names.identify(path)
        words = [sys.executable, "-c", textwrap.dedent(program)]
        told.append(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
        return "{}", "1/100"

    told: list[str] = []
    ledger._store.append(build)
    assert told == ["database is locked\n"]


def test_a_ledger_is_for_its_owner_unless_shared(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        with Ledger.create(tmp_path / "own.ledger", epsilon=1) as own:
            own.backup(tmp_path / "copy.ledger").close()
        with disk.shared():
            Ledger.create(tmp_path / "all.ledger", epsilon=1).close()
    finally:
        os.umask(before)
    found = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert found == {"own.ledger": 0o600, "copy.ledger": 0o600, "all.ledger": 0o644}


def test_a_folder_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()  # which gives its folder another name, as files count them
    for folder in (tmp_path, tmp_path / "below"):
        with pytest.raises(LedgerError, match="is a folder, and a ledger is one file"):
            Ledger.open(folder)
