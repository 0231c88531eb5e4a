"""Files as people have them: decimal commas, no header, several files, partitions, other encodings."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import Schema, open_source
from sourdine.frames.csv import reader as pieces
from sourdine.frames.csv.format import TextFormat
from tests.narrow import some

SCHEMA = Schema.read(
    {
        "pay": {"type": "real", "lower": 0, "upper": 10_000},
        "sex": {"type": "category", "keys": ["f", "m"]},
    }
)
ROWS = [("1.5", "f"), ("2", "m")]


def rows(table: object, text: TextFormat | Mapping[str, Any] = TextFormat(), schema: Schema = SCHEMA) -> Any:  # noqa: B008
    source = open_source(table, schema, text=text)
    names = ", ".join(f'"{name}"' for name in schema.columns)
    return sorted(source.ask(f"SELECT {names} FROM {source.name}"), key=str)


def write(path: Path, raw: bytes | str, encoding: str = "utf-8") -> Path:
    path.write_bytes(raw if isinstance(raw, bytes) else raw.encode(encoding))
    return path


@pytest.mark.parametrize(
    ("written", "text", "found"),
    [
        ("1,5", {"decimal": ","}, 1.5),
        ("-1.234.567,5", {"decimal": ",", "thousands": "."}, -1234567.5),
        ("1 234,5", {"decimal": ",", "thousands": " "}, 1234.5),
        ("1\u202f234,5", {"decimal": ",", "thousands": "\u202f"}, 1234.5),
        ("1'234.5", {"thousands": "'"}, 1234.5),
        ("1234.5", {"thousands": "'"}, 1234.5),
        ("1,5e2", {"decimal": ","}, 150.0),
        (" 7 ", {"decimal": ","}, 7.0),
        ("1.5", {"decimal": ","}, None),
        ("1.23", {"decimal": ",", "thousands": "."}, None),
        ("1.2345.678", {"decimal": ",", "thousands": "."}, None),
        ("54,8 %", {"decimal": ",", "strip": " %"}, 54.8),
        ("€ -1.250,00", {"decimal": ",", "thousands": ".", "strip": " €"}, -1250.0),
        ("54.8%", {"strip": "%"}, 54.8),
        ("54.8 %", {}, None),
        ("", {"decimal": ","}, None),
        ("x", {"decimal": ","}, None),
    ],
)
def test_numbers_are_read_as_they_are_declared_to_be_written(
    written: str, text: dict[str, Any], found: float | None, tmp_path: Path
) -> None:
    path = write(tmp_path / "rows.csv", f"pay;sex\n{written};f\n")
    ((pay, _),) = rows(path, {**text, "delimiter": ";"})
    assert duckdb.execute("SELECT TRY_CAST(? AS DOUBLE)", [pay]).fetchall() == [(found,)]


def test_a_number_that_cannot_be_read_is_not_missing(tmp_path: Path) -> None:
    """So that what is left out for each reason can be counted apart."""
    path = write(tmp_path / "rows.csv", "pay;sex\n1.5;f\n;m\n")
    assert rows(path, {"decimal": ","}) == [("?", "f"), (None, "m")]


def test_letters_at_the_ends_of_fields_are_left_out_if_that_is_declared(tmp_path: Path) -> None:
    schema = Schema.read({"name": {"type": "text"}})
    path = write(tmp_path / "rows.csv", "name,x\nBad Ems  ,1\n Ulm,2\n   ,3\n")
    assert rows(path, {}, schema) == [("   ",), (" Ulm",), ("Bad Ems  ",)]
    assert rows(path, {"strip": " "}, schema) == [("Bad Ems",), ("Ulm",), (None,)]


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "UTF-16BE"),
        ("latin-1", "ISO-8859-1"),
        ("cp1252", "windows-1252"),
    ],
)
def test_encodings(encoding: str, declared: str, tmp_path: Path) -> None:
    key = "é😀" if encoding.startswith("utf") else "é"
    schema = Schema.read({"name": {"type": "category", "keys": [key]}})
    path = write(tmp_path / "rows.csv", f"name,x\r\n{key},1\r\n", encoding)
    assert rows(path, {"encoding": declared}, schema) == [(key,)]


def test_big_endian_text_with_a_mark_is_read(tmp_path: Path) -> None:
    raw = b"\xfe\xff" + "pay,sex\n1.5,f\n2,m\n".encode("utf-16-be")
    assert rows(write(tmp_path / "rows.csv", raw), {"encoding": "utf-16"}) == ROWS
    with pytest.raises(InvalidParameter, match="does not say in which order its bytes stand"):
        rows(write(tmp_path / "rows.csv", raw[2:]), {"encoding": "utf-16"})


def test_all_bytes_of_latin_1_are_text(tmp_path: Path) -> None:
    every = bytes(byte for byte in range(256) if byte not in b'\n\r",')
    schema = Schema.read({"name": {"type": "text"}})
    path = write(tmp_path / "rows.csv", b"name,x\n" + every + b",1\nb,2\n")
    assert rows(path, {"encoding": "latin-1"}, schema) == [(every.decode("latin-1"),), ("b",)]
    found = rows(path, {"encoding": "cp1252"}, schema)  # where five bytes mean nothing
    assert found == [("b",), (None,)]


def test_a_mark_inside_a_file_is_a_letter_wherever_pieces_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = Schema.read({"name": {"type": "text"}})
    path = write(tmp_path / "rows.csv", "\ufeffname,x\n" + "\ufeffa,1\n" * 9)
    for size in (3, 4, 7, 8, 100):
        monkeypatch.setattr(pieces, "SIZE", size)
        assert rows(path, schema=schema) == [("\ufeffa",)] * 9


def test_a_file_without_a_header_has_declared_names(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", "1.5,f\n2,m\n")
    assert rows(path, {"header": False, "names": ["pay", "sex"]}) == ROWS


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"header": False}, 'names and "header": False come together'),
        ({"names": ["a"]}, 'names and "header": False come together'),
        ({"header": False, "names": ["a"], "encoding": "utf-16"}, "write utf-16-le or utf-16-be"),
        ({"encoding": "ebcdic"}, "must be one of utf-8"),
        ({"delimiter": ";;"}, "one ASCII character"),
        ({"delimiter": "5"}, "one ASCII character"),
        ({"thousands": "x"}, "thousands must be"),
        ({"thousands": ",", "decimal": ","}, "different marks"),
        ({"decimal": ";"}, "'.' or ','"),
        ({"names": ["a", "a"], "header": False}, "must not repeat"),
        ({"sep": ";"}, "'text.sep' is unknown. Did you mean 'delimiter'?"),
        ({"strip": "-"}, "signs that no number or quote is made of"),
        ({"strip": "e"}, "signs that no number or quote is made of"),
        ({"strip": " ;", "delimiter": ";"}, "must not hold the delimiter"),
    ],
)
def test_a_format_that_makes_no_sense_is_refused(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        TextFormat.read(given)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("sep=;\r\npay;sex\r\n1.5;f\r\n2;m\r\n", {}),
        ("pay\tsex\n1.5\tf\n2\tm\n", {}),
        ("pay~sex\n1.5~f\n2~m\n", {"delimiter": "~"}),
        ('"pay";"sex, as written";sex\n1.5;x;f\n2;x;m\n', {}),
        ('pay,sex,"a\nb"\n1.5,f,1\n2,m,"x\ny"\n', {"multiline": True}),
    ],
)
def test_what_programs_write(raw: str, text: dict[str, Any], tmp_path: Path) -> None:
    assert rows(write(tmp_path / "rows.csv", raw), text) == ROWS


@pytest.mark.parametrize(
    ("raw", "text", "sentence"),
    [
        (b"pay,sex\r1.5,f\r2,m\r", {}, "end in carriage returns alone"),
        (b'pay,"sex\n1.5,f\n', {}, "a quote that is not closed on its line"),
        ("pay,sex,é\n1,f,2\n".encode("latin-1"), {}, "is not written in utf-8. Declare its encoding"),
        ("pay,sex\n1,f\n".encode("utf-16"), {}, "is not written in utf-8"),
        (b"\n1.5,f\n", {}, "has no header in its first line"),
    ],
)
def test_a_header_that_cannot_be_read_is_told_with_what_to_do(
    raw: bytes, text: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidParameter) as caught:
        rows(write(tmp_path / "rows.csv", raw), text)
    assert sentence in str(caught.value)


def test_several_files_are_one_table(tmp_path: Path) -> None:
    first = write(tmp_path / "2023.csv", "pay,sex\n1.5,f\n")
    second = write(tmp_path / "2024.csv", "sex;more;pay\nm;x;2\n")
    assert rows([first, str(second)]) == ROWS
    assert rows(str(tmp_path / "20*.csv")) == ROWS
    assert rows(tmp_path) == ROWS
    with pytest.raises(InvalidParameter, match="named twice"):
        rows([first, first])
    write(tmp_path / "2025.csv", "pay\n1\n")
    with pytest.raises(InvalidParameter, match="'sex'"):
        rows(tmp_path)
    (tmp_path / "2025.csv").unlink()
    write(tmp_path / "more.jsonl", "{}\n")
    with pytest.raises(InvalidParameter, match="several kinds"):
        rows(tmp_path)
    with pytest.raises(InvalidParameter, match="No file is named like"):
        rows(str(tmp_path / "1*.csv"))


def test_a_file_under_two_names_is_refused(tmp_path: Path) -> None:
    """Else each of its records would move every sum twice as far as is paid for."""
    first = write(tmp_path / "people.csv", "pay,sex\n1.5,f\n2,m\n")
    link, hard, copy = (tmp_path / name for name in ("link.csv", "hard.csv", "people.csv.gz"))
    link.symlink_to(first)
    for where in (tmp_path, str(tmp_path / "*.csv"), [first, link]):
        with pytest.raises(InvalidParameter, match="named twice, perhaps by a link"):
            rows(where)
    link.unlink()
    hard.hardlink_to(first)
    with pytest.raises(InvalidParameter, match="named twice"):
        rows(tmp_path)
    hard.unlink()
    (tmp_path / "more").mkdir()
    with pytest.raises(InvalidParameter, match="named twice"):
        rows([first, tmp_path / "more" / ".." / "people.csv"])
    copy.write_bytes(gzip.compress(first.read_bytes()))
    with pytest.raises(InvalidParameter, match="beside a compressed one of the same name"):
        rows(tmp_path)
    link.symlink_to(first)
    assert rows(link) == ROWS  # by another name, but once


@pytest.mark.parametrize("mark", ['"', "5", "€", "-", "'", "\0"])
def test_a_noted_delimiter_that_parts_nothing_is_refused_before_the_charge(mark: str, tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", f'sep={mark}\npay{mark}sex\n"1.5"{mark}f\n')
    with pytest.raises(InvalidParameter, match="notes a mark between fields that cannot part them"):
        rows(path)
    assert rows(write(path, f"sep={mark}\npay;sex\n1.5;f\n2;m\n"), {"delimiter": ";"}) == ROWS


def test_what_any_of_several_headers_says_twice_is_refused_before_the_charge(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "pay,sex\n1.5,f\n")
    write(tmp_path / "b.csv", "pay,sex,pay\n2,m,3\n")
    with pytest.raises(InvalidParameter, match="two columns called 'pay'"):
        rows(tmp_path)


def test_names_that_are_used_inside_are_names_like_others(tmp_path: Path) -> None:
    names = ("sourdine_file", "sourdine_other_0", "sourdine_OTHER_", "sourdine_source")
    schema = Schema.read({name: {"type": "text"} for name in names})
    path = write(tmp_path / "rows.csv", f"x,{','.join(names)}\n0,1,2,3,4\n")
    assert rows(path, schema=schema) == [("1", "2", "3", "4")]


def test_a_file_that_is_compressed_wrongly_is_refused_without_its_words(tmp_path: Path) -> None:
    good = gzip.compress(b"pay,sex\n" + b"1.5,f\n" * 9)
    for name, raw in (("a.csv.gz", good[:12] + b"\xff" * 3 + good[15:]), ("a.csv.zst", b"pay,sex\n1.5,f\n")):
        with pytest.raises(InvalidParameter, match="cannot be read as csv"):
            rows(write(tmp_path / name, raw))


def test_what_is_said_of_carriage_returns_does_not_hang_on_records(tmp_path: Path) -> None:
    """Without a line feed all records are in the first line."""
    for raw in (b"pay,sex\r1.5,f\r", b"pay,sex\r1.5,\xff\r", b'pay,sex\r1.5,"f\r'):
        with pytest.raises(InvalidParameter, match="end in carriage returns alone"):
            rows(write(tmp_path / "rows.csv", raw))


def test_whatever_the_first_line_of_json_lines_holds_it_is_a_record(tmp_path: Path) -> None:
    good = b'{"pay": "1.5", "sex": "f"}\n'
    for first in (b"[", b"[1]", b" [", b"{", b"\xef\xbb\xbf[", b"]"):
        assert rows(write(tmp_path / "rows.jsonl", first + b"\n" + good)) == [("1.5", "f"), (None, None)]
        assert rows(write(tmp_path / "rows.ndjson", first + b"\n" + good)) == [("1.5", "f"), (None, None)]
    with pytest.raises(InvalidParameter, match="is one list of records"):
        rows(write(tmp_path / "rows.json", b"[" + good + b"]"))


@pytest.mark.parametrize("kind", ["csv", "parquet", "csv.gz", "jsonl"])
def test_partitions_are_columns(kind: str, tmp_path: Path) -> None:
    for sex, pay in (("f", "1.5"), ("m", "2"), ("__HIVE_DEFAULT_PARTITION__", "3")):
        folder = tmp_path / "people" / f"sex={sex}"
        folder.mkdir(parents=True)
        path = folder / f"part.{kind}"
        if kind == "parquet":
            some(duckdb.sql(f"SELECT '{pay}' AS pay")).write_parquet(str(path))
            continue
        raw = f'{{"pay": "{pay}"}}\n'.encode() if kind == "jsonl" else f"pay,x\n{pay},1\n".encode()
        path.write_bytes(gzip.compress(raw) if kind.endswith("gz") else raw)
    (tmp_path / "people" / "_SUCCESS").write_text("")
    schema = Schema.read(
        {"pay": {"type": "text"}, "sex": {"type": "category", "keys": ["f", "m"]}},
    )
    assert rows(tmp_path / "people", schema=schema) == [("1.5", "f"), ("2", "m"), ("3", None)]


def test_parquet_files_may_hold_columns_in_another_order(tmp_path: Path) -> None:
    some(duckdb.sql("SELECT 1.5::DOUBLE AS pay, 'f' AS sex")).write_parquet(str(tmp_path / "a.parquet"))
    some(duckdb.sql("SELECT 'm' AS sex, 2::INTEGER AS pay")).write_parquet(str(tmp_path / "b.parquet"))
    assert rows(tmp_path) == [(1.5, "f"), (2.0, "m")]
    with pytest.raises(InvalidParameter, match="has no encoding, delimiter or header"):
        rows(tmp_path, {"delimiter": ";"})


def test_nothing_but_the_header_is_read_before_a_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "rows.csv", "pay,sex\n1.5,f\n2,m\n")
    opened: list[int] = []
    piece = pieces.TextFile.piece

    def note(self: pieces.TextFile, number: int) -> bytes:
        opened.append(number)
        return piece(self, number)

    monkeypatch.setattr(pieces.TextFile, "piece", note)
    source = open_source(path, SCHEMA)
    assert source.types == {"pay": "VARCHAR", "sex": "VARCHAR"}
    assert opened == []
    assert source.ask(f"SELECT count(*) FROM {source.name}") == [(2,)]
    assert opened == [0]


def test_an_open_quote_is_told_where_line_breaks_are_read() -> None:
    assert TextFormat().caveats == ()
    assert "never closed changes how all records after it are read" in TextFormat(multiline=True).caveats[0]
