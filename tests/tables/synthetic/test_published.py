from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter
from sourdine.tables.query import Query
from sourdine.tables.release import TableRelease
from sourdine.tables.synthetic import from_release
from sourdine.testing import SeededBits
from tests.tables.synthetic.case import table


def published(folder: Path, *queries: Mapping[str, object]) -> TableRelease:
    people = table(5000)
    with Ledger.create(folder / "l", epsilon=30, unit="person") as ledger:
        plan = people.plan(*map(Query.read, queries), epsilon=20)
        return people.release(plan, ledger, bits=SeededBits(1))


def test_rows_come_from_published_counts_alone(tmp_path: Path) -> None:
    release = published(
        tmp_path,
        {"name": "towns", "ask": ["count"], "by": ["town", "sex"]},
        {"name": "works", "ask": ["count"], "by": ["works"]},
        {"name": "women", "ask": ["count"], "by": ["works"], "where": {"sex": ["f"]}},
    )
    model = from_release(release, mark="kind")
    assert model.edges(model.parts[0]) == [("town", "sex")]
    frame = model.draw(bits=SeededBits(2)).to_polars()
    assert frame.columns == ["town", "sex", "works", "kind"]
    assert len(frame) == pytest.approx(5000, abs=20)
    women = frame.filter(pl.col("sex") == "f")
    assert len(women.filter(pl.col("town") == "Lille")) / len(women) == pytest.approx(0.8, abs=0.03)
    assert frame["works"].mean() == pytest.approx(0.44, abs=0.03)
    assert women["works"].mean() == pytest.approx(0.44, abs=0.05)


def test_a_ring_of_pairs_becomes_a_tree(tmp_path: Path) -> None:
    pairs = [("town", "sex"), ("sex", "works"), ("works", "town")]
    release = published(tmp_path, *({"name": f"{a} {b}", "ask": ["count"], "by": [a, b]} for a, b in pairs))
    model = from_release(release)
    edges = model.edges(model.parts[0])
    assert len(edges) == 2
    assert ("town", "sex") in edges


def test_without_counts_there_is_nothing_to_draw(tmp_path: Path) -> None:
    release = published(tmp_path, {"name": "ages", "ask": [{"mean": "age"}], "by": ["sex"]})
    with pytest.raises(InvalidParameter, match="no counts of all records"):
        from_release(release)
