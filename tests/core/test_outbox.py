"""Files of a release appear at once or not at all, whenever the writer is killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.files import UNFINISHED, Outbox
from sourdine.core.format import in_files

NAMES = ("answers.csv", "release.json", "certificate.json")


def fill(place: Path) -> None:
    for name in NAMES:
        disk.write_new(place / name, name * 100)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


KILLED = """
import json, os, signal, sys
from pathlib import Path
from sourdine.core.files import Outbox
from sourdine.core import files as disk

EVENTS = {"open", "os.rename", "os.mkdir", "os.rmdir", "os.chmod", "os.remove", "shutil.rmtree"}
folder, found, names = Path(sys.argv[1]), [], sys.argv[2:]
for last in range(200):
    out = folder / f"out{last}"
    if last % 2:
        out.mkdir()  # an empty folder is replaced in the same step
    if not (child := os.fork()):
        sync, seen = os.fsync, []

        def step(event, words):
            if event in EVENTS and str(words[0]).startswith(str(folder)):
                seen.append(event)
                if len(seen) > last:
                    os.kill(os.getpid(), signal.SIGKILL)

        def counted(handle):
            sync(handle)
            step("open", [folder])

        def fill(place):
            for name in names:
                disk.write_new(place / name, name * 100)

        os.fsync = counted
        sys.addaudithook(step)
        with Outbox(out, names) as box:
            box.deliver(fill)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    found.append([code, sorted(path.name for path in out.iterdir()) if out.exists() else []])
    if code == 0:
        break
print(json.dumps(found))
"""


def test_killed_at_any_step_all_files_are_there_or_none(tmp_path: Path) -> None:
    words = [sys.executable, "-W", "ignore", "-c", KILLED, str(tmp_path), *NAMES]
    told = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert [code for code, _ in found] == [-signal.SIGKILL] * (len(found) - 1) + [0]
    kept = [names for _, names in found]
    whole = sorted(NAMES)
    first = kept.index(whole)
    assert first > 10
    assert kept == [[]] * first + [whole] * (len(found) - first)
    assert len(found) - first > 2  # killed after they appeared as well


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InvalidParameter, match=r"already holds a file notes\.txt"), Outbox(tmp_path, NAMES):
        pass
    assert names(tmp_path) == ["notes.txt"]


def test_where_one_is_cannot_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(InvalidParameter, match="Name a new folder in it, as in published"),
        Outbox(Path(), NAMES),
    ):
        pass
    with (
        in_files(),
        pytest.raises(InvalidParameter, match="Name a new folder in it, as in -o published"),
        Outbox(Path(), NAMES),
    ):
        pass
    assert names(tmp_path) == []


def test_an_empty_folder_keeps_its_rights_and_a_link_leads_to_it(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o750)
    (tmp_path / "real").chmod(0o750)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with Outbox(tmp_path / "link", NAMES) as box:
        files = box.deliver(fill)
    assert files == [tmp_path / "link" / name for name in NAMES]
    assert names(tmp_path / "real") == sorted(NAMES)
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o750
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    assert names(tmp_path) == ["link", "real"]


def test_two_cannot_take_one_folder_and_a_whole_one_is_told(tmp_path: Path) -> None:
    with Outbox(tmp_path / "out", NAMES):
        with pytest.raises(InvalidParameter, match="under way"), Outbox(tmp_path / "out", NAMES):
            pass
        assert names(tmp_path) == [f".out{UNFINISHED}"]
    assert names(tmp_path) == []
    waiting = tmp_path / f".out{UNFINISHED}" / "out"
    waiting.mkdir(parents=True)
    fill(waiting)
    with (
        pytest.raises(InvalidParameter, match="was written whole, so you may move it"),
        Outbox(tmp_path / "out", NAMES),
    ):
        pass
    assert names(waiting) == sorted(NAMES)


def test_a_folder_that_is_taken_meanwhile_keeps_what_it_has_and_nothing_is_lost(tmp_path: Path) -> None:
    with Outbox(tmp_path / "out", NAMES) as box:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "mine").write_text("mine")
        with pytest.raises(SourdineError, match="They lie whole in") as problem:
            box.deliver(fill, "It was paid. ")
    assert str(problem.value).startswith("It was paid. ")
    assert names(tmp_path / "out") == ["mine"]
    assert names(tmp_path / f".out{UNFINISHED}" / "out") == sorted(NAMES)


def test_ctrl_c_waits_until_what_is_paid_for_is_there(tmp_path: Path) -> None:
    def interrupted(place: Path) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        fill(place)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    try:
        with pytest.raises(KeyboardInterrupt), Outbox(tmp_path / "out", NAMES) as box:
            box.deliver(interrupted)
    finally:
        signal.signal(signal.SIGINT, before)
    assert names(tmp_path / "out") == sorted(NAMES)
    assert names(tmp_path) == ["out"]


def test_a_file_that_grows_too_large_leaves_nothing(tmp_path: Path) -> None:
    """As on a full disk: the system takes part of a file, and refuses the rest."""
    script = (
        "import resource, sys, tempfile\n"
        "from pathlib import Path\n"
        "from sourdine.core.files import Outbox\n"
        "from sourdine.core import files as disk\n"
        "from sourdine.core.errors import SourdineError\n"
        "tempfile.tempdir = sys.argv[1]\n"
        "def fill(place):\n"
        "    disk.write_new(place / 'answers.csv', 'a' * 100)\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (50, 50))\n"
        "    disk.write_new(place / 'certificate.json', 'c' * 100)\n"
        "try:\n"
        "    with Outbox(Path(sys.argv[1]) / 'out', ['answers.csv', 'certificate.json']) as box:\n"
        "        box.deliver(fill, 'It was paid. ')\n"
        "except SourdineError as problem:\n"
        "    print(problem)\n"
    )
    words = [sys.executable, "-c", script, str(tmp_path)]
    told = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert told.stdout.startswith("It was paid. The files could not be written beside"), told.stderr
    assert "(File too large), and none is there. What was charged stays charged" in told.stdout
    assert names(tmp_path) == []
