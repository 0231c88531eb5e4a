import os
import threading
from pathlib import Path

import pytest

from sourdine.core import files as disk


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rights(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_file_is_for_its_owner_unless_shared(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        disk.write_whole(tmp_path / "own", "a")
        with disk.shared():
            disk.write_whole(tmp_path / "all", "a")
            with disk.shared(False):
                disk.write_whole(tmp_path / "inner", "a")
        with disk.whole_file(tmp_path / "made") as place:  # as an engine would, with rights of its own
            place.write_text("a")
    finally:
        os.umask(before)
    assert {name: rights(tmp_path / name) for name in names(tmp_path)} == {
        "all": 0o644,
        "inner": 0o600,
        "made": 0o600,
        "own": 0o600,
    }


def test_a_file_that_is_written_over_keeps_its_rights(tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    place.write_text("old")
    place.chmod(0o664)
    disk.write_whole(place, "new")
    assert (place.read_text(), rights(place)) == ("new", 0o664)


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    disk.write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_what_fails_changes_nothing(tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    place.write_text("old")

    def half() -> None:
        with disk.whole_file(place) as waiting:
            waiting.write_text("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        half()
    assert names(tmp_path) == ["page.html"]
    assert place.read_text() == "old"


def test_what_is_there_is_not_written_over_unless_it_may(tmp_path: Path) -> None:
    place = tmp_path / "spec.toml"
    disk.write_whole(place, "mine", over=False)
    with pytest.raises(FileExistsError):
        disk.write_whole(place, "other", over=False)
    late = disk.whole_file(tmp_path / "late", over=False)
    late.__enter__().write_text("mine")
    (tmp_path / "late").write_text("theirs")  # somebody was faster
    with pytest.raises(FileExistsError):
        late.__exit__(None, None, None)
    assert (place.read_text(), (tmp_path / "late").read_text()) == ("mine", "theirs")
    assert names(tmp_path) == ["late", "spec.toml"]


def test_a_disk_without_links_gets_a_new_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    disk.write_whole(tmp_path / "new", "a", over=False)
    with pytest.raises(FileExistsError):
        disk.write_whole(tmp_path / "new", "b", over=False)
    assert (tmp_path / "new").read_text() == "a"


def test_a_folder_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        disk.write_whole(tmp_path, "a")


def test_a_pipe_is_written_to_as_it_is(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    disk.write_whole(pipe, "through")
    reader.join()
    assert read == ["through"]
    assert pipe.is_fifo()


def test_it_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    sync, replace = os.fsync, Path.replace

    def note_sync(handle: int) -> None:
        done.append("sync")
        sync(handle)

    def note_name(path: Path, target: Path) -> Path:
        done.append("name")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(Path, "replace", note_name)
    disk.write_whole(tmp_path / "a", "a")
    assert done[0] == "sync"
    assert done[-2:] == ["name", "sync"]  # the name itself as well


def test_a_long_name_is_no_obstacle(tmp_path: Path) -> None:
    disk.write_whole(tmp_path / ("n" * 250), "a")
    assert names(tmp_path) == ["n" * 250]


def test_one_at_a_time_is_alone_in_a_folder(tmp_path: Path) -> None:
    inside, most = [0], [0]

    def enter() -> None:
        for _ in range(20):
            with disk.alone(tmp_path):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                threading.Event().wait(0.0005)
                inside[0] -= 1

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]
