"""Changes of a specification that keep everything else of it."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.text import parse_toml
from sourdine.studio.draft import ChangedElsewhere, DraftFile, Edit, place_of, pointer_of
from sourdine.tables.draft import draft

NAMES = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=8)
VALUES = st.one_of(st.integers(-(2**60), 2**60), st.booleans(), NAMES, st.lists(NAMES, max_size=3))
BLOCKS = st.dictionaries(st.sampled_from(["type", "lower", "keys", "other"]), VALUES, min_size=1)


def text_of(tmp_path: Path) -> DraftFile:
    table = tmp_path / "people.csv"
    table.write_text("age,sex,town / home\n")
    return DraftFile(tmp_path / "people.toml", draft(table, tmp_path / "people.toml"))


@given(st.lists(st.tuples(NAMES, st.none() | BLOCKS), max_size=4), st.lists(BLOCKS, max_size=3))
def test_what_is_written_is_what_was_meant(
    columns: list[tuple[str, dict[str, Any] | None]], queries: list[dict[str, Any]]
) -> None:
    before = DraftFile(Path("a.toml"), '# keep\n[table]\nsource = "a.csv"  # this\n\n[other]\nx = 1\n')
    edits = [Edit(("columns", name), block) for name, block in columns]
    edits += [Edit(("queries", place), {"name": "a", **block}) for place, block in enumerate(queries)]
    after = before.with_edits(edits)
    declared = {name: block for name, block in dict(columns).items() if block is not None}
    assert after.blocks.get("columns", {}) == declared
    assert [dict(each) for each in after.blocks.get("queries", [])] == [
        {"name": "a", **each} for each in queries
    ]
    assert after.blocks["other"] == {"x": 1}
    assert "# keep" in after.text
    assert "# this" in after.text


def test_comments_and_other_fields_of_a_draft_stay(tmp_path: Path) -> None:
    before = text_of(tmp_path)
    after = before.with_edits(
        [
            Edit(("columns", "age"), {"type": "integer", "lower": 0, "upper": 120}),
            Edit(("privacy", "column"), "id"),
            Edit(("queries", 0, "by"), ["sex"]),
        ]
    )
    assert after.text.count("#") > 80
    lines = after.text.splitlines()
    assert lines.index('column = "id"') < lines.index("[columns.age]")
    assert after.blocks["queries"][0] == {"name": "records", "ask": ["count"], "by": ["sex"]}
    assert parse_toml(after.text, after.path) == after.blocks


def test_a_file_that_was_changed_is_not_written_over(tmp_path: Path) -> None:
    before = text_of(tmp_path)
    before.path.write_text(before.text)
    after = before.with_edits([Edit(("privacy", "unit"), "visit")])
    before.path.write_text(before.text + "# somebody else\n")
    with pytest.raises(ChangedElsewhere):
        after.write(before)
    assert before.path.read_text().endswith("# somebody else\n")


@given(st.lists(NAMES, min_size=1, max_size=3))
def test_a_pointer_names_its_place(parts: list[str]) -> None:
    assert place_of(pointer_of("columns", *parts)) == ("columns", *parts)


@pytest.mark.parametrize("heading", ["", "[columns]\n"])
def test_every_block_can_be_taken_away(tmp_path: Path, heading: str) -> None:
    place = tmp_path / "people.toml"
    place.write_text(
        f'[table]\nsource = "people.csv"\n{heading}[columns.a]\ntype = "flag"\n[columns.b]\ntype = "flag"\n'
        '[[queries]]\nname = "q"\nask = ["count"]\n'
    )
    file = DraftFile.read(place)
    bare = file.with_edits([Edit(("columns", "a"), None), Edit(("columns", "b"), None)])
    assert "columns" not in bare.blocks
    assert "queries" not in bare.with_edits([Edit(("queries", 0), None)]).blocks
    again = bare.with_edits([Edit(("columns", "c"), {"type": "flag"})])
    assert again.blocks["columns"] == {"c": {"type": "flag"}}
