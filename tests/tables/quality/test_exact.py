"""Exact counts for the data's holder: never a value, a mark before anything is shown, and nothing else."""

import os
import stat
import tomllib
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.frames import PrivacyUnit, Schema, open_source
from sourdine.frames.quality import CellState
from sourdine.tables import Table
from sourdine.tables.quality import NOTICE, exact_quality, mark_checked, with_mark

SPEC = """\
# the register
[table]   # where it is
source = "people.csv"  # [table] as it came
size = 300

[privacy]
unit = "person"
"""
COLUMNS = {
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "sex": {"type": "category", "keys": ["f", "m"]},
}
PEOPLE = pa.table({"age": [31, 31337, None], "sex": ["f", "secret", ""], "who": [1, 1, None]})
QUERY = {"name": "q", "ask": ["count"], "by": ["sex"]}


def test_all_records_are_counted_and_no_value_is_shown() -> None:
    source = open_source(PEOPLE, Schema.read(COLUMNS), ["who"])
    found = exact_quality(source, ["age", "sex"], PrivacyUnit(column="who"))
    assert (found.records, found.without_unit) == (3, 1)
    assert (
        found.count("age", CellState.ABOVE)
        == found.count("age", "missing")
        == found.count("sex", "unknown key")
        == 1
    )
    lines = list(found.lines())
    assert all(line.startswith(NOTICE) for line in lines)
    assert f"{NOTICE}: sex: unknown key: 1 (33.3 %)" in lines
    assert "outside the guarantee" in lines[-1]
    for shown in (*lines, repr(found), found._repr_html_()):
        assert "secret" not in shown
        assert "31337" not in shown
        assert "NOT PRIVATE" in shown
    with pytest.raises(InvalidParameter, match="Nothing was counted for 'sex', 'below'"):
        found.count("sex", "below")


def test_no_name_makes_a_line_without_the_notice() -> None:
    columns = {"a\nb\r\x1b[2K": {"type": "flag"}, "c\u2028": {"type": "flag"}}
    table = Table(pa.table({name: [True] for name in columns}), unit="person", columns=columns)
    for line in "\n".join(table.check().lines()).splitlines():
        assert line.startswith("NOT PRIVATE")
        assert line.isprintable()


def test_without_columns_and_records_it_counts_nothing() -> None:
    source = open_source(PEOPLE.slice(0, 0), Schema.read(COLUMNS))
    assert exact_quality(source, [], PrivacyUnit()).records == 0
    assert "0 (0 %)" in "".join(exact_quality(source, ["age"], PrivacyUnit()).lines())


def test_an_error_of_the_engine_keeps_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_source(PEOPLE, Schema.read(COLUMNS))

    def fail(*_: object) -> None:
        raise RuntimeError("31337 is no flag")

    monkeypatch.setattr(type(source), "ask", fail)
    with pytest.raises(SourdineError, match="could not be read to its end") as problem:
        exact_quality(source, ["age"], PrivacyUnit())
    assert "31337" not in str(problem.value)


def test_a_table_that_was_checked_says_so_ever_after(tmp_path: Path) -> None:
    table = Table(PEOPLE, unit="person", columns=COLUMNS)
    before = table.plan(QUERY, epsilon=1)
    assert not before.checked
    assert table.check().records == 3
    assert table.plan(QUERY, epsilon=1).checked
    terms = Terms(budget=PureBudget(limit=Fraction(3)), unit="person", neighbours=Neighbours.ADD_REMOVE)
    with Ledger.create(tmp_path / "l", terms) as ledger:
        made = table.release(before, ledger)  # which was planned before, and is paid after
        certificate = made.certificate(ledger, made.declared)
        assert "checked against the data" in certificate.declared["the declarations"]
        assert certificate.verify(ledger) == ()
        anew = Table(PEOPLE, unit="person", columns=COLUMNS, checked=True)
        assert "the declarations" in anew.release(anew.plan(QUERY, epsilon=1), ledger).declared
        other = Table(PEOPLE, unit="person", columns=COLUMNS)
        assert "the declarations" not in other.release(other.plan(QUERY, epsilon=1), ledger).declared


def test_the_mark_changes_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "people.toml"
    path.write_text(SPEC)
    path.chmod(0o640)
    mark_checked(path)
    text = path.read_text()
    assert text == SPEC.replace("# where it is\n", "# where it is\nchecked = true\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    mark_checked(path)
    assert path.read_text() == text
    assert [each.name for each in tmp_path.iterdir()] == ["people.toml"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "[table]\nchecked = false # not yet\nsource = 'a'\n",
            "[table]\nchecked = true # not yet\nsource = 'a'\n",
        ),
        ("[table]\r\nsource = 'a'\r\n", "[table]\r\nchecked = true\r\nsource = 'a'\r\n"),
        ("[ 'table' ]#x\nsource = 'a'", "[ 'table' ]#x\nchecked = true\nsource = 'a'"),
        ("[table]", "[table]\nchecked = true\n"),
        ("\ufeff[table]\r\nb=1", "\ufeff[table]\r\nchecked = true\r\nb=1"),
        ("[table]\nchecked = true", "[table]\nchecked = true"),
        (
            "[x]\na='''\n[table]'''\nchecked = false\n[table]\nb=1\n[y]\nchecked = false\n",
            "[x]\na='''\n[table]'''\nchecked = false\n[table]\nchecked = true\nb=1\n[y]\nchecked = false\n",
        ),
    ],
)
def test_the_mark_stands_in_its_block(before: str, after: str) -> None:
    found = with_mark(before, Path("s.toml"))
    assert found == after
    assert tomllib.loads(found.removeprefix("\ufeff"))["table"]["checked"] is True


@pytest.mark.parametrize("text", ["table = { source = 'a' }\n", "table.source = 'a'\n"])
def test_where_no_mark_can_be_written_nothing_is_shown(text: str) -> None:
    with pytest.raises(InvalidParameter, match=r"Write checked = true beside the source"):
        with_mark(text, Path("s.toml"))


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.toml").write_text(SPEC)
    link = tmp_path / "link.toml"
    link.symlink_to("real.toml")
    mark_checked(link)
    assert link.is_symlink()
    assert "checked = true" in (tmp_path / "real.toml").read_text()


def test_a_file_that_must_not_be_written_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.toml"
    path.write_text(SPEC)
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InvalidParameter, match=r"cannot be written \(Permission denied\)"):
        mark_checked(path)
    monkeypatch.undo()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidParameter, match="No space left"):
        mark_checked(path)
    assert path.read_text() == SPEC
    assert [each.name for each in tmp_path.iterdir()] == ["people.toml"]
