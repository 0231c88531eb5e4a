import tomllib
from pathlib import Path

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.tables import Specification
from sourdine.tables.draft import draft, read_types
from sourdine.tables.specification import BLANK, PrivacyBlock, TableBlock, check_filled
from sourdine.tables.statistics import BY_KIND


def headed(tmp_path: Path, header: str, name: str = "t.csv") -> Path:
    place = tmp_path / name
    place.write_text(f"{header}\n1,2\n", encoding="utf-8")
    return place


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("a,b", ["a", "b"]),
        ("a;b;c, with comma", ["a", "b", "c, with comma"]),
        ('"a, quoted",b', ["a, quoted", "b"]),
        ("a|b|c", ["a", "b", "c"]),
        ("\ufeffa,b", ["a", "b"]),
        ("alone", ["alone"]),
        ("größe,naïve", ["größe", "naïve"]),
    ],
)
def test_headers_are_read(tmp_path: Path, header: str, names: list[str]) -> None:
    assert list(read_types(headed(tmp_path, header))) == names


def test_every_field_is_explained(tmp_path: Path) -> None:
    text = draft(headed(tmp_path, "a,b"), tmp_path / "t.toml")
    fields = {*TableBlock.model_fields, *PrivacyBlock.model_fields}
    fields |= {"type", "lower", "upper", "granularity", "missing", "keys"}
    fields |= {
        "name",
        "ask",
        "by",
        "where",
        "weight",
        "levels",
        "edges",
        "at_least",
        "below",
        "of",
        "other",
        "k",
    }
    for field in fields:
        assert f"{field} = " in text, field
    for kind in BY_KIND:
        assert f'"{kind}"' in text or f"{kind} = " in text, (
            f"tell how to ask for {kind} in _QUERIES of tables/draft.py"
        )


@pytest.mark.parametrize(
    "name", ['a "quoted" name', "with.dot", "tab\tand \x07 bell", "größe", "back\\slash", "[x]"]
)
def test_any_name_survives(tmp_path: Path, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    text = draft(headed(tmp_path, f"{quoted},b"), tmp_path / "t.toml")
    assert list(tomllib.loads(text)["columns"]) == [name, "b"]


def test_the_table_is_found_from_the_folder_of_the_specification(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "specs").mkdir()
    table = headed(tmp_path / "data", "a,b")
    text = draft(table, tmp_path / "specs" / "t.toml")
    assert tomllib.loads(text)["table"]["source"] == "../data/t.csv"


def test_a_file_without_line_breaks_is_not_read_to_its_end(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    with place.open("wb") as file:
        file.truncate(1 << 33)
    with pytest.raises(InvalidParameter, match="has no header"):
        read_types(place)


def test_a_spreadsheet_is_to_be_saved_as_csv(tmp_path: Path) -> None:
    (tmp_path / "t.xlsx").write_bytes(b"PK")
    with pytest.raises(InvalidParameter, match="Save its sheet as CSV"):
        read_types(tmp_path / "t.xlsx")


def test_a_header_with_semicolons_reminds_of_decimal_commas(tmp_path: Path) -> None:
    assert "decimal commas" in draft(headed(tmp_path, "a;b"), tmp_path / "t.toml")
    assert "decimal commas" not in draft(headed(tmp_path, "a,b"), tmp_path / "t.toml")


def test_blanks_are_named_by_their_place() -> None:
    check_filled({"a": {"b": 1, "c": ["x"]}}, Path("s.toml"))
    with pytest.raises(InvalidParameter, match=r"'columns.age.keys' of s.toml"):
        check_filled({"columns": {"age": {"keys": ["f", BLANK]}}}, Path("s.toml"))
    with pytest.raises(InvalidParameter, match=r"'queries.name' of s.toml"):
        check_filled({"queries": [{"name": BLANK}]}, Path("s.toml"))


def test_a_draft_with_its_columns_deleted_loads(tmp_path: Path) -> None:
    text = draft(headed(tmp_path, "a,b"), tmp_path / "t.toml")
    start, end = text.index("\n[columns.a]"), text.index("\n# What to ask.")
    kept = text[:start] + '\n[columns.a]\ntype = "flag"\n' + text[end:]
    (tmp_path / "t.toml").write_text(kept)
    plan = Specification.load(tmp_path / "t.toml").plan()
    assert [query.name for query in plan.queries] == ["records"]
