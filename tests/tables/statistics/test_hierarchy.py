"""Hierarchies as specifications have them; their answers are tested with all statistics."""

from pathlib import Path

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.tables.statistics.hierarchy import read_hierarchies

ROWS = (("north", "a"), ("north", "b"), ("south", "c"))


def test_rows_and_files_give_the_same(tmp_path: Path) -> None:
    lines = ["town,land,people", "a,north,1", "b,north,2", "c,south,3", "a,north,9", ",south,4"]
    (tmp_path / "places.csv").write_text("\n".join(lines), encoding="utf-8")
    blocks = {
        "listed": {"levels": ["land", "town"], "rows": [list(row) for row in ROWS]},
        "filed": {"levels": ["land", "town"], "file": "places.csv"},
    }
    found = read_hierarchies(blocks, tmp_path)
    assert found["listed"] == found["filed"]
    assert found["filed"].levels == ("land", "town")
    assert found["filed"].rows == ROWS


@pytest.mark.parametrize(
    "block",
    [
        {"levels": ["land", "town"]},
        {"levels": ["land", "town"], "file": "places.csv", "rows": [["north", "a"]]},
        {"levels": "land", "rows": [["north", "a"]]},
        {"rows": [["north", "a"]]},
    ],
)
def test_a_hierarchy_has_levels_and_either_a_file_or_rows(block: dict[str, object], tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"hierarchies\.place"):
        read_hierarchies({"place": block}, tmp_path)
