"""Files of reports: bad lines cost nothing else, copies and numbered reports count once."""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local import GRR, Question, report_files
from sourdine.local.lines import LineFault, written
from sourdine.local.report_files import count_files

QUESTION = Question(name="q", oracle=GRR(epsilon=1, categories=4))


def rows(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, (count, 1)).astype(np.uint8)


def file(path: Path, count: int, seed: int = 0, numbers: range | None = None) -> Path:
    names = None if numbers is None else np.array(numbers, np.uint64)
    path.write_bytes(written(QUESTION.fingerprint, rows(count, seed), names))
    return path


def test_bad_lines_are_set_apart_and_told(tmp_path: Path) -> None:
    one = file(tmp_path / "one.txt", 100)
    two = tmp_path / "two.txt"
    two.write_bytes(b"\xef\xbb\xbf" + one.read_bytes()[:400] + b"nonsense\n" + f"{'0' * 16} 00\n".encode())
    total = count_files(QUESTION, [one, two])
    assert total.counts.reports == 120
    assert np.array_equal(
        total.counts.sums, np.bincount(np.concatenate([rows(100), rows(100)[:20]]).ravel(), minlength=4)
    )
    assert total.faults == {LineFault.DAMAGED: 1, LineFault.ANOTHER: 1}
    assert total.first[LineFault.DAMAGED] == (two, 21)


def test_a_copy_of_a_file_is_left_out(tmp_path: Path) -> None:
    one, two = file(tmp_path / "one.txt", 100), file(tmp_path / "two.txt", 100)
    three = file(tmp_path / "three.txt", 100, seed=1)  # of the same size
    total = count_files(QUESTION, [one, two, three])
    assert total.counts.reports == 200
    assert total.copies == ((two, one),)


def test_equal_files_of_few_reports_are_not_judged(tmp_path: Path) -> None:
    one, two = file(tmp_path / "one.txt", 2), file(tmp_path / "two.txt", 2)
    with pytest.raises(InvalidParameter, match="hold the same 2 lines"):
        count_files(QUESTION, [one, two])


@pytest.mark.parametrize("most", [1 << 24, 40])
def test_a_numbered_report_counts_once_in_however_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """In one pass, and in several, with reports that have no number between them."""
    monkeypatch.setattr(report_files, "MOST_NUMBERS", most)
    all_of_it = file(tmp_path / "all.txt", 300, numbers=range(1, 301))
    parts = [tmp_path / f"part{i}.txt" for i in range(3)]
    whole = all_of_it.read_bytes().splitlines(keepends=True)
    for i, part in enumerate(parts):
        part.write_bytes(b"".join(whole[100 * i : 100 * i + 150]) + (b"nonsense\n" if i else b""))
    plain = file(tmp_path / "plain.txt", 90, seed=3)
    total = count_files(QUESTION, [all_of_it, *parts, plain])
    assert total.counts.reports == 390
    expected = np.concatenate([rows(300), rows(90, 3)])
    assert np.array_equal(total.counts.sums, np.bincount(expected.ravel(), minlength=4))
    assert total.faults == {LineFault.REPEATED: 400, LineFault.DAMAGED: 2}


def test_many_files_of_numbers(tmp_path: Path) -> None:
    paths = [
        file(tmp_path / f"{i}.txt", 64, seed=i, numbers=range(1 + 32 * i, 65 + 32 * i)) for i in range(20)
    ]
    total = count_files(QUESTION, paths)
    assert total.counts.reports == 21 * 32
    assert total.faults == {LineFault.REPEATED: 19 * 32}


def test_counts_and_reports_add_up(tmp_path: Path) -> None:
    counts = tmp_path / "counts.json"
    counts.write_text(json.dumps(QUESTION.tally(rows(50, 7)).to_json()))
    total = count_files(QUESTION, [counts, file(tmp_path / "one.txt", 70)])
    assert total.counts.reports == 120
    counts.write_text("{")
    with pytest.raises(InvalidParameter, match="They are cut short"):
        count_files(QUESTION, [counts])


def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe, source = tmp_path / "pipe", file(tmp_path / "one.txt", 80)
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(source.read_bytes()))
    writer.start()
    assert count_files(QUESTION, [pipe]).counts.reports == 80
    writer.join()


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="does not exist"):
        count_files(QUESTION, [tmp_path / "none.txt"])
    with pytest.raises(InvalidParameter, match="Is a directory"):
        count_files(QUESTION, [tmp_path])
