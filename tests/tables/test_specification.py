"""A specification reads every field, and names every mistake by its field."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, OldWord
from sourdine.frames import PrivacyUnit, Schema
from sourdine.tables import Query, Specification, forecasts

TEXT = """
[table]
source = "people.csv"
size = 1000

[privacy]
unit = "patient"
column = "who"
max_rows = 3
max_groups = 2
neighbours = "replace"
ledger = "people.ledger"
epsilon = 0.1
delta = 1e-6
confidence = 0.9

[columns]
sex = { type = "category", keys = ["f", "m"], missing = "f" }
well = { type = "flag", missing = false }

[columns.age]
type = "integer"
lower = 0
upper = 120
missing = 40

[columns.pay]
type = "real"
lower = 0.0
upper = 1e5
granularity = 0.5

[[queries]]
name = "people"
ask = ["count", "units", { mean = "pay" }, { proportion = "sex", of = ["f"] }]
by = ["well"]
where = { age = { at_least = 18, below = 65 }, sex = ["f", "m"] }
weight = 2.5

[[queries]]
name = "ages"
ask = [{ histogram = "age", edges = [0, 18, 65, 99] }, { quantiles = "age", levels = [0.5], law = "uniform" }]

[[queries]]
name = "cells"
ask = { contingency = ["sex", "well"] }
"""


def loaded(folder: Path, text: str) -> Specification:
    path = folder / "people.toml"
    path.write_text(text, encoding="utf-8")
    return Specification.load(path)


def test_every_field_is_read(tmp_path: Path) -> None:
    """No table and no ledger need be there."""
    found = loaded(tmp_path, TEXT)
    assert found.unit == PrivacyUnit(name="patient", column="who", max_rows=3, max_groups=2)
    assert found.ledger_path == tmp_path / "people.ledger"
    plan = found.plan()
    assert plan.neighbours is Neighbours.REPLACE
    assert plan.privacy.epsilon == Fraction(1, 10)
    assert plan.privacy.delta == 1e-6
    assert plan.confidence == 0.9
    assert plan.size == 1000
    people, ages, cells = plan.queries
    assert people.share == Fraction(5, 2)
    assert people.by == ("well",)
    assert [each.words for each in people.where] == ["age from 18 to below 65", "sex f or m"]
    assert [each.label for each in people.ask] == ["count", "units", "mean of pay", "proportion with sex f"]
    assert ages.ask[0].label == "histogram of age"
    assert cells.ask[0].label == "sex by well"
    assert found.plan(Fraction(2)).privacy.epsilon == 2
    assert len(forecasts(plan)) == 7
    assert plan.quality
    assert not plan.checked


def test_a_list_of_keys_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "sexes.txt").write_bytes("\ufefff \r\nm\r\n\r\n".encode())
    (tmp_path / "s.toml").write_text(TEXT.replace('keys = ["f", "m"]', 'keys = { file = "sexes.txt" }'))
    specification = Specification.load(tmp_path / "s.toml")
    assert specification.schema_of.keys("sex") == ("f", "m")
    assert specification.columns["sex"] == {"type": "category", "keys": ["f", "m"], "missing": "f"}
    (tmp_path / "sexes.txt").write_bytes("männlich".encode("latin-1"))
    with pytest.raises(InvalidParameter, match="not written in UTF-8"):
        Specification.load(tmp_path / "s.toml")


def test_words_of_0_1_are_read_and_told(tmp_path: Path) -> None:
    old = TEXT.replace("max_rows", "rows").replace("max_groups", "groups")
    with pytest.warns(OldWord) as told:
        found = loaded(tmp_path, old)
    assert found == loaded(tmp_path, TEXT)
    (only,) = (str(each.message) for each in told)
    words = "'privacy.rows' is called 'privacy.max_rows' and 'privacy.groups' is called 'privacy.max_groups'"
    assert only.endswith(f"toml, {words} now. It is read as before: write the new word.")
    with pytest.warns(OldWord, match=r"'privacy\.reserve' is called 'privacy\.selection_delta' now"):
        kept = loaded(tmp_path, TEXT.replace("delta = 1e-6", "delta = 1e-6\nreserve = 5e-7"))
    assert kept.privacy.selection_delta == 5e-7
    with pytest.warns(OldWord, match=r"'queries\.at' is called 'queries\.levels' now"):
        found = loaded(tmp_path, TEXT.replace("levels = [0.5]", "at = [0.5]"))
    assert found == loaded(tmp_path, TEXT)
    with pytest.raises(InvalidParameter, match=r"'privacy\.rows' is unknown"):
        loaded(tmp_path, TEXT.replace("max_rows = 3", "max_rows = 3\nrows = 3"))


def test_what_is_not_there_is_told_when_it_is_needed(tmp_path: Path) -> None:
    found = loaded(tmp_path, TEXT)
    with pytest.raises(InvalidParameter, match="does not exist"):
        found.open()
    with pytest.raises(InvalidParameter, match=r"no ledger .* sourdine ledger create .*--delta 1e-6"):
        found.open_ledger()
    with pytest.raises(InvalidParameter, match="names no ledger"):
        loaded(tmp_path, TEXT.replace('ledger = "people.ledger"\n', "")).open_ledger()
    (tmp_path / "people.csv").write_text("who,age,pay,sex,well\n1,2,3,f,true\n")
    assert found.open().ask("SELECT count(*) FROM sourdine_source") == [(1,)]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[table]", "[tables]", "no block 'tables'"),
        ("[table]", "[table", "is not valid TOML"),
        ("size = 1000", "size = 0", "'table.size' is wrong"),
        ("size = 1000", "sizes = 0", "'table.sizes' is unknown"),
        ('source = "people.csv"', "", "'table.source' is missing"),
        ('unit = "patient"', "", "'privacy.unit' is missing"),
        ("epsilon = 0.1", "", "'privacy.epsilon' is missing"),
        ("epsilon = 0.1", "epslon = 0.1", "'privacy.epslon' is unknown. Did you mean 'epsilon'?"),
        ("epsilon = 0.1", "epsilon = -1", "'privacy.epsilon' is wrong"),
        ("epsilon = 0.1", "epsilon = nan", "'privacy.epsilon' is wrong"),
        ("epsilon = 0.1", 'epsilon = "1"', "'privacy.epsilon' is wrong: it must be a number"),
        ("missing = 40", 'missing = "x"', "'columns.age.missing' is wrong"),
        ('keys = ["f", "m"]', 'keys = ["f", 1]', "'columns.sex' is wrong: keys must be all texts"),
        ("delta = 1e-6", "delta = 1.0", "'privacy.delta' is wrong"),
        ("confidence = 0.9", "confidence = 95.0", "'privacy.confidence' is wrong"),
        ("max_rows = 3", "max_rows = 0", "'privacy.max_rows' is wrong"),
        ('column = "who"\n', "", "max_rows and max_groups need a column"),
        ('neighbours = "replace"', 'neighbours = "zero-out"', '"add-remove" or "replace"'),
        ("upper = 120", "upper = -1", "'columns.age' is wrong: lower must be below upper"),
        ("upper = 120", "", "'columns.age.upper' is missing"),
        ('type = "real"', 'type = "data"', "'columns.pay' is wrong"),
        ("granularity = 0.5", "granularity = 0.0", "'columns.pay.granularity' is wrong"),
        ("weight = 2.5", "weight = 0", "'queries.people.weight' is wrong"),
        ('by = ["well"]', "by = 7", "'queries.people.by' is wrong: it must be a list"),
        ('by = ["well"]', 'by = ["pay"]', "the column 'pay' is declared to hold numbers"),
        ("at_least = 18", "at_lest = 18", "at_lest' is unknown"),
        ('name = "ages"\n', "", "'queries.name' is missing"),
        ('name = "ages"', 'name = "people"', "Two queries are called 'people'"),
        ('keys = ["f", "m"]', 'keys = "sexes.txt"', 'or keys = { file = "keys.txt" }'),
        ('keys = ["f", "m"]', 'keys = { path = "sexes.txt" }', "it must be a list, or name a file"),
        ('keys = ["f", "m"]', 'keys = { file = "nowhere.txt" }', "nowhere.txt does not exist"),
        ("levels = [0.5]", "levels = [50.0]", "strictly between 0 and 1"),
        ('ask = { contingency = ["sex", "well"] }', 'ask = ["max"]', "asks for the max"),
        ('source = "people.csv"', 'source = "FILL IN"', "'table.source' of"),
    ],
)
def test_a_mistake_is_named_by_its_field(old: str, new: str, sentence: str, tmp_path: Path) -> None:
    assert old in TEXT
    with pytest.raises(InvalidParameter) as caught:
        loaded(tmp_path, TEXT.replace(old, new, 1))
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_specification_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"does not exist\. Check the path"):
        Specification.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidParameter, match="is not saved as UTF-8"):
        Specification.load(tmp_path / "latin.toml")


def test_one_pair_of_brackets_around_queries_is_told(tmp_path: Path) -> None:
    place = tmp_path / "people.toml"
    place.write_text(TEXT[: TEXT.index("[[queries]]")] + '[queries]\nname = "people"\nask = ["count"]\n')
    with pytest.raises(InvalidParameter, match=r"Write \[\[queries\]\] with two brackets"):
        Specification.load(place)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (
            'type = "integer"',
            'type = "number"',
            "'columns.age' is wrong: its 'type' must be one of 'integer', 'real'",
        ),
        ('type = "integer"', "", "'columns.age' is wrong: its 'type' is missing"),
        ('keys = ["f", "m"]', 'keys = "f"', "'columns.sex.keys' is wrong: it must be a list"),
        ('unit = "patient"', "unit = 3", "'privacy.unit' is wrong: it must be a text in quotes"),
        ("size = 1000", "size = 10.5", "'table.size' is wrong: it must be a whole number"),
    ],
)
def test_mistakes_are_told_in_plain_words(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in TEXT
    place = tmp_path / "people.toml"
    place.write_text(TEXT.replace(old, new))
    with pytest.raises(InvalidParameter) as caught:
        Specification.load(place)
    assert sentence in str(caught.value)


def test_a_specification_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queries and columns are parsed when it is read, and a copy with others reads those anew."""
    read: list[type] = []
    for kind in (Query, Schema):
        original = vars(kind)["read"].__func__

        def counted(cls: type, block: Any, original: Any = original) -> Any:
            read.append(cls)
            return original(cls, block)

        monkeypatch.setattr(kind, "read", classmethod(counted))
    blocks = [{"name": name, "ask": ["count"]} for name in "abc"]
    privacy = {"unit": "person", "epsilon": 1.0}
    held = Specification.read({"table": {"source": "t.csv"}, "privacy": privacy, "queries": blocks})
    assert held.plan() is held.plan()
    assert held.plan(Fraction(2)).queries == held.plan().queries
    assert (read.count(Query), read.count(Schema)) == (3, 1)
    fewer = held.model_copy(update={"queries": held.queries[:1]})
    assert [query.name for query in fewer.plan().queries] == ["a"]
    assert held.model_copy() == held
