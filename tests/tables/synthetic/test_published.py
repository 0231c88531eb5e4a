from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter
from sourdine.tables import Query, TableRelease
from sourdine.tables.synthetic import from_release
from sourdine.tables.synthetic.model import prior_tables
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


ORDERS: dict[str, list[dict[str, object]]] = {
    "rising": [{"of": "count"}],
    "falling": [{"of": "count", "descending": True}],
    "by a key": [{"of": "sex", "descending": True}, {"of": "count"}],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("by", [["sex"], ["town", "sex"], ["sex", "town"], ["age"], ["works", "sex"]])
def test_rows_in_another_order_keep_their_keys(order: str, by: list[str], tmp_path: Path) -> None:
    """A count asked with ORDER BY had its values given to other keys: 900 women became 900 men."""
    query: dict[str, object] = {"name": "n", "ask": ["count"], "by": by}
    shown = {"order": [each for each in ORDERS[order] if each["of"] in ("count", *by)]}
    plain, ordered = (published(tmp_path / name, each) for name, each in named(tmp_path, query, shown))
    assert plain["n"].keys != ordered["n"].keys or (order, by) == ("rising", ["sex"])
    one, other = (from_release(each).parts[0].tables[0] for each in (plain, ordered))
    assert np.array_equal(one.values, other.values)
    assert np.array_equal(one.variances, other.variances)
    plan = table(5000).synthetic_plan(epsilon=1, delta=1e-6, columns=["sex", "town", "works", "age"])
    priors = [prior_tables(plan, each) for each in (plain, ordered)]
    assert [len(each) for each in priors] == [by != ["age"]] * 2  # whose cells are bins there
    for before, after in zip(*priors, strict=True):
        assert np.array_equal(before.values, after.values)


def named(folder: Path, query: dict[str, object], shown: object) -> list[tuple[str, dict[str, object]]]:
    pairs = [("plain", query), ("ordered", {**query, "show": shown})]
    for name, _ in pairs:
        (folder / name).mkdir()
    return pairs


@pytest.mark.parametrize("rows", [{"having": [{"of": "count", "sign": ">=", "value": 0}]}, {"limit": 1}])
def test_rows_that_noise_chose_are_not_taken(rows: Mapping[str, object], tmp_path: Path) -> None:
    """Even where all are shown: whether they are was decided by their noise."""
    release = published(tmp_path, {"name": "n", "ask": ["count"], "by": ["sex"], "show": rows})
    with pytest.raises(InvalidParameter, match="with all their rows"):
        from_release(release)
    plan = table(5000).synthetic_plan(epsilon=1, delta=1e-6, columns=["sex", "town"])
    assert prior_tables(plan, release) == ()
