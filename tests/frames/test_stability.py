"""Whatever bytes one record holds, the numbers of everybody else stay the same.

Records of mutated bytes stand between good ones, in every encoding, delimiter and line end, cut into pieces
anywhere. The good ones must all come back, each once and with its own cells, and a record must be one record.
"""

import csv
import json
import random
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest

from sourdine.frames import BernsteinSums, PrivacyUnit, Schema, open_source, totals
from sourdine.frames.cells import grouping
from sourdine.frames.csv import reader as pieces
from sourdine.testing import SeededBits
from tests.narrow import some

SCHEMA = Schema.read({"who": {"type": "text"}, "key": {"type": "text"}, "pay": {"type": "text"}})
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "latin-1", "cp1252")
ENDS = ("\n", "\r\n", "mixed")
DELIMITERS = (",", ";", "\t", "|")
PARTS = ["yes", "no", "a", "7", "", " ", '"', '""', "\r", "\r\r", "\r\n"[:1], ",", ";", "\t", "|", "'", "\\"]
PARTS += ["\0", "\x0b", "\x0c", "\x1a", "\x1c", "\x85", "\u2028", "\ufeff", "é", "😀", "\x7f", "#", "{", "}"]
BYTES = [b"\xff", b"\xfe", b"\xc3", b"\xed\xa0\x80", b"\x80", b"\xf4\x90\x80\x80", b"\x81", b'"', b"\r"]


def odd_record(dice: random.Random, encoding: str, delimiter: str) -> bytes:
    """Any bytes without a line feed: letters and marks, or good records with a piece changed."""
    good = delimiter.join(["somebody", "yes", str(dice.randrange(99))])
    kind = dice.randrange(4)
    if kind == 0:
        text = "".join(dice.choice([*PARTS, delimiter]) for _ in range(dice.randrange(1, 12)))
    elif kind == 1:
        text = ("\r" * dice.randrange(1, 3)).join([good] * dice.randrange(1, 30))
    else:
        at = dice.randrange(len(good) + 1)
        text = good[:at] + "".join(dice.choice(PARTS) for _ in range(dice.randrange(1, 4))) + good[at:]
    raw = text.encode(encoding, "ignore")
    if kind == 3:
        step = 2 if encoding.startswith("utf-16") else 1
        at = step * dice.randrange(len(raw) // step + 1)
        piece = b"".join(dice.choice(BYTES) for _ in range(dice.randrange(1, 4)))
        if step == 2:
            piece = (piece + b"\xd8")[: len(piece) // 2 * 2]
        raw = raw[:at] + piece + raw[at:]
    return raw.replace(b"\n", b"") if not encoding.startswith("utf-16") else wide(raw, encoding)


def wide(raw: bytes, encoding: str) -> bytes:
    """Two bytes a letter, none of them a line feed."""
    feed = "\n".encode(encoding)
    pairs = (raw[i : i + 2] for i in range(0, len(raw) // 2 * 2, 2))
    return b"".join(pair for pair in pairs if pair != feed)


def check(path: Path, count: int, dice: random.Random, case: tuple[str, str, str]) -> None:
    """Write `count` odd records between as many good ones, and read them."""
    encoding, delimiter, end = case
    mark = "\ufeff" if encoding.startswith("utf-16") else ""
    header = (mark + delimiter.join(["who", "key", "pay"])).encode(encoding)
    good = [(f"good {i}", f"key {i % 7}", str(i)) for i in range(count)]
    records = [delimiter.join(cells).encode(encoding) for cells in good]
    odd = [odd_record(dice, encoding, delimiter) for _ in range(count)]
    lines = [line for pair in zip(records, odd, strict=True) for line in pair]
    feed = lambda: (dice.choice(ENDS[:2]) if end == "mixed" else end).encode(encoding)
    path.write_bytes(header + feed() + b"".join(line + feed() for line in lines))
    source = open_source(path, SCHEMA, text={"encoding": encoding, "delimiter": delimiter})
    rows = source.ask(f"SELECT who, key, pay FROM {source.name}")
    assert sorted(row for row in rows if (row[0] or "").startswith("good")) == sorted(good)
    blank = sum(line in (b"", "\r".encode(encoding)) for line in odd)
    assert 2 * count - blank <= len(rows) <= 2 * count


def cases() -> list[tuple[str, str, str]]:
    return list(product(ENCODINGS, DELIMITERS, ENDS))


def fuzz(folder: Path, total: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    every = cases()
    for case in every:
        monkeypatch.setattr(pieces, "SIZE", 2 * dice.choice([17, 64, 500, 1 << 23]))
        check(folder / "rows.csv", -(-total // len(every)), dice, case)


@pytest.mark.parametrize("count", [150, pytest.param(2_000, marks=pytest.mark.slow)])
def test_no_record_touches_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    fuzz(tmp_path, count, 1, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_no_record_touches_another_among_many(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fuzz(tmp_path, 20_000, seed, monkeypatch)


def test_no_line_of_json_touches_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(3)
    good = [(f"good {i}", f"key {i % 7}", str(i)) for i in range(600)]
    texts = [json.dumps(dict(zip(SCHEMA.columns, cells, strict=True))) for cells in good]
    odd: list[bytes] = []
    for text in texts:
        at, piece = (
            dice.randrange(len(text) + 1),
            dice.choice([*PARTS, '{"who": "x"}', "[", "]", ":", "null"]),
        )
        raw = (text[:at].replace("good", "odd") + piece + text[at:].replace("good", "odd")).encode()
        if dice.random() < 0.3:
            raw = raw[: dice.randrange(len(raw) + 1)] + dice.choice(BYTES) + raw[at:]
        odd.append(raw.replace(b"\n", b"").replace(b"good", b"odd"))
    lines = [line for pair in zip((text.encode() for text in texts), odd, strict=True) for line in pair]
    (tmp_path / "rows.jsonl").write_bytes(b"".join(line + dice.choice([b"\n", b"\r\n"]) for line in lines))
    for size in (64, 1000, 1 << 24):
        monkeypatch.setattr(pieces, "SIZE", size)
        source = open_source(tmp_path / "rows.jsonl", SCHEMA)
        rows = source.ask(f"SELECT who, key, pay FROM {source.name}")
        assert sorted(row for row in rows if (row[0] or "").startswith("good")) == sorted(good)
        assert len(rows) <= 1200


def written(folder: Path, cells: list[tuple[str, str, str]]) -> Iterator[tuple[str, Path]]:
    """The same table as different programs write it."""
    names = list(SCHEMA.columns)
    frame = pd.DataFrame(cells, columns=names)
    for name, options in {"pandas": {}, "pandas windows": {"lineterminator": "\r\n"}}.items():
        frame.to_csv(folder / f"{name}.csv", index=False, **options)
        yield name, folder / f"{name}.csv"
    pl.from_pandas(frame).write_csv(folder / "polars.csv")
    yield "polars", folder / "polars.csv"
    for name, end in (("csv", "\n"), ("csv windows", "\r\n")):
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator=end).writerows([names, *cells])
        yield name, folder / f"{name}.csv"
    some(duckdb.sql("SELECT * FROM frame")).write_csv(str(folder / "duckdb.csv"))
    yield "duckdb", folder / "duckdb.csv"


def test_what_other_programs_write_is_read_back(tmp_path: Path) -> None:
    """Every cell as it was; a carriage return at the very end of a line belongs to the line's end."""
    dice = random.Random(5)
    letters = [part for part in PARTS if part != "\0"]  # which some of the writers refuse
    word = lambda: "".join(dice.choice(letters) for _ in range(dice.randrange(1, 6)))
    cells = [(f"person {i}", word(), word().rstrip("\r") + ".") for i in range(400)]
    for name, path in written(tmp_path, cells):
        source = open_source(path, SCHEMA)
        rows = source.ask(f"SELECT who, key, pay FROM {source.name}")
        assert sorted(rows) == sorted((who, key or None, pay) for who, key, pay in cells), name


def test_a_count_moves_by_one_record_for_one_record(tmp_path: Path) -> None:
    """The cases that were seen to fail: each joins many records into one."""
    schema = Schema.read({"answer": {"type": "category", "keys": ["yes", "no"]}})
    whole = "who,answer\n" + "".join(f"{i},yes\n" for i in range(100))
    for record in ("\r".join(["1,yes"] * 5000), "x,yes\r" * 9, '"7,yes', 'x,"yes', "9\r7,yes", "a,yes\r\r"):
        path = tmp_path / "rows.csv"
        path.write_bytes((whole + record + "\nz,yes\n" * 3).encode())
        source = open_source(path, schema)
        by = [grouping("answer", schema.columns["answer"], source.types["answer"])]
        found = totals(source, by=by, statistics=[BernsteinSums()], unit=PrivacyUnit(), bits=SeededBits(1))
        assert 103 <= found.numbers[0][0][0] <= 104
