"""A budget that is no short decimal, and options of reading, are written as they were declared."""

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sourdine.accounting.certificate import verify_release
from sourdine.accounting.ledger import Ledger
from sourdine.core.format import parse, written
from sourdine.frames.csv.format import MULTILINE
from sourdine.report.verdict import CheckOutcome, judge, wrong_of
from sourdine.tables import Query, Specification, Table, find_bounds
from sourdine.tables.publication import Record
from sourdine.tables.synthetic import synthesize
from sourdine.testing import SeededBits

COLUMNS: dict[str, Any] = {
    "pay": {"type": "integer", "lower": 0, "upper": 100},
    "sex": {"type": "category", "keys": ["f", "m"]},
    "day": {"type": "date", "first": "2024-01-01", "last": "2024-12-31", "period": "month"},
}
QUERY = Query("q", ["count", {"sum": "pay"}], by="sex")
EPSILONS = {
    "a fraction": Fraction(1, 3),
    "a text": "1/3",
    "a long decimal": Fraction("0.12345678901234567890123"),
    "half": 0.5,
    "one": 1,
}
TEXTS: dict[str, dict[str, Any]] = {
    "a delimiter": {"delimiter": ";"},
    "several": {"delimiter": ";", "encoding": "latin-1", "decimal": ",", "thousands": ".", "strip": "% "},
    "no header": {"delimiter": ";", "header": False, "names": ("pay", "sex", "day")},
    "line breaks": {"delimiter": ";", "multiline": True},
}


def table_of(folder: Path, **text: Any) -> Table:
    path = folder / "people.csv"
    head = "pay;sex;day\n" if text.get("header", True) else ""
    path.write_text(head + "20;f;2024-02-01\n30;m;2024-03-01\n" * 20, encoding="utf-8")
    return Table(path, unit="person", columns=COLUMNS, text={"delimiter": ";", **text}, size=40)


def published(table: Table, folder: Path, epsilon: Any, **others: Any) -> Path:
    with Ledger.create(folder / "people.ledger", epsilon=30, delta=others.get("delta")) as book:
        noise = None if others.get("delta") is None else "gaussian"
        release = table.release(table.plan(QUERY, epsilon=epsilon, noise=noise, **others), book)
        release.write(folder / "out", book)
    return folder / "out"


def check_honest(folder: Path) -> None:
    """An honest release passes every check of both verbs, with its ledger and without it."""
    for ledger in (None, folder.parent / "people.ledger"):
        verification = verify_release(folder, ledger=ledger)
        assert wrong_of(verification) == ()
        verdict = judge(verification)
        assert not verdict.with_outcome(CheckOutcome.FAILED)
        assert {each.name: each.outcome for each in verdict.checks}["Price of the plan"] == "passed"


@pytest.mark.parametrize("delta", [None, 1e-6])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_honest_release_passes_at_any_budget(epsilon: str, delta: float | None, tmp_path: Path) -> None:
    check_honest(published(table_of(tmp_path), tmp_path, EPSILONS[epsilon], delta=delta))


def test_what_is_left_divided_by_seven_is_kept(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    with Ledger.create(tmp_path / "people.ledger", epsilon=Fraction(7, 10)) as book:
        table.release(table.plan(QUERY, epsilon="0.1"), book)
        part = book.status().left / 7
        table.release(table.plan(QUERY, epsilon=part), book).write(tmp_path / "out", book)
        assert book.status().left == part * 6
    check_honest(tmp_path / "out")
    record = Record.from_json((tmp_path / "out" / "release.json").read_text())
    assert record.plan.privacy.epsilon == part


@pytest.mark.parametrize("name", TEXTS)
def test_options_of_reading_are_kept(name: str, tmp_path: Path) -> None:
    table = table_of(tmp_path, **TEXTS[name])
    folder = published(table, tmp_path, "1/3")
    check_honest(folder)
    record = Record.from_json((folder / "release.json").read_text())
    assert record.specification.table.text == table.text
    assert record.plan.caveats == table.plan(QUERY, epsilon=1).caveats


@pytest.mark.parametrize("number", ["1/3", "0.5", "3", "1e-7", "12345678901/98765432101", "0.1234567890123"])
def test_an_exact_number_is_read_back(number: str) -> None:
    exact = parse(number)
    assert exact is not None
    assert parse(written(exact)) == exact


def test_a_specification_takes_a_ratio(tmp_path: Path) -> None:
    table_of(tmp_path)
    text = """
[table]
source = "people.csv"
delimiter = ";"
[privacy]
unit = "person"
epsilon = "1/3"
ledger = "people.ledger"
[columns.pay]
type = "integer"
lower = 0
upper = 100
[[queries]]
name = "all"
ask = ["count"]
"""
    (tmp_path / "people.toml").write_text(text)
    specification = Specification.load(tmp_path / "people.toml")
    assert specification.plan().privacy.epsilon == Fraction(1, 3)
    assert json.loads(specification.model_dump_json())["privacy"]["epsilon"] == "1/3"
    with pytest.raises(Exception, match="--epsilon 1/3 "):
        specification.open_ledger()


def test_the_two_verbs_agree_on_a_seeded_release(tmp_path: Path) -> None:
    table = table_of(tmp_path)
    with Ledger.create(tmp_path / "people.ledger", epsilon=3) as book:
        release = table.release(table.plan(QUERY, epsilon=1), book, bits=SeededBits(1))
        release.write(tmp_path / "out", book)
    verification = verify_release(tmp_path / "out")
    assert judge(verification).light == "red"
    assert [each.name for each in wrong_of(verification)] == ["Noise"]


def test_the_two_verbs_agree_on_another_price(tmp_path: Path) -> None:
    """A record with another epsilon, under a certificate that covers it, is red and not verified."""
    folder = published(table_of(tmp_path), tmp_path, 1)
    path = folder / "release.json"
    fields = json.loads(path.read_text())
    fields["specification"]["privacy"]["epsilon"] = 2
    path.write_text(json.dumps(fields))
    certificate = verify_release(folder).certificate
    files = [each for each in folder.iterdir() if each.name != "certificate.json"]
    (folder / "certificate.json").write_text(certificate.with_digests(files, complete=True).to_json() + "\n")
    verification = verify_release(folder)
    assert judge(verification).light == "red"
    assert [each.name for each in wrong_of(verification)] == ["Price of the plan"]


def test_a_doubt_about_reading_is_in_every_certificate(tmp_path: Path) -> None:
    """An open quote may change how all later records are read: whoever reads a certificate must know."""
    table, bits = table_of(tmp_path, multiline=True), SeededBits(1)
    with Ledger.create(tmp_path / "people.ledger", epsilon=30, delta=1e-6) as book:
        plan = table.synthetic_plan(epsilon=1, delta=1e-6)
        assert MULTILINE in plan.notes
        release = synthesize(plan, table, book, bits=bits)
        assert release.certificate(book).declared["reading"] == MULTILINE
        bounds = find_bounds(
            tmp_path / "people.csv",
            "pay",
            unit="person",
            epsilon="1/3",
            kind="real",
            ledger=book,
            text=table.text,
            bits=bits,
        )
        assert bounds.certificate(book).declared["reading"] == MULTILINE
        assert bounds.found.startswith("privately, for epsilon 1/3, line 2")
    series = table.series_plan(
        QUERY, series={"period": "week", "first": "2024-01-01", "periods": 3}, epsilon=1
    )
    assert series.declared["reading"] == MULTILINE
