import json
import tomllib
from pathlib import Path

import duckdb
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.tables.specification import check_filled
from tests.cli.table_case import run

SECRET = "SECRET"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    place = tmp_path / "people.csv"
    place.write_text(f"age,sex,home town\n31,f,{SECRET}\n48,m,{SECRET}\n")
    return place


def fill(text: str) -> str:
    """What somebody would write who knows the table."""
    head = text[: text.index("[columns.age]")]
    rest = text[text.index("# What to ask") :]
    return (
        head
        + '[columns.age]\ntype = "integer"\nlower = 0\nupper = 120\n'
        + '[columns.sex]\ntype = "category"\nkeys = ["f", "m"]\n'
        + '[columns."home town"]\ntype = "category"\nkeys = ["here", "there"]\n'
        + rest.replace('ask = ["count"]', 'ask = ["count", { mean = "age" }]\nby = ["sex"]')
    )


def test_a_draft_that_is_filled_in_can_be_released(table: Path) -> None:
    spec = table.parent / "mine.toml"
    code, out, err = run("init", table, "-o", spec)
    assert (code, err) == (0, "")
    assert "with 3 columns to declare" in out
    drafted = tomllib.loads(spec.read_text())
    assert list(drafted["columns"]) == ["age", "sex", "home town"]
    spec.write_text(fill(spec.read_text()))
    code, _, err = run("ledger", "create", table.parent / "mine.ledger", "--epsilon", "1", "--unit", "person")
    assert code == 0, err
    code, out, err = run("release", spec, "-o", table.parent / "out", "--no-report")
    assert code == 0, err
    assert "mean of age" in out


def test_only_the_header_is_looked_at(table: Path) -> None:
    spec = table.parent / "people.toml"
    run("init", table, "-o", spec)
    text = spec.read_text()
    assert SECRET not in text
    assert "31" not in text
    table.write_text("age,sex,home town\n")
    spec.unlink()
    run("init", table, "-o", spec)
    assert spec.read_text() == text


def test_a_file_that_is_there_is_never_written_over(table: Path) -> None:
    spec = table.parent / "mine.toml"
    spec.write_text("mine")
    code, out, err = run("init", table, "-o", spec)
    assert (code, out) == (2, "")
    assert "exists already" in err
    assert spec.read_text() == "mine"


def test_without_a_name_it_is_named_after_the_table(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table.parent)
    assert run("init", "people.csv")[0] == 0
    assert tomllib.loads(Path("people.toml").read_text())["privacy"]["ledger"] == "people.ledger"


def test_every_blank_is_named_until_none_is_left(table: Path) -> None:
    spec = table.parent / "mine.toml"
    run("init", table, "-o", spec)
    named = []
    for verb in ("plan", "release"):
        code, out, err = run(verb, spec)
        assert (code, out) == (2, "")
        assert "'columns.age.type'" in err
    text = spec.read_text()
    while "FILL IN" in text.split("[columns.age]")[1].split("[columns.sex]")[0]:
        _, _, err = run("plan", spec)
        field = err.split("'")[1]
        named.append(field)
        lines = text.splitlines()
        start = lines.index("[columns.age]")
        place = next(i for i, line in enumerate(lines) if i > start and line.startswith(field.split(".")[-1]))
        del lines[place]
        text = "\n".join(lines)
        spec.write_text(text)
    fields = ("type", "lower", "upper", "keys", "first", "last")
    assert named == [f"columns.age.{field}" for field in fields]


def test_parquet_gives_types(tmp_path: Path) -> None:
    place = tmp_path / "people.parquet"
    duckdb.connect().execute(
        f"COPY (SELECT 7::USMALLINT AS n, 1.5 AS x, '{SECRET}' AS t, TRUE AS b, DATE '1999-01-01' AS d, "
        f"TIMESTAMP '1999-01-01' AS s, TIME '12:00' AS u) "
        f"TO '{place}' (FORMAT parquet)"
    )
    spec = tmp_path / "people.toml"
    code, out, _ = run("init", place, "-o", spec, "--json")
    assert code == 0
    kinds = {"n": "integer", "x": "real", "t": "text", "b": "flag", "d": "date", "s": "datetime", "u": None}
    assert json.loads(out)["columns"] == kinds
    text = spec.read_text()
    assert SECRET not in text
    found = tomllib.loads(text)["columns"]
    assert {name: block["type"] for name, block in found.items()} == {k: v for k, v in kinds.items() if v}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", "", "has no header"),
        ("a.csv", "Zelda,y,Zelda\n", "field 3 repeats field 1"),
        ("a.csv", "Zelda,,z\n", "of its 3 fields, field 2 is empty"),
        ("a.csv", "Zelda,1984,f\n", "field 2 reads like a number"),
        ("a.csv", "Zelda;1984-02-03;f\n", "field 2 reads like a number, a date"),
        ("a.tsv", "Zelda\tTrue\n", "field 2 reads like a number, a date or a truth value. If it is one"),
        ("a.csv", "-1.5e3\n", "of its 1 field, field 1 reads like a number"),
        ("a.csv", b"\xff\xfe\x00", "cannot be read as text"),
        ("a.parquet", "x,y\n", "cannot be read as parquet"),
        ("a.json", "[]", "no header"),
    ],
)
def test_what_has_no_header_is_refused(tmp_path: Path, name: str, content: str | bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    code, out, err = run("init", tmp_path / name, "-o", tmp_path / "spec.toml")
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1
    assert "Zelda" not in err
    assert "1984" not in err
    assert not (tmp_path / "spec.toml").exists()


def test_names_are_given_for_a_file_without_a_header(tmp_path: Path) -> None:
    table, spec = tmp_path / "people.csv", tmp_path / "people.toml"
    table.write_text(f"{SECRET};31\nb;32\n")
    code, out, _ = run("init", table, "-o", spec, "--names", "who, age", "--json")
    assert code == 0
    assert json.loads(out)["columns"] == {"who": "", "age": ""}
    text = spec.read_text()
    assert SECRET not in text
    held = tomllib.loads(text)
    assert held["table"]["header"] is False
    assert (held["table"]["names"], held["table"]["delimiter"]) == (["who", "age"], ";")
    filled = (
        text[: text.index("\n[columns.who]")] + "\n[columns.age]\ntype = 'integer'\nlower = 0\nupper = 9\n"
    )
    spec.write_text(filled + text[text.index("\n# What to ask.") :])
    assert run("plan", spec)[0] == 0
    for names, words in (("who", "has 2 fields, and --names gives 1 name."), ("a,a", "a name twice")):
        code, out, err = run("init", table, "-o", tmp_path / "b.toml", "--names", names)
        assert (code, out) == (2, "")
        assert words in err


def test_names_that_look_like_values_are_names_if_somebody_says_so(tmp_path: Path) -> None:
    table, spec = tmp_path / "years.csv", tmp_path / "years.toml"
    table.write_text("town,2023,2024\n")
    assert "say --header" in run("init", table, "-o", spec)[2]
    assert run("init", table, "-o", spec, "--header")[0] == 0
    assert list(tomllib.loads(spec.read_text())["columns"]) == ["town", "2023", "2024"]
    table = tmp_path / "a.parquet"
    duckdb.connect().execute(f"COPY (SELECT 7 AS n) TO '{table}' (FORMAT parquet)")
    assert "Leave out --names" in run("init", table, "--names", "n", "-o", tmp_path / "n.toml")[2]


def test_no_table_and_no_folder_are_refused(tmp_path: Path, table: Path) -> None:
    assert "does not exist" in run("init", tmp_path / "none.csv")[2]
    assert "does not exist" in run("init", table, "-o", tmp_path / "none" / "a.toml")[2]


@pytest.mark.parametrize(
    ("encoding", "line"), [("utf-8", "# encoding ="), ("cp1252", "encoding ="), ("utf-16", "encoding =")]
)
def test_the_encoding_of_the_first_line_is_written_down(tmp_path: Path, encoding: str, line: str) -> None:
    table, spec = tmp_path / "people.csv", tmp_path / "people.toml"
    table.write_bytes(f"âge,sex\n31,{SECRET}\n".encode(encoding))
    assert run("init", table, "-o", spec)[0] == 0
    assert f'\n{line} "{encoding}"\n' in spec.read_text()
    assert list(tomllib.loads(spec.read_text())["columns"]) == ["âge", "sex"]


def test_letters_below_the_first_line_are_not_looked_at(tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    table.write_bytes("age,sex\n31,é\n".encode("latin-1"))
    assert run("init", table, "-o", tmp_path / "people.toml")[0] == 0
    assert '# encoding = "utf-8"' in (tmp_path / "people.toml").read_text()


def test_of_many_blanks_three_are_named_and_the_rest_counted(table: Path) -> None:
    spec = table.parent / "mine.toml"
    run("init", table, "-o", spec)
    blanks = tomllib.loads(spec.read_text())["columns"]
    count = sum(len(block) for block in blanks.values())
    err = run("plan", spec)[2]
    first = "The fields 'columns.age.type', 'columns.age.lower', 'columns.age.upper' and"
    assert err.startswith(f"{first} {count - 3} more of {spec} still say FILL IN.")
    assert err.count("columns.") == 3


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("a", "The field 'a' of x.toml still says FILL IN."),
        ("ab", "The fields 'a' and 'b' of x.toml still say FILL IN."),
        ("abc", "The fields 'a', 'b' and 'c' of x.toml still say FILL IN."),
        ("abcd", "The fields 'a', 'b', 'c' and 1 more of x.toml still say FILL IN."),
    ],
)
def test_few_blanks_are_all_named(names: str, told: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        check_filled(dict.fromkeys(names, "FILL IN"), Path("x.toml"))
    assert str(caught.value).startswith(told)
