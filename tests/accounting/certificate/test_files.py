import hashlib
import resource
import threading
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sourdine.accounting.certificate import Deviance, digest
from sourdine.accounting.certificate import files as module
from sourdine.accounting.certificate.files import FileComparison, compare_files, only_differs

OWN = frozenset({"certificate.json", "certificate.signatures.json"})


def compare(folder: Path, contents: dict[str, bytes], **options: bool) -> FileComparison:
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    sizes = {name: len(content) for name, content in contents.items()}
    return compare_files(folder, digests, sizes, own=OWN, **{"complete": True, **options})


def write(folder: Path, contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def kinds(comparison: FileComparison) -> list[tuple[Deviance, str]]:
    return [(each.kind, each.name) for each in comparison.discrepancies]


def test_files_in_folders_are_covered_by_their_paths(tmp_path: Path) -> None:
    contents = {"a.csv": b"1", "deep/er/b.csv": b"2"}
    write(tmp_path, {**contents, "certificate.json": b"{}"})
    assert compare(tmp_path, contents).same == ("a.csv", "deep/er/b.csv")
    assert kinds(compare(tmp_path, contents)) == []
    write(tmp_path, {"deep/c.csv": b"3", "other/d.csv": b"4"})
    assert kinds(compare(tmp_path, contents)) == [
        (Deviance.ADDED, "deep/c.csv"),
        (Deviance.FOLDER_ADDED, "other"),
    ]


def test_a_folder_that_was_added_is_not_looked_into(tmp_path: Path) -> None:
    """It may be as deep as it likes, or closed."""
    write(tmp_path, {"d/e/f/g.csv": b"x"})
    assert kinds(compare(tmp_path, {})) == [(Deviance.FOLDER_ADDED, "d")]


@pytest.mark.parametrize(
    "name",
    ["../a", "/etc/passwd", "a/../b", "", ".", "a//b", "a\\b", "C:\\a", "C:/a", "a\0b", "certificate.json"],
)
def test_names_that_lead_elsewhere_are_never_opened(tmp_path: Path, name: str) -> None:
    (tmp_path / "release").mkdir()
    (tmp_path / "a").write_bytes(b"x")
    assert kinds(compare(tmp_path / "release", {name: b"x"})) == [(Deviance.OUTSIDE, name)]
    assert kinds(compare(tmp_path / "release", {name: b"x"}, alone=True)) == [(Deviance.OUTSIDE, name)]


def test_two_missing_files_of_the_same_content_are_both_told(tmp_path: Path) -> None:
    write(tmp_path, {"c": b"same"})
    told = kinds(compare(tmp_path, {"a": b"same", "b": b"same", "d": b"other"}))
    assert told == [(Deviance.RENAMED, "c"), (Deviance.RENAMED, "c"), (Deviance.MISSING, "d")]


def test_an_older_certificate_leaves_the_rest_uncovered(tmp_path: Path) -> None:
    write(tmp_path, {"a": b"1", "report.html": b"x"})
    comparison = compare(tmp_path, {"a": b"1"}, complete=False)
    assert (comparison.uncovered, comparison.discrepancies) == (("report.html",), ())


def test_letters_of_names_count(tmp_path: Path) -> None:
    write(tmp_path, {"Answers.csv": b"1"})
    assert kinds(compare(tmp_path, {"answers.csv": b"1"})) == [(Deviance.RENAMED, "Answers.csv")]


def test_a_file_that_is_written_meanwhile_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a": b"1"})
    real = hashlib.file_digest

    def slow(file: object, name: str) -> object:
        content = real(file, name)  # type: ignore[arg-type]
        (tmp_path / "a").write_bytes(b"22")
        return content

    monkeypatch.setattr(hashlib, "file_digest", slow)
    assert kinds(compare(tmp_path, {"a": b"1"})) == [(Deviance.UNSTEADY, "a")]


def test_a_folder_that_is_written_meanwhile_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a": b"1"})
    real = module._mark

    def slow(path: Path) -> tuple[str, int]:
        (tmp_path / "b").write_bytes(b"2")
        return real(path)

    monkeypatch.setattr(module, "_mark", slow)
    assert kinds(compare(tmp_path, {"a": b"1"})) == [(Deviance.UNSTEADY, ".")]


def test_somebody_writing_all_the_time_never_breaks_it(tmp_path: Path) -> None:
    write(tmp_path, {"a": b"1"})
    stop = threading.Event()

    def churn() -> None:
        while not stop.is_set():
            (tmp_path / "b").write_bytes(b"2")
            (tmp_path / "b").unlink()

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(100):
            comparison = compare(tmp_path, {"a": b"1"})
            assert comparison.same == ("a",)
            assert {kind for kind, _ in kinds(comparison)} <= {Deviance.UNSTEADY, Deviance.ADDED}
    finally:
        stop.set()
        thread.join()


@given(
    text=st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\r", b"bb"]), max_size=12).map(b"".join),
    piece=st.integers(1, 5),
)
def test_other_line_ends_are_known_wherever_a_piece_ends(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, piece: int
) -> None:
    place = tmp_path_factory.getbasetemp() / "ends"
    unix = text.replace(b"\r\n", b"\n")
    assume(b"\r\n" not in unix)
    windows = unix.replace(b"\n", b"\r\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_PIECE", piece)
        for content, published in ((unix, windows), (windows, unix)):
            place.write_bytes(content)
            assert only_differs(place, hashlib.sha256(published).hexdigest()) is Deviance.LINE_ENDS
        assert only_differs(place, hashlib.sha256(unix + b"c").hexdigest()) is None
        place.write_bytes(b"\xef\xbb\xbf" + windows)
        assert only_differs(place, hashlib.sha256(unix).hexdigest()) is Deviance.MARK


def test_a_large_file_is_read_in_pieces(tmp_path: Path) -> None:
    """A file of 64 MB without a byte on the disk; its content is never whole in memory."""
    with (tmp_path / "a").open("wb") as file:
        file.truncate(1 << 26)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    digest(tmp_path / "a")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 14  # KB
