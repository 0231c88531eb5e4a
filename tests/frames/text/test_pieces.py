"""Pieces hold every record once, wherever they are cut."""

from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.frames.csv.normalize import MOST_BYTES, UNREADABLE, as_utf8, tidy
from sourdine.frames.csv.reader import Contents, Pieces, TextFile

PLAIN = partial(tidy, delimiter=",")
WORDS = st.lists(st.text('ab",\r é', max_size=9), max_size=12)


def whole(text: TextFile) -> bytes:
    return b"".join(text.piece(i) for i in range(text.pieces))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "latin-1", "cp1252"])
@settings(max_examples=30)
@given(words=WORDS, size=st.integers(1, 9))
def test_pieces_together_are_the_file(
    encoding: str, words: list[str], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / f"{encoding}.csv"
    raw = ("head\n" + "\n".join(words)).encode(encoding)
    path.write_bytes(raw)
    start = len("head\n".encode(encoding))
    text = TextFile(Contents(path), start, encoding, PLAIN, size=2 * size)
    assert whole(text) == PLAIN(as_utf8(raw[start:], encoding))


@given(words=st.lists(st.text('ab",\r\n', max_size=9), max_size=12), size=st.integers(1, 9))
def test_with_multiline_pieces_are_cut_outside_quotes(
    words: list[str], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "multiline.csv"
    raw = "\n".join(words).encode()
    path.write_bytes(raw)
    plain = partial(tidy, delimiter=",", multiline=True)
    text = TextFile(Contents(path), 0, "utf-8", plain, multiline=True, size=size)
    assert whole(text) == plain(raw)


def test_a_record_longer_than_many_pieces_is_not_held(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_bytes(b"a,1\n" + b"z" * (3 * MOST_BYTES) + b"\nb,2\n")
    text = TextFile(Contents(path), 0, "utf-8", PLAIN, size=1 << 16)
    pieces = [text.piece(i) for i in range(text.pieces)]
    assert b"".join(pieces) == b"a,1\n" + UNREADABLE + b"\nb,2\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le"])
def test_a_quote_that_is_never_closed_is_not_held_to_the_end_of_the_file(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked = tmp_path / "open.csv", []
    path.write_bytes(('a,1\n"b\n' + "c,2\n" * MOST_BYTES).encode(encoding))
    plain = partial(tidy, delimiter=",", multiline=True)
    text = TextFile(Contents(path), 0, encoding, plain, multiline=True, size=1 << 16)
    read = Contents.read

    def note(contents: Contents, start: int, size: int) -> bytes:
        asked.append(size)
        return read(contents, start, size)

    monkeypatch.setattr(Contents, "read", note)
    assert whole(text) == b"a,1\n" + UNREADABLE + b"\n"
    assert max(asked) < 3 * MOST_BYTES


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_what_is_compressed_is_read_like_the_rest(ending: str, tmp_path: Path) -> None:
    import gzip

    from backports import zstd

    raw = b"".join(b"%d,x\n" % i for i in range(1000))
    path = tmp_path / f"rows.csv.{ending}"
    path.write_bytes(gzip.compress(raw) if ending == "gz" else zstd.compress(raw))
    contents = Contents(path)
    assert contents.look(4) == raw[:4]
    assert whole(TextFile(contents, 0, "utf-8", PLAIN, size=100)) == raw
    assert list(tmp_path.iterdir()) == [path]


def test_pieces_are_files_with_sizes(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes(b"a\nb\nc\n")
    held = Pieces([TextFile(Contents(path), 0, "utf-8", PLAIN, size=4)])
    assert held.names([0]) == ["sourdine://0/0", "sourdine://0/1"]
    assert held.open("sourdine://0/0").read() == b"a\nb\n"
    assert held.size("sourdine://0/0") == 4
    assert held.exists("sourdine://0/1")
    assert held.info("sourdine://0/0")["type"] == "file"
