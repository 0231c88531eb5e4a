"""Plausible mistakes in a specification: each is refused by `plan` in one sentence with its remedy."""

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from sourdine.accounting.ledger import Ledger
from tests.cli.table_case import run

GOOD = """\
[table]
source = "people.csv"
size = 300

[privacy]
unit = "person"
column = "id"
max_rows = 1
max_groups = 2
ledger = "people.ledger"
epsilon = 0.5

[columns.age]
type = "integer"
lower = 0
upper = 120

[columns.sex]
type = "category"
keys = ["f", "m"]

[columns.pay]
type = "real"
lower = 0.0
upper = 9000.0
granularity = 0.5

[columns.well]
type = "flag"

[columns.region]
type = "category"
keys = ["north", "south"]

[joins.places]
file = "places.csv"
on = "town"
columns = ["region"]

[hierarchies.place]
levels = ["land", "town"]
file = "towns.csv"

[[queries]]
name = "people"
ask = ["count", { hierarchy = "place" }]
by = ["sex"]

[[queries]]
name = "pay"
ask = [{ mean = "pay" }, { quantiles = "pay", levels = [0.5] }]
by = ["region"]
where = { age = { at_least = 18 }, sex = ["f"] }
weight = 2

[[queries]]
name = "ages"
ask = [{ histogram = "age", edges = [0, 20, 40] }, { proportion = "well" }]
"""
# records that no message may hold
RECORDS = "Zelda,31,f,1234.5,true,Hyrule\nLink,83,m,4321.5,false,Kakariko\n"
FILES = {
    "people.csv": f"id,age,sex,pay,well,town\n{RECORDS}",
    "bare.csv": RECORDS,
    "people.xlsx": "PK",
    "places.csv": "town,region\nHyrule,north\nKakariko,south\n",
    "twice.csv": "town,region\nHyrule,north\nHyrule,south\n",
    "towns.csv": "land,town\nEast,Hyrule\nWest,Kakariko\n",
    "both.csv": "land,town\nEast,Hyrule\nWest,Hyrule\n",
}
SECRETS = ("Zelda", "Link", "1234", "4321", "Hyrule", "Kakariko", "83")


QUERIES = GOOD[GOOD.index("[[queries]]") :]
MANY = ", ".join(map(str, range(3000)))
BIG = "".join(f'[columns.{name}]\ntype = "category"\nkeys = [{MANY}]\n\n' for name in ("day", "hour"))
SPELT = "Check how the first line of the file spells it, letter by letter."


@dataclass(frozen=True)
class Slip:
    """What is written in the place of something good, and words of the refusal, the remedy among them.

    `shown` tells that the ledger refuses, so that the table of errors comes first.
    """

    changes: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    shown: bool = False

    @property
    def text(self) -> str:
        """The specification with the mistake."""
        found = GOOD
        for old, new in self.changes:
            assert GOOD.count(old) == 1
            found = found.replace(old, new)
        return found


def slip(
    old: str, new: str, *words: str, shown: bool = False, also: tuple[tuple[str, str], ...] = ()
) -> Slip:
    return Slip(((old, new), *also), words, shown)


EPSILON = "epsilon = 0.5"
SLIPS = {
    # names
    "a column misspelt in a query": slip(
        '{ mean = "pay" }',
        '{ mean = "pya" }',
        "'pya' is not declared. Did you mean 'pay'?",
        "declare it, as in [columns.pya]",
    ),
    "a column misspelt where it is declared": slip(
        "[columns.age]", "[columns.aeg]", "'age' is not declared. Did you mean 'aeg'?"
    ),
    "a column that the table has not": slip(
        "[columns.well]",
        '[columns.height]\ntype = "flag"\n[columns.well]',
        f"The table has 6 columns, and none is called 'height'. {SPELT}",
    ),
    "a unit's column that the table has not": slip(
        'column = "id"', 'column = "person_id"', "none is called 'person_id'.", SPELT
    ),
    "a file without a header": slip(
        '"people.csv"', '"bare.csv"', "none is called 'town', 'age', 'sex' or any of 3 more", "header = false"
    ),
    "a column of another type": slip(
        '"people.csv"', '"people.parquet"', "The column 'pay' is declared to hold numbers", "Take"
    ),
    "a spreadsheet": slip('"people.csv"', '"people.xlsx"', "is a spreadsheet", "Save its sheet as CSV"),
    "another ending": slip('"people.csv"', '"people.doc"', "ending in '.doc' is not read. Use one of .csv"),
    "an empty folder": slip('"people.csv"', '"empty"', "a folder without a table in it. Name a file"),
    "an unknown encoding": slip(
        "size = 300", 'size = 300\nencoding = "ebcdic"', "the encoding must be one of utf-8"
    ),
    "a size in words": slip("size = 300", 'size = "many"', "'table.size' is wrong", "size = 50000"),
    # columns
    "an unknown type": slip('type = "flag"', 'type = "boolean"', "its 'type' must be one of", "'flag'"),
    "no type": slip('type = "flag"\n', "", "its 'type' is missing", 'Write it like type = "integer"'),
    "bounds swapped": slip("lower = 0\nupper = 120", "lower = 120\nupper = 0", "lower must be below", "swap"),
    "no bounds": slip(
        "lower = 0\nupper = 120\n", "", "'columns.age.lower' is missing. Add it, as in lower = 0"
    ),
    "a bound with decimals": slip("upper = 120", "upper = 120.5", "must be a whole number", "upper = 120"),
    "a grid that is too fine": slip("granularity = 0.5", "granularity = 1e-9", "take a coarser granularity"),
    "a missing value out of bounds": slip(
        "upper = 120", "upper = 120\nmissing = -1", "lie between the bounds"
    ),
    "keys repeated": slip('["f", "m"]', '["f", "m", "f"]', "keys must not repeat; name each of them once"),
    "no keys": slip('keys = ["f", "m"]', "", "'columns.sex.keys' is missing. Add it, as in keys ="),
    "keys in one text": slip('keys = ["f", "m"]', 'keys = "f, m"', "it must be a list. Write it like keys ="),
    "keys of two kinds": slip(
        '["f", "m"]', '["f", 1]', "all texts or all whole numbers; write each in quotes"
    ),
    "a blank": slip("lower = 0\n", 'lower = "FILL IN"\n', "'columns.age.lower' of", "Write there what"),
    "a column that is no block": slip(
        '[columns.well]\ntype = "flag"', '[columns]\nwell = "flag"', "Write it under [columns.well]"
    ),
    # queries
    "an unknown aggregate": slip(
        '"count", {', '"cuont", {', "is unknown. Did you mean 'count'? Ask for one of"
    ),
    "a maximum": slip('{ mean = "pay" }', '{ max = "pay" }', "the value of one record", "Ask for a quantile"),
    "a mean of nothing": slip('{ mean = "pay" }', '"mean"', "of no column. Write it like { mean ="),
    "a mean of keys": slip('{ mean = "pay" }', '{ mean = "sex" }', "needs numbers", "Declare it with bounds"),
    "grouped by a number": slip(
        'by = ["region"]', 'by = ["pay"]', "declared to hold numbers. Ask for { histogram"
    ),
    "grouped twice": slip(
        'by = ["region"]', 'by = ["region", "region"]', "must not repeat a column; name each"
    ),
    "an unknown key in a condition": slip('sex = ["f"]', 'sex = ["w"]', "the key 'w'", "Use one of its keys"),
    "a condition upside down": slip("at_least = 18", "at_least = 65, below = 18", "at_least must be below"),
    "a condition with another word": slip(
        "at_least = 18", "above = 18", "'above' is unknown in the condition on 'age'", "Write it like where ="
    ),
    "nothing asked": slip(
        '["count", { hierarchy = "place" }]', "[]", "'queries.people.ask' is wrong", "Write it"
    ),
    "two queries of one name": slip('name = "ages"', 'name = "pay"', "called 'pay'. Give each its own name"),
    "a query without a name": slip('name = "ages"\n', "", "'queries.name' is missing. Add it, as in name ="),
    "no query": slip(QUERIES, "", "'queries' is missing. Add it, as in [[queries]]"),
    "queries in one bracket": slip(
        QUERIES, '[queries]\nask = ["count"]\n', "Write [[queries]] with two brackets"
    ),
    "no weight": slip("weight = 2", "weight = 0", "it must be above 0. Write it like weight = 2"),
    "edges that fall": slip("[0, 20, 40]", "[0, 40, 20]", "edges must rise, as in edges ="),
    "a quantile in per cent": slip(
        "levels = [0.5]", "levels = [50]", "strictly between 0 and 1, as in levels ="
    ),
    "too many groups": slip(
        'by = ["sex"]',
        'by = ["sex", "day", "hour"]',
        "'people' has 18,000,000 groups",
        "Group by fewer",
        also=(("[columns.age]", f"{BIG}[columns.age]"),),
    ),
    # privacy
    "epsilon 0": slip(
        EPSILON, "epsilon = 0", "'privacy.epsilon' is wrong: it must be above 0. Write it like"
    ),
    "epsilon below 0": slip(EPSILON, "epsilon = -1", "'privacy.epsilon' is wrong: it must be above 0. Write"),
    "epsilon in words": slip(EPSILON, 'epsilon = "low"', "it must be a number. Write it like epsilon = 1.0"),
    "no epsilon": slip(f"{EPSILON}\n", "", "'privacy.epsilon' is missing. Add it, as in epsilon = 1.0"),
    "a selection delta without a delta": slip(
        EPSILON, f"{EPSILON}\nselection_delta = 1e-7", "part of delta: declare a delta"
    ),
    "confidence in per cent": slip(
        EPSILON, f"{EPSILON}\nconfidence = 95", "must be below 1. Write it like conf"
    ),
    "private keys without a delta": slip(
        'type = "category"\nkeys = ["f", "m"]', 'type = "text"', "takes a small delta", "such as delta = 1e-6"
    ),
    "rows without a column": slip(
        'column = "id"\n', "", "max_rows and max_groups need a column", "add column ="
    ),
    "neighbours misspelt": slip(
        EPSILON, f'{EPSILON}\nneighbours = "both"', 'must be "add-remove" or "replace"'
    ),
    # the ledger
    "a ledger for another unit": slip(
        'unit = "person"', 'unit = "household"', "protects each 'person'", "Name them alike", shown=True
    ),
    "a ledger for other neighbours": slip(
        EPSILON, f'{EPSILON}\nneighbours = "replace"', "Declare neighbours =", shown=True
    ),
    "a pure ledger and a delta": slip(
        EPSILON, f'{EPSILON}\ndelta = 1e-6\nnoise = "gaussian"', 'noise = "laplace"', shown=True
    ),
    "too little left": slip(
        EPSILON, "epsilon = 50", "has 3 left. Nothing was spent. Ask for less", shown=True
    ),
    "a ledger without a selection delta": slip(
        'ledger = "people.ledger"\nepsilon = 0.5',
        'ledger = "none.ledger"\nepsilon = 0.5\ndelta = 1e-6',
        "this ledger keeps none",
        "make a ledger with a selection delta",
        also=(('type = "category"\nkeys = ["f", "m"]', 'type = "text"'),),
        shown=True,
    ),
    "a ledger that is none": slip(
        '"people.ledger"', '"people.csv"', "is not a ledger", "Check the path", shown=True
    ),
    # public files
    "a join without its file": slip(
        '"places.csv"', '"place.csv"', "The join 'places' cannot", "Check the path"
    ),
    "a join with repeated keys": slip(
        '"places.csv"', '"twice.csv"', "Rows 1 and 2", "Keep one row for each key"
    ),
    "a join on what the public table has not": slip(
        'on = "town"',
        'on = { town = "city" }',
        "The join 'places' cannot be made",
        "none is called 'city'",
        SPELT,
    ),
    "a join on what the table has not": slip(
        'on = "town"', 'on = { city = "town" }', "none is called 'city'", SPELT
    ),
    "a join that brings another column": slip(
        'columns = ["region"]\n\n[hier',
        'columns = ["area"]\n\n[hier',
        "'area' that is not declared",
        "name it alike",
    ),
    "a hierarchy with a town in two lands": slip('"towns.csv"', '"both.csv"', "rows 1 and 2", "Keep one row"),
    "a hierarchy without its file": slip(
        '"towns.csv"', '"town.csv"', "The hierarchy 'place' cannot", "Check the"
    ),
    "a hierarchy of one level": slip(
        '["land", "town"]', '["town"]', "it must hold at least 2. Write it like levels"
    ),
    "an unknown hierarchy": slip(
        '= "place" }', '= "plaice" }', "'plaice', which is not declared. Declare it under"
    ),
    # the file itself
    "an unknown block": slip("[privacy]", "[privcy]", "no block 'privcy'. Did you mean 'privacy'?"),
    "an unknown field": slip(
        "max_rows = 1",
        "max_row = 1",
        "'privacy.max_row' is unknown. Did you mean 'max_rows'?",
        "leave it out",
    ),
    "a bracket left open": slip(
        "[columns.age]", "[columns.age", "not valid TOML", "(at line 13", "Mend that line"
    ),
    "a text without quotes": slip(
        '"people.csv"', "people.csv", "not valid TOML", "Mend that line: texts stand in"
    ),
    "a comma for the point": slip(EPSILON, "epsilon = 0,5", "not valid TOML", "numbers have a decimal point"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("mistakes")
    for name, text in FILES.items():
        (made / name).write_text(text)
    (made / "empty").mkdir()
    pa.parquet.write_table(
        pa.table(
            {"id": [1], "age": [31], "sex": ["f"], "pay": [[1234.5]], "well": [True], "town": ["Hyrule"]}
        ),
        made / "people.parquet",
    )
    assert run("ledger", "create", made / "people.ledger", "--epsilon", 3)[0] == 0
    assert run("ledger", "create", made / "none.ledger", "--epsilon", 3, "--delta", "1e-6")[0] == 0
    return made


def written(folder: Path, name: str, text: str) -> Path:
    place = folder / f"{name.replace(' ', '-')}.toml"
    place.write_text(text)
    return place


def test_without_a_mistake_nothing_is_refused(folder: Path) -> None:
    assert run("plan", written(folder, "good", GOOD))[::2] == (0, "")


@pytest.mark.parametrize("name", SLIPS)
def test_it_is_refused_in_one_sentence_with_the_remedy(folder: Path, name: str) -> None:
    made = SLIPS[name]
    spec = written(folder, name, made.text)
    code, out, err = run("plan", spec)
    assert code == 2
    assert err.count("\n") == 1
    for words in made.words:
        assert words in err
    assert bool(out) == made.shown
    printed = (out + err).replace(str(folder), "")  # whose name has a number of its own
    for secret in SECRETS:
        assert secret not in printed
    assert "mistake of its own" not in err
    with Ledger.open(folder / "people.ledger") as ledger:
        assert ledger.status().blocks == 0
    if list(SLIPS).index(name) % 3 == 0:  # of all that would refuse the same
        assert run("release", spec, "-o", folder / f"{spec.stem}-out") == (2, "", err)
    assert not (folder / f"{spec.stem}-out").exists()


def test_there_are_at_least_forty() -> None:
    assert len(SLIPS) >= 40


def test_what_may_come_later_is_told_and_a_release_needs_it(folder: Path) -> None:
    for name, old, new, words in (
        ("no table yet", '"people.csv"', '"later.csv"', "A plan does without it, a release needs it."),
        ("no ledger yet", '"people.ledger"', '"later.ledger"', "make it with: sourdine ledger create"),
        ("no ledger named", 'ledger = "people.ledger"\n', "", "names no ledger"),
    ):
        spec = written(folder, name, GOOD.replace(old, new))
        code, out, err = run("plan", spec)
        assert (code, err) == (0, "")
        assert words in " ".join(out.split())
        code, out, err = run("release", spec, "-o", folder / "later-out")
        assert (code, out, err.count("\n")) == (2, "", 1)
