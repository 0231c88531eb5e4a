"""What odd tables, names, files and connections could have told beyond what is paid for."""

from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from sourdine.accounting.ledger import ConcentratedBudget, Ledger, PureBudget, RenyiBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.frames import PrivacyUnit, Schema, Source, open_source, ranks
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.rank_counts import SeparateRanks
from sourdine.tables import Privacy, Query, ReleasePlan, Table
from sourdine.tables.measurement import ColumnMeasurement
from sourdine.tables.quantiles.tree import BinTree, TreeWalk, quantiles
from sourdine.tables.release import release
from sourdine.testing import SeededBits
from tests.tables.exact import exact_numbers

SMALL = {"type": "integer", "lower": 0, "upper": 10}
LETTERS = {"type": "category", "keys": ["a", "A"]}
BY_RECORD = PrivacyUnit()


def plan_of(
    columns: dict[str, Any],
    ask: list[Any],
    by: tuple[str, ...] = (),
    unit: PrivacyUnit = BY_RECORD,
    **more: Any,
) -> ReleasePlan:
    query = Query.read({"name": "q", "ask": ask, "by": list(by), **more})
    privacy = Privacy(epsilon=Fraction(1))
    return ReleasePlan(
        schema=Schema.read(columns), queries=(query,), privacy=privacy, unit=unit, quality=False
    )


def numbers_of(
    table: object,
    columns: dict[str, Any],
    ask: list[Any],
    by: tuple[str, ...] = (),
    text: TextFormat | dict[str, Any] = TextFormat(),  # noqa: B008
    **more: Any,
) -> list[list[int]]:
    plan = plan_of(columns, ask, by, **more)
    return exact_numbers(plan, open_source(table, plan.schema, text=text))


# Names


@pytest.mark.parametrize("name", ["sourdine place of age", "Sourdine Place Of AGE"])
def test_a_column_called_like_a_place_is_not_taken_for_it(name: str) -> None:
    table = pa.table({"age": [3], name: [10**12]})
    with pytest.raises(InvalidParameter, match="a name that is used inside"):
        open_source(table, Schema.read({"age": SMALL}))


@pytest.mark.parametrize("first", ["age", "Age"])
def test_of_two_columns_of_one_name_none_is_guessed(first: str) -> None:
    """The engine would take the first, and its type would be looked up of the last."""
    table = duckdb.connect().sql(f"SELECT 'text' AS \"{first}\", 5.0::DOUBLE AS age")
    with pytest.raises(InvalidParameter, match="two columns called 'age'"):
        open_source(table, Schema.read({"age": SMALL}))


ALIASES = ("unit", "key_0", "raw_0", "value_0", "value", "turn", "last", "sourdine_source")


@cache
def named(group: str, number: str, who: str, whole: bool) -> list[list[int]]:
    """The numbers of one table, whatever its columns are called."""
    columns = {group: {"type": "category", "keys": ["a", "b"]}, number: SMALL}
    table = pa.table({group: ["a", "b", "b", "b"], number: [1, 2, 300, 4], who: ["b", "b", "c", "c"]})
    ask = ["count", {"mean": number}, {"quantiles": number, "levels": [0.5]}]
    unit = PrivacyUnit(column=who, max_rows=2) if whole else BY_RECORD
    plan = plan_of(columns, ask, (group,), unit, where={group: ["b"], number: {"at_least": 2}})
    return exact_numbers(plan, open_source(table, plan.schema, [who]))


@pytest.mark.parametrize("name", ALIASES)
@pytest.mark.parametrize("whole", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_column_may_be_called_like_an_alias(name: str, whole: bool) -> None:
    plain = named("group", "number", "who", whole)
    assert plain[0] == [0, 3]
    assert named(name, "number", "who", whole) == plain
    assert named("group", name, "who", whole) == plain
    assert not whole or named("group", "number", name, whole) == plain


def test_a_table_shows_none_of_its_rows() -> None:
    """The engine writes a relation out by running it."""
    frame = pl.DataFrame({"x": [31337]})
    for held in (frame, frame.to_pandas(), frame.to_arrow(), duckdb.connect().sql("SELECT 31337 AS x")):
        table = Table(held, unit="record", columns={"x": SMALL})
        assert "31337" not in f"{table!r} {table.source!r}"


# Sums that do not fit


WIDE = {"type": "integer", "lower": 1 - (1 << 30), "upper": (1 << 30) - 1}
LOW, HIGH = 1 - (1 << 30), (1 << 30) - 1


@pytest.mark.parametrize(
    "edges",
    [
        [LOW, 0, HIGH],
        [LOW - 10, HIGH - 1, 2 * HIGH + 8 - LOW],
        [LOW - 10, 0, HIGH],
        [-(10**99), HIGH],
        [-(1 << 126) - (1 << 125), 0, (1 << 126) + (1 << 125)],
        [-3e38, -2e38, 0, 1e60, 1e61],
    ],
)
@pytest.mark.parametrize("unit", [BY_RECORD, PrivacyUnit(column="x")])
def test_no_bin_overflows(edges: list[float], unit: PrivacyUnit) -> None:
    """An error that only a large value brings about would tell that there is one."""
    values = [LOW, LOW + 1, -1, 0, 1, HIGH - 2, HIGH - 1, HIGH]
    plan = plan_of({"x": WIDE}, [{"histogram": "x", "edges": edges}], unit=unit)
    (found,) = exact_numbers(plan, open_source(pa.table({"x": pa.array(values, pa.int64())}), plan.schema))
    inside = [v for v in values if edges[0] <= v <= edges[-1]]
    expected = [0] * (len(edges) - 1)
    for value in inside:
        expected[min(sum(edge <= value for edge in edges), len(edges) - 1) - 1] += 1
    assert found == expected


@pytest.mark.parametrize(
    ("bounds", "held"),
    [
        ({"at_least": -1e99}, 3),
        ({"below": 1e99}, 3),
        ({"at_least": -1e38, "below": 10}, 2),
        ({"at_least": 10, "below": 1e38}, 1),
    ],
)
def test_a_condition_may_state_any_number(bounds: dict[str, float], held: int) -> None:
    table = pa.table({"x": [0, 9, 10, None]})
    assert numbers_of(table, {"x": SMALL}, ["count"], where={"x": bounds}) == [[held]]


@pytest.mark.parametrize("bounds", [{"at_least": 1e99}, {"below": -1e99}, {"below": 0}, {"at_least": 10.5}])
def test_a_condition_that_can_never_be_true_is_refused(bounds: dict[str, float]) -> None:
    with pytest.raises(InvalidParameter, match="can never be true"):
        numbers_of(pa.table({"x": [0]}), {"x": SMALL}, ["count"], where={"x": bounds})


# Connections with habits of their own


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_connection_may_sort_downwards(order: str) -> None:
    connection = duckdb.connect()
    connection.execute(f"SET default_order = '{order}'")
    table = connection.sql("SELECT unnest([1, 1, 2, 3, 3, 3, 9]) AS x, 'a' AS g")
    plan = plan_of({"x": SMALL, "g": LETTERS}, [{"quantiles": "x", "levels": [0.5]}], ("g",))
    source, line = open_source(table, plan.schema), plan.lines[0].measurement
    assert isinstance(line, ColumnMeasurement)
    found = ranks(
        source,
        by=line.groupings(source),
        value=source.place_of(line.column),
        unit=BY_RECORD,
        bits=SeededBits(1),
    )
    counts = [np.diff(values.count_below(np.arange(12))).tolist() for values in found.values()]
    assert counts == [[0, 2, 1, 3, 0, 0, 0, 0, 0, 1, 0], [0] * 11]


@pytest.mark.parametrize("by_default", [False, True])
def test_letters_that_a_collation_takes_for_one_stay_apart(by_default: bool) -> None:
    """Else one record with the other letter would name the group of all, and their key would be unknown."""
    connection = duckdb.connect()
    if by_default:
        connection.execute("SET default_collation = 'nocase'")
    connection.execute(f"CREATE TABLE t (g VARCHAR {'' if by_default else 'COLLATE nocase'}, x INTEGER)")
    connection.execute("INSERT INTO t VALUES ('A', 5), ('a', 1), ('a', 2), ('a', 3), ('b', 4)")
    ask = ["count", {"quantiles": "x", "levels": [0.5]}]
    count, tree = numbers_of(connection.table("t"), {"g": LETTERS, "x": SMALL}, ask, ("g",))
    assert count == [3, 1]
    assert [sum(tree[:11]), sum(tree[11:])] == [3, 1]
    (alone,) = numbers_of(
        connection.table("t"), {"g": {"type": "category", "keys": ["a"]}}, ["count"], ("g",)
    )
    assert alone == [3]


def test_long_keys_of_a_tree_are_not_rounded_to_one() -> None:
    large = 1 << 60
    columns = {
        "g": {"type": "category", "keys": [-1, large, large + 1], "missing": -1},
        "x": SMALL,
    }
    keys = pa.array([large] * 3 + [large + 1] * 2 + [(1 << 64) - 1], pa.uint64())
    table = pa.table({"g": keys, "x": [1, 5, 9, 1, 5, 9]})
    (tree,) = numbers_of(table, columns, [{"quantiles": "x", "levels": [0.5]}], ("g",))
    bins = len(tree) // 3
    assert [sum(tree[i * bins : (i + 1) * bins]) for i in range(3)] == [1, 3, 2]


# Files


def test_a_record_over_many_lines_is_one_record(tmp_path: Path) -> None:
    """Threads that start inside quotes would take the lines of one record for records."""
    path, records = tmp_path / "notes.csv", 8000
    inside = "then\n1,a,5\n" * 400
    with path.open("w") as file:
        file.write("id,g,x\n")
        file.writelines(f'{i},"{inside}",{i % 10}\n' for i in range(records))
    columns = {"g": {"type": "category", "keys": ["a", "other"], "missing": "other"}, "x": SMALL}
    assert numbers_of(path, columns, ["count"], ("g",), {"multiline": True}) == [[0, records]]


@pytest.mark.parametrize(
    "odd",
    ["5,a\r,5", "5,a\r", "5,a,5\r", '5,"a"b,5', '5,a",5', "5", "5,a,5,6,7", "", "#", "5,\0,5", '5,\\"a,5'],
)
@pytest.mark.parametrize("first", [False, True])
def test_an_odd_line_counts_for_itself_alone(odd: str, first: bool, tmp_path: Path) -> None:
    path, whole = tmp_path / "rows.csv", ["1,a,2"] * 20
    lines = [odd, *whole] if first else [*whole[:10], odd, *whole[10:]]
    path.write_bytes("\n".join(["id,g,x", *lines, ""]).encode())
    (found,) = numbers_of(path, {"g": {"type": "category", "keys": ["a"]}}, ["count"], ("g",))
    assert found[0] in (20, 21)


# Before the charge, and after it


def ledger_of(path: Path, budget: Any = None, **more: Any) -> Ledger:
    held = PureBudget(limit=Fraction(1)) if budget is None else budget
    return Ledger.create(
        path, Terms(budget=held, unit="record", **{"neighbours": Neighbours.ADD_REMOVE, **more})
    )


def test_a_lazy_frame_is_read_after_the_charge_and_fails_without_words(tmp_path: Path) -> None:
    ledger, spent = ledger_of(tmp_path / "a.ledger"), []

    def step(frame: pl.DataFrame) -> pl.DataFrame:
        spent.append(ledger.status().spent)
        raise ValueError("Bob is 54")

    lazy = pl.LazyFrame({"x": [1]}).map_batches(step, schema={"x": pl.Int64})
    table = Table(lazy, unit="record", columns={"x": SMALL})
    plan = table.plan({"name": "q", "ask": ["count", {"mean": "x"}]}, epsilon=1)
    assert not spent
    with pytest.raises(SourdineError) as caught:
        table.release(plan, ledger)
    assert "Bob" not in str(caught.value)
    assert spent
    assert set(spent) == {Fraction(1)}


def test_a_table_declared_otherwise_than_the_plan_is_not_read(tmp_path: Path) -> None:
    plan = plan_of({"x": SMALL}, [{"sum": "x"}])
    wide = Schema.read({"x": {"type": "integer", "lower": 0, "upper": 10**6}})
    ledger = ledger_of(tmp_path / "a.ledger")
    with pytest.raises(InvalidParameter, match="opened with other declarations"):
        release(plan, open_source(pa.table({"x": [10**6]}), wide), ledger, purpose="test")
    nobody = plan_of({"x": SMALL}, [{"sum": "x"}], unit=PrivacyUnit(column="who"))
    with pytest.raises(InvalidParameter, match="opened with other declarations"):
        release(nobody, open_source(pa.table({"x": [1]}), nobody.schema), ledger, purpose="test")
    assert ledger.status().spent == 0


def test_too_many_groups_are_refused_before_anything_is_paid() -> None:
    columns = {name: {"type": "category", "keys": [str(i) for i in range(300)]} for name in "abc"}
    with pytest.raises(InvalidParameter, match="27,000,000 groups"):
        plan_of(columns, ["count"], ("a", "b", "c"))


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
@pytest.mark.parametrize("kind", ["pure", "zcdp", "renyi"])
def test_a_plan_pays_no_more_than_its_guarantee_in_any_currency(
    kind: str, neighbours: Neighbours, tmp_path: Path
) -> None:
    delta = None if kind == "pure" else 1e-6
    budgets = {
        "pure": PureBudget(limit=Fraction(1)),
        "zcdp": ConcentratedBudget.within(1, 1e-6),
        "renyi": RenyiBudget(limit=Fraction(100), order=Fraction(16)),
    }
    ledger = ledger_of(tmp_path / "a.ledger", budgets[kind], neighbours=neighbours, delta=delta)
    table = Table(
        pa.table({"x": [1, 2, 3], "g": ["a", "A", "b"], "who": [1, 1, 2]}),
        unit=PrivacyUnit(name="record", column="who", max_rows=3, max_groups=2),
        columns={"x": SMALL, "g": LETTERS},
        neighbours=neighbours,
    )
    ask = ["count", {"variance": "x"}, {"sum": "x"}, {"quantiles": "x", "levels": [0.5]}]
    noise = None if delta is None else "gaussian"
    plan = table.plan({"name": "q", "ask": ask, "by": ["g"]}, epsilon=1, delta=delta, noise=noise)
    made = table.release(plan, ledger, bits=SeededBits(1))
    assert not made.secure
    assert ledger.history()[-1].secure is False
    assert 0 < ledger.status().spent <= budgets[kind].limit
    if kind == "renyi":  # a divergence at order a of rho costs a * rho
        assert ledger.status().spent <= 16 * plan.privacy.total * (1 + Fraction(1, 10**9))


# Trees


class Recorded:
    """Values whose counts tell which bins were asked for."""

    def __init__(self, size: int, fan: int) -> None:
        self.size, self.fan, self.asked = size, fan, list[tuple[int, ...]]()

    def count_below(self, places: Any) -> Any:
        edges = np.asarray(places).reshape(-1, self.fan + 1)
        self.asked += map(tuple, edges.tolist())
        return np.asarray(places, dtype=np.int64)

    def values_between(self, first: int, last: int) -> Any:
        raise AssertionError("a tree looks at counts alone")


@pytest.mark.parametrize("size", [2, 17, 121, 5000, 1 << 20, (1 << 31) + 2])
def test_every_count_of_a_tree_is_drawn_once_and_at_its_levels_alone(size: int) -> None:
    tree, drawn = BinTree.over(size), list[int]()
    values = Recorded(size, tree.fan)

    def noisy(counts: Any) -> Any:
        drawn.append(len(counts))
        return counts + 1

    walk, one = TreeWalk(tree, SeparateRanks.alone(values), noisy, 1.0), np.zeros(1, np.int64)
    quantiles(walk, one, [0.01, 0.25, 0.5, 0.51, 0.99], lambda many: np.full_like(many, 3.0))
    quantiles(walk, one, [0.5], lambda many: np.full_like(many, 3.0))
    assert len(values.asked) == len(set(values.asked))
    assert sum(drawn) == tree.fan * len(values.asked)
    widths = {edges[1] - edges[0] for edges in values.asked}
    assert widths <= {tree.fan**level for level in range(tree.height)}
    for edges in values.asked:
        width = edges[1] - edges[0]
        assert set(np.diff(edges)) == {width}
        assert edges[0] % (width * tree.fan) == 0
        assert len(edges) == tree.fan + 1
    assert tree.fan**tree.height >= size


def test_a_query_walks_the_tree_of_a_column_once() -> None:
    """Two walks would each draw their own noise, and one of them would not be paid for."""
    ask = [{"quantiles": "x", "levels": [0.5]}, {"quantiles": "x", "levels": [0.25]}]
    with pytest.raises(InvalidParameter, match="asked twice"):
        plan_of({"x": SMALL}, ask)


def test_the_source_of_a_release_is_not_asked_before_the_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, seen = ledger_of(tmp_path / "a.ledger"), []

    def watched(whole: Any) -> Any:
        def ask(self: Source, *given: Any) -> Any:
            seen.append(ledger.status().spent)
            return whole(self, *given)

        return ask

    for name in ("ask", "columns", "keep"):
        monkeypatch.setattr(Source, name, watched(getattr(Source, name)))
    table = Table(pa.table({"x": [1, None]}), unit="record", columns={"x": SMALL})
    plan = table.plan({"name": "q", "ask": ["count", {"mean": "x"}]}, epsilon=1)
    assert not seen
    table.release(plan, ledger)
    assert seen == [Fraction(1)] * 2  # the query, and data quality
    with pytest.raises(SourdineError):
        table.release(plan, ledger)
    assert len(seen) == 2
