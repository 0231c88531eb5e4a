"""The verbs of a collector around a server: announce, status, export, close, prune."""

import json
import re
import socket
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sourdine.cli import app
from sourdine.collector.announcement import SignedAnnouncement
from sourdine.collector.period import KeptPeriod, today
from tests.collector.parts import WORK, announced, lines, new_store, submission


def run(*words: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "work.json").write_text(json.dumps(WORK.to_json()), encoding="utf-8")
    assert run("certificate", "keys", tmp_path / "office")[0] == 0
    return tmp_path


def test_announce(place: Path) -> None:
    words = (
        "collect",
        "announce",
        place / "work.json",
        "--key",
        place / "office.key",
        "--closes",
        "2099-12-31",
    )
    code, out, _ = run(*words, "--answers", 2, "--json")
    assert code == 0
    told = json.loads(out)
    assert (told["fingerprint"], told["device_epsilon"]) == (WORK.fingerprint, 2)
    signed = SignedAnnouncement.read(place / "work.announcement.json")
    assert signed.announcement.opens == today()
    assert "PRIVATE" not in signed.to_text()
    code, _, err = run(*words)
    assert code == 2
    assert "not written over" in err
    code, out, _ = run(*words, "-o", place / "two.json", "--revision", 2, "--secret-days", 1000)
    assert code == 0
    assert "secrets by the end, and pays anew under each" in " ".join(out.split())
    for more, words_of_it in ((("--period", "hour"), "be one of day"), (("--opens", "tomorrow"), "be a day")):
        code, _, err = run(*words, "-o", place / "three.json", *more)
        assert code == 2
        assert words_of_it in err


def test_a_store_is_read_exported_and_closed(place: Path) -> None:
    path = place / "reports.db"
    store = new_store(str(path), announced())
    store.write([submission(lines(200) + b"nonsense\n"), submission(lines(50, 1))])
    store.close()
    code, out, _ = run("collect", "status", "--store", path, "--json")
    (one,) = json.loads(out)["questions"]
    assert (code, one["reports"], one["set_apart"]) == (0, 250, {"damaged": 1})
    assert "250" in run("collect", "status", "--store", path)[1]
    export = ("collect", "export", WORK.fingerprint, "--store", path, "-o")
    assert run(*export, place / "all.txt")[0] == 0
    assert run(*export, place / "part.txt", "--period", "2026-11-17")[0] == 0
    assert run(*export, place / "part.txt")[0] == 2
    code, out, _ = run(
        "local", "estimate", place / "work.json", place / "all.txt", place / "part.txt", "--json"
    )
    assert json.loads(out)["reports"] == 250
    code, out, _ = run("collect", "close", WORK.fingerprint, "--store", path)
    assert "Closed work with 250 reports" in out
    assert run("collect", "prune", "--store", path)[0] == 0
    code, _, err = run("collect", "export", "0" * 16, "--store", path, "-o", place / "x.txt")
    assert (code, "no question of this fingerprint" in err) == (2, True)
    code, _, err = run("collect", "status", "--store", place / "none.db")
    assert (code, "There is no store" in err) == (2, True)
    assert not (place / "none.db").exists()


def test_serve_refuses_what_is_no_announcement(place: Path) -> None:
    code, _, err = run("collect", "serve", place / "work.json", "--port", 0)
    assert code == 2
    assert "sourdine collect announce" in err


def test_serve_names_a_page_that_asks_each_question(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def end(_: object, sockets: list[socket.socket], **__: object) -> None:
        for each in sockets:
            each.close()

    monkeypatch.setattr("sourdine.collector.processes.run", end)
    announcement = place / "work.announcement.json"
    announcement.write_text(announced().to_text(), encoding="utf-8")
    code, out, err = run("collect", "serve", announcement, "--store", place / "r.db", "--port", 0)
    assert code == 0, err
    found = re.search(r"asks it: (http://127\.0\.0\.1:\d+)/client/demo\.html\?question=(\w{16})\n", out)
    assert found, out
    assert f"Listening on {found[1]}\n" in out
    assert found[2] == WORK.fingerprint


def test_a_page_of_files(place: Path) -> None:
    (place / "reports.txt").write_bytes(lines(300))
    code, _, _ = run(
        "local", "estimate", place / "work.json", place / "reports.txt", "--html", place / "p.html"
    )
    assert code == 0
    assert "300 reports so far" in (place / "p.html").read_text(encoding="utf-8")


def test_an_export_of_several_periods_says_so(place: Path) -> None:
    path = place / "reports.db"
    store = new_store(str(path), announced(period=KeptPeriod.DAY))
    store.write([submission(lines(20)), submission(lines(10, 1), period="2026-11-18")])
    store.close()
    export = ("collect", "export", WORK.fingerprint, "--store", path, "-o")
    code, _, err = run(*export, place / "all.txt")
    assert code == 0
    assert "2 periods" in err
    assert "--period" in err
    assert run(*export, place / "one.txt", "--period", "2026-11-18")[2] == ""
    told = json.loads(run(*export, place / "json.txt", "--json")[1])
    assert told["periods"] == ["2026-11-17", "2026-11-18"]
