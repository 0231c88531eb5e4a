"""The glossary is in order, and the names in it are there."""

import re
from importlib import import_module

import pytest

import sourdine
from tests.documents import ROOT

ROWS = [
    [cell.strip() for cell in line.strip("| \n").split(" | ")]
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith(("| term", "| ---"))
]


def test_it_is_in_order_and_whole() -> None:
    terms = [row[0].lower() for row in ROWS]
    assert len(terms) >= 30
    assert terms == sorted(terms)
    assert all(len(row) == 3 and all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_what_it_points_to_is_there(row: list[str]) -> None:
    names = [name for name in re.findall(r"`([\w.]+)`", row[2]) if not name.startswith("max_")]
    assert names
    for name in names:
        found: object = sourdine
        path = "sourdine"
        for part in name.split("."):
            path = f"{path}.{part}"
            try:
                found = getattr(found, part)
            except AttributeError:
                found = import_module(path)
