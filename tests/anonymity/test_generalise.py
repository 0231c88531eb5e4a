import csv
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.anonymity import (
    Demand,
    Diversity,
    GeneralisationMethod,
    Generalised,
    Ground,
    Intervals,
    Tree,
    generalise,
    generalise_records,
    measure_records,
)
from sourdine.anonymity import full_domain as searching
from sourdine.core.errors import InvalidParameter
from tests.anonymity import brute
from tests.errors import refusal_of

TREES = {
    "a": {str(i): (f"a{i // 2}", f"A{i // 4}", "*") for i in range(6)},
    "b": {str(i): (f"b{i // 3}", "*") for i in range(6)},
    "c": {str(i): ("*",) for i in range(3)},
}
HIERARCHIES = {name: Tree(tree) for name, tree in TREES.items()}  # type: ignore[arg-type]
QUASI = list(TREES)


def people(seed: int, n: int = 60) -> list[dict[str, object]]:
    rng = np.random.default_rng(seed)  # made up
    a, b = rng.integers(0, 6, n), rng.integers(0, 6, n)
    s = np.where(rng.random(n) < 0.5, a % 3, rng.integers(0, 4, n))
    return [
        {"a": str(x), "b": str(y), "c": str(z), "s": f"s{w}"}
        for x, y, z, w in zip(a, b, rng.integers(0, 3, n), s, strict=True)
    ]


def as_table(rows: brute.Rows) -> pa.Table:
    return pa.table({name: [row[name] for row in rows] for name in rows[0]})


def made(rows: brute.Rows, demand: Demand, **settings: object) -> Generalised:
    records = brute.coded(rows, QUASI, ["s"])
    return generalise_records(records, demand, hierarchies=HIERARCHIES, **settings)  # type: ignore[arg-type]


CASES = [
    ({"k": 4}, {"k": 4}),
    ({"k": 3, "l": 2}, {"k": 3, "least": 2}),
    ({"k": 2, "t": Fraction(1, 3)}, {"k": 2, "t": 1 / 3}),
    ({"k": 3, "l": 3, "t": Fraction(2, 5)}, {"k": 3, "least": 3, "t": 0.4}),
    (
        {"k": 2, "l": Fraction(5, 2), "diversity": Diversity.ENTROPY},
        {"k": 2, "least": 3, "entropy_l": 2.5},
    ),
    (
        {"k": 2, "l": 2, "diversity": Diversity.RECURSIVE, "c": Fraction(3, 2)},
        {"k": 2, "least": 2, "c": 1.5},
    ),
    ({"k": 2, "alpha": Fraction(1, 2)}, {"k": 2, "most": 0.5}),
]


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("limit", [Fraction(0), Fraction(1, 10), Fraction(1, 3)])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_search_finds_what_trying_every_level_finds(case: int, limit: Fraction, seed: int) -> None:
    rows = people(seed)
    asked, same = CASES[case]
    found = made(rows, Demand(**asked), suppress=limit)  # type: ignore[arg-type]
    allowed = int(limit * len(rows))
    best, good = brute.best_levels(rows, TREES, allowed=allowed, sensitive="s", **same)  # type: ignore[arg-type]
    assert found.proven
    assert good >= 1
    assert found.loss.ncp == pytest.approx(best)
    assert found.suppressed <= allowed
    check_satisfied(found)


@pytest.mark.parametrize("limit", [Fraction(0), Fraction(1, 5), Fraction(1, 3)])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_the_search_finds_it_where_values_are_not_known(case: int, limit: Fraction) -> None:
    """A class of which nothing is known is perfect, and merged with another it may not be."""
    asked, same = CASES[case]
    for seed in range(2):
        rows: list[dict[str, object]] = [
            {**row, "s": None if (i * 7 + seed) % 10 < 6 else row["s"]}
            for i, row in enumerate(people(seed, 40))
        ]
        found = made(rows, Demand(**asked), suppress=limit)  # type: ignore[arg-type]
        allowed = int(limit * len(rows))
        best, _ = brute.best_levels(rows, TREES, allowed=allowed, sensitive="s", **same)  # type: ignore[arg-type]
        assert found.proven
        assert found.loss.ncp == pytest.approx(best)
        assert found.suppressed <= allowed


def test_a_class_without_a_known_value_is_not_struck_off_with_the_one_above_it() -> None:
    """Below, three records are left out; above, where nine share a label, all of them would be."""
    tree = {"p": ("x", "*"), "q": ("x", "*"), "r": ("*", "*")}
    rows: brute.Rows = [
        *([{"a": "p", "s": None}] * 6),
        *([{"a": "q", "s": "u"}] * 3),
        *([{"a": "r", "s": v} for v in "uv"] * 3),
    ]
    found = generalise_records(
        brute.coded(rows, ["a"], ["s"]),
        Demand(k=2, l=2),
        hierarchies={"a": Tree(tree)},
        suppress=Fraction(3, 15),
    )
    assert found.proven
    assert (found.levels, found.suppressed) == ({"a": 0}, 3)


@pytest.mark.parametrize("suppress", [0.3, Fraction(3, 10), Decimal("0.3"), np.float64(0.3), np.float32(0.3)])
def test_a_share_means_what_it_says(suppress: float) -> None:
    """Three of ten records may be left out, though the float is a little less than 3/10."""
    rows = [{"a": "p"}] * 7 + [{"a": v} for v in "qrs"]
    tree = dict.fromkeys("pqrs", ("*",))
    found = generalise_records(
        brute.coded(rows, ["a"]), Demand(k=2), hierarchies={"a": Tree(tree)}, suppress=suppress
    )
    assert found.suppressed == 3


def check_satisfied(found: Generalised) -> None:
    """What comes out is measured again from its rows, as anybody would who gets it."""
    demand = found.demand
    rows = [dict(zip(found.names, row, strict=True)) for row in found.rows()]
    after = measure_records(brute.coded(rows, QUASI, ["s"]))
    assert after == measure_records(found.records)
    assert after.records == found.size - found.suppressed
    assert after.k >= demand.k
    secret = after.sensitive[0]
    assert secret.closeness <= float(demand.t) + 1e-12
    assert secret.alpha <= float(demand.alpha) + 1e-12
    if demand.c is not None:
        assert all(
            brute.recursive(each, "s", int(demand.l)) < demand.c for each in brute.classes(rows, QUASI)
        )
    if demand.diversity is Diversity.ENTROPY:
        assert secret.entropy_diversity >= float(demand.l) - 1e-9
    else:
        assert secret.diversity >= demand.l
    squares = sum(size**2 * many for size, many in after.sizes)
    assert found.loss.discernibility == squares + found.suppressed * found.size
    assert np.mean(list(found.penalties.values())) == pytest.approx(found.loss.ncp)
    assert found.loss.average_class == pytest.approx(after.average_class)


@given(st.data())
@settings(max_examples=60)
def test_a_table_is_refused_exactly_where_no_levels_satisfy_the_demand(data: st.DataObject) -> None:
    """The whole table may fail as one class where what remains of it does not."""
    record = st.tuples(st.sampled_from("0145"), st.sampled_from("uuuvw"))
    rows: list[dict[str, object]] = [
        {"a": a, "b": "0", "c": "0", "s": s} for a, s in data.draw(st.lists(record, min_size=3, max_size=8))
    ]
    asked, same = data.draw(st.sampled_from(CASES))
    limit = data.draw(st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(2, 3)]))
    allowed = int(limit * len(rows))
    best, good = brute.best_levels(rows, TREES, allowed=allowed, sensitive="s", **same)  # type: ignore[arg-type]
    if good:
        found = made(rows, Demand(**asked), suppress=limit)  # type: ignore[arg-type]
        assert found.loss.ncp == pytest.approx(best)
        check_satisfied(found)
    else:
        with pytest.raises(InvalidParameter):
            made(rows, Demand(**asked), suppress=limit)  # type: ignore[arg-type]


def test_what_remains_may_satisfy_what_the_whole_table_does_not() -> None:
    rows: list[dict[str, object]] = [
        {"a": a, "b": "0", "c": "0", "s": s} for a, s in ("0u", "1v", "4u", "5u")
    ]
    with pytest.raises(InvalidParameter, match="not varied enough"):
        made(rows, Demand(k=2, alpha=Fraction(1, 2)))
    with pytest.raises(InvalidParameter, match="at most 1 of the 4 records left out, no levels satisfy"):
        made(rows, Demand(k=2, alpha=Fraction(1, 2)), suppress=Fraction(1, 4))
    found = made(rows, Demand(k=2, alpha=Fraction(1, 2)), suppress=Fraction(1, 2))
    assert (found.suppressed, found.levels) == (2, {"a": 1, "b": 0, "c": 0})


def test_leaving_out_can_undo_what_held_below() -> None:
    """With t and suppression a good node may have a bad one above it, so that t must not prune there."""
    tree = {"p": ("x", "*"), "q": ("x", "*"), "r": ("y", "*")}
    rows = (
        [{"a": "p", "s": v} for v in "uuvv"]
        + [{"a": "q", "s": "u"}] * 2
        + [{"a": "r", "s": v} for v in "uv"] * 6
    )
    below = brute.trial(rows, {"a": tree}, [0], 2, 3, "s", t=0.1)
    above = brute.trial(rows, {"a": tree}, [1], 2, 3, "s", t=0.1)
    assert below is not None
    assert above is None
    found = generalise(
        as_table(rows),
        Demand(k=2, t=Fraction(1, 10)),
        quasi=["a"],
        sensitive=["s"],
        hierarchies={"a": Tree(tree)},
        suppress=Fraction(3, len(rows)),
    )
    assert found.levels == {"a": 0}
    assert found.loss.ncp == pytest.approx(below)


def test_too_many_candidates_are_searched_without_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "MOST_CANDIDATES", 3)
    found = made(people(0), Demand(k=4), suppress=Fraction(1, 10))
    assert not found.proven
    check_satisfied(found)


def test_values_that_say_enough_are_left_as_they_are() -> None:
    rows = [{"a": "0", "b": "1", "c": "2", "s": "x"}] * 9
    found = made(rows, Demand(k=9))
    assert (found.levels, found.loss.ncp, found.suppressed) == ({"a": 0, "b": 0, "c": 0}, 0.0, 0)


@pytest.mark.parametrize("method", [GeneralisationMethod.MONDRIAN, GeneralisationMethod.RELAXED])
@pytest.mark.parametrize("case", range(len(CASES)))
@pytest.mark.parametrize("seed", range(3))
def test_halving_satisfies_the_demand(method: GeneralisationMethod, case: int, seed: int) -> None:
    found = made(people(seed, 150), Demand(**CASES[case][0]), method=method)  # type: ignore[arg-type]
    assert found.suppressed == 0
    check_satisfied(found)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), min_size=2, max_size=80), st.integers(1, 6))
@settings(max_examples=60)
def test_halving_covers_every_record_and_cuts_where_it_can(pairs: list[tuple[int, int]], k: int) -> None:
    """Strict halving of numbers: labels hold their values, and no class can be cut once more."""
    if k > len(pairs):
        return
    rows = [{"x": x, "y": y, "id": who} for who, (x, y) in enumerate(pairs)]
    records = brute.coded(rows, ["x", "y"], ["id"])
    found = generalise_records(records, Demand(k=k), method=GeneralisationMethod.MONDRIAN)
    seen = {}
    for x, y, who in found.rows():
        assert who is not None
        seen[int(who)] = (x, y)
        for label, value in zip((x, y), pairs[int(who)], strict=True):
            low, _, high = str(label).partition("-")
            assert int(low) <= value <= int(high or low)
    assert len(seen) == len(pairs)
    groups = Counter(seen.values())
    assert min(groups.values()) >= k
    for labels in groups:
        members = [pairs[who] for who, said in seen.items() if said == labels]
        for axis in (0, 1):
            values = sorted(pair[axis] for pair in members)
            cuts = [
                i for i in range(k, len(values) - k + 1) if 0 < i < len(values) and values[i - 1] != values[i]
            ]
            assert not cuts


def test_relaxed_halving_cuts_through_equal_numbers() -> None:
    table = pa.table({"x": [1, 2, 2, 2, 2, 3]})
    strict = generalise(table, Demand(k=3), quasi=["x"], method=GeneralisationMethod.MONDRIAN)
    relaxed = generalise(table, Demand(k=3), quasi=["x"], method=GeneralisationMethod.RELAXED)
    assert set(strict.rows()) == {("1-3",)}
    assert Counter(relaxed.rows()) == {("1-2",): 3, ("2-3",): 3}
    assert relaxed.loss.ncp == pytest.approx(0.5)


def test_halving_says_values_by_their_tree_or_by_a_list() -> None:
    table = pa.table({"job": ["nurse", "nurse", "surgeon", "surgeon", "baker", "baker", "cook", "cook"]})
    tree = Tree(
        {"nurse": ("care", "*"), "surgeon": ("care", "*"), "baker": ("food", "*"), "cook": ("food", "*")}
    )
    by_tree = generalise(
        table, Demand(k=4), quasi=["job"], hierarchies={"job": tree}, method=GeneralisationMethod.MONDRIAN
    )
    assert Counter(by_tree.rows()) == {("care",): 4, ("food",): 4}
    assert by_tree.loss.ncp == pytest.approx(1 / 3)
    listed = generalise(table, Demand(k=4), quasi=["job"], method=GeneralisationMethod.MONDRIAN)
    assert Counter(listed.rows()) == {("baker|cook",): 4, ("nurse|surgeon",): 4}


@pytest.mark.parametrize("method", list(GeneralisationMethod))
def test_the_order_of_rows_changes_nothing(method: GeneralisationMethod) -> None:
    rows = people(7, 120)
    mixed = [rows[place] for place in np.random.default_rng(8).permutation(len(rows))]
    demand = Demand(k=3, l=2)
    assert list(made(rows, demand, method=method).rows()) == list(made(mixed, demand, method=method).rows())


def test_distances_and_other_columns_are_respected(tmp_path: Path) -> None:
    table = pa.table(
        {"age": [21, 22, 31, 32, 41, 42], "pay": [1, 9, 2, 8, 3, 7], "name": list("abcdef"), "id": range(6)}
    )
    found = generalise(
        table,
        Demand(k=2, t=Fraction(1, 4)),
        quasi=["age"],
        sensitive=["pay"],
        others=["name"],
        hierarchies={"age": Intervals(0, 100, (10, 50))},
        distances={"pay": Ground.ORDERED},
    )
    assert found.levels == {"age": 1}  # with equal distances t would be 2/3 there
    place = tmp_path / "out.csv"
    found.write(place)
    with place.open() as file:
        lines = list(csv.reader(file))
    assert lines[0] == ["age", "pay", "name"]
    assert lines[1] == ["20-29", "1", "a"]
    assert len(lines) == 7


def test_progress_rises_to_the_end() -> None:
    for method in GeneralisationMethod:
        told: list[float] = []
        made(people(1), Demand(k=3), method=method, watch=told.append)
        assert told == sorted(told)
        assert all(0 <= share <= 1 for share in told)


def test_what_cannot_be_is_refused() -> None:
    rows = people(2)
    with pytest.raises(InvalidParameter, match="more than the 60 records"):
        made(rows, Demand(k=61))
    with pytest.raises(InvalidParameter, match="not varied enough"):
        made(rows, Demand(k=2, l=9))
    with pytest.raises(InvalidParameter, match="needs a sensitive column"):
        generalise(as_table(rows), Demand(k=2, l=2), quasi=["a"])
    with refusal_of("suppress", "generalise"):
        made(rows, Demand(k=2), suppress=2)
    with pytest.raises(InvalidParameter, match="misses"):
        generalise(as_table(rows), Demand(k=2), quasi=["a"], hierarchies={"a": Tree({"0": ("*",)})})
    for bad in ({"k": 0}, {"l": 0}, {"l": 2.5}, {"t": 2}, {"alpha": -1}, {"c": 1}, {"diversity": "distinct"}):
        with pytest.raises(InvalidParameter, match="of Demand must"):
            Demand(**bad)
    with refusal_of("c", "Demand"):
        Demand(diversity=Diversity.RECURSIVE, l=Fraction(2))
