import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.anonymity import (
    Demand,
    GeneralisationHierarchy,
    Ground,
    Missing,
    Records,
    Tree,
    cells_of,
    classes_of,
    delta_disclosure,
    generalise_records,
    k_anonymity,
    l_diversity,
    measure,
    measure_records,
    t_closeness,
)
from sourdine.anonymity.diversity import ordered_of, recursive_of
from sourdine.core.errors import InvalidParameter
from sourdine.frames import Schema
from tests.anonymity import brute
from tests.frames.every_engine import ALL_ENGINES, ENGINES

# the source's hospital: six patients, ages in bands, homes as districts
HOSPITAL = pa.table(
    {
        "age": ["18-30", "18-30", "35-45", "35-45", "60+", "60+"],
        "home": ["Besançon", "Besançon", "Montbéliard", "Montbéliard", "Besançon", "Besançon"],
        "care": ["asthma", "HIV", "cancer", "HIV", "leukaemia", "leukaemia"],
    }
)
QUASI = ["age", "home"]

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "a": st.sampled_from(["x", "y", "z"]),
            "b": st.integers(0, 2),
            "s": st.integers(1, 12),
        }
    ),
    min_size=1,
    max_size=40,
)


def as_table(rows: list[dict[str, object]]) -> pa.Table:
    return pa.table({name: [row[name] for row in rows] for name in rows[0]})


@pytest.mark.parametrize("engine", ALL_ENGINES)
def test_every_engine_gives_the_figures_worked_out_by_hand(engine: str, tmp_path: Path) -> None:
    found = measure(ENGINES[engine](HOSPITAL, tmp_path), quasi=QUASI, sensitive=["care"])
    care = found.sensitive[0]
    assert (found.k, found.classes, found.records, found.unique) == (2, 3, 6, 0)
    assert (care.diversity, care.alpha, care.homogeneous, care.values) == (1, 1.0, 2, 4)
    assert care.entropy_diversity == pytest.approx(1.0)
    # leukaemia: 2 of 6 in the table, all of the class: 1 - 1/3
    assert care.closeness == pytest.approx(2 / 3)
    assert care.delta == math.inf
    assert found.sizes == ((2, 3),)


@given(ROWS)
@settings(max_examples=60)
def test_figures_follow_the_definitions(rows: list[dict[str, object]]) -> None:
    found = measure_records(brute.coded(rows, ["a", "b"], ["s"])).sensitive[0]
    classes = brute.classes(rows, ["a", "b"])
    least = min(brute.distinct(each, "s") for each in classes)
    assert found.diversity == least
    assert found.alpha == max(brute.alpha(each, "s") for each in classes)
    assert found.entropy_diversity == pytest.approx(min(brute.entropy(each, "s") for each in classes))
    assert found.c == pytest.approx(max(brute.recursive(each, "s", least) for each in classes))
    assert found.closeness == pytest.approx(max(brute.total_variation(each, rows, "s") for each in classes))
    assert found.delta == pytest.approx(max(brute.delta(each, rows, "s") for each in classes))


@given(ROWS, st.integers(1, 5))
@settings(max_examples=40)
def test_recursive_diversity_for_any_l(rows: list[dict[str, object]], least: int) -> None:
    records = brute.coded(rows, ["a"], ["s"])
    found = recursive_of(cells_of(classes_of(records), records.sensitive[0], records.counts), least)
    truth = [brute.recursive(each, "s", least) for each in brute.classes(rows, ["a"])]
    assert sorted(found) == pytest.approx(sorted(truth))


@given(ROWS)
@settings(max_examples=12)
def test_ordered_distance_is_the_cost_of_transport(rows: list[dict[str, object]]) -> None:
    values = sorted({row["s"] for row in rows})  # type: ignore[type-var]
    ground = {
        (a, b): abs(i - j) / max(len(values) - 1, 1)
        for i, a in enumerate(values)
        for j, b in enumerate(values)
    }
    truth = max(brute.transport(each, rows, "s", ground) for each in brute.classes(rows, ["a"]))
    found = measure_records(brute.coded(rows, ["a"], ["s"]), distances={"s": Ground.ORDERED})
    assert found.t == pytest.approx(truth, abs=1e-9)


@given(ROWS)
@settings(max_examples=12)
def test_hierarchical_distance_is_the_cost_of_transport(rows: list[dict[str, object]]) -> None:
    tree = {str(s): (f"of {(s - 1) // 3}", f"half {(s - 1) // 6}", "*") for s in range(1, 13)}
    ground: dict[tuple[object, object], float] = {}
    for a in range(1, 13):
        for b in range(1, 13):
            above = [(str(a), str(b)), *zip(tree[str(a)], tree[str(b)], strict=True)]
            ground[a, b] = next(h for h, (x, y) in enumerate(above) if x == y) / 3
    truth = max(brute.transport(each, rows, "s", ground) for each in brute.classes(rows, ["a"]))
    found = measure_records(brute.coded(rows, ["a"], ["s"]), distances={"s": Tree(tree)})
    assert found.t == pytest.approx(truth, abs=1e-9)


def test_the_example_of_the_paper_on_closeness() -> None:
    """Salaries 3k to 11k in classes of three (Li, Li, Venkatasubramanian 2007)."""
    salaries = [3, 4, 5, 6, 11, 8, 7, 9, 10]
    first = pa.table({"class": [1, 1, 1, 2, 2, 2, 3, 3, 3], "salary": salaries})
    records = Records.read(first, quasi=["class"], sensitive=["salary"])
    found = ordered_of(cells_of(classes_of(records), records.sensitive[0], records.counts))
    assert found[:2] == pytest.approx([0.375, 1 / 6])


def test_order_is_that_of_numbers_also_in_text() -> None:
    table = pa.table({"q": ["a", "a", "b", "b"], "s": ["9", "10", "9", "100"]})
    assert Records.read(table, quasi=["q"], sensitive=["s"]).sensitive[0].labels == ("9", "10", "100")


def test_many_values_and_large_tables_stay_exact() -> None:
    n = 60_000
    s = (np.arange(n) * 7919) % 20_011
    q = np.arange(n) % 3
    table = pa.table({"q": q, "s": s})
    values, p = np.unique(s, return_counts=True)
    P = np.cumsum(p) / n
    truth = 0.0
    for each in range(3):
        held = np.searchsorted(np.sort(s[q == each]), values, side="right") / np.sum(q == each)
        truth = max(truth, float(np.abs(held - P).sum() / (len(values) - 1)))
    assert t_closeness(table, ["q"], ["s"], {"s": Ground.ORDERED}) == pytest.approx(truth, rel=1e-12)


# where a peer goes wrong: it takes labels of an index for places, and skips what does not occur


def test_a_shuffled_index_changes_nothing() -> None:
    frame = pd.DataFrame({"q": ["a", "a", "b", "b"], "s": ["x", "x", "y", "y"]}, index=[0, 2, 1, 3])
    assert l_diversity(frame, ["q"], ["s"]) == 1
    assert t_closeness(frame, ["q"], ["s"]) == 0.5
    assert k_anonymity(frame, ["q"]) == 2


def test_a_filtered_frame_is_measured_as_it_is() -> None:
    frame = pd.DataFrame({"q": ["z", "a", "a", "b", "b"], "s": ["w", "x", "y", "x", "y"]})
    kept = frame[frame["q"] != "z"]
    assert (k_anonymity(kept, ["q"]), l_diversity(kept, ["q"], ["s"])) == (2, 2)
    assert t_closeness(kept, ["q"], ["s"]) == 0
    assert delta_disclosure(kept, ["q"], ["s"]) == 0


def test_a_value_that_a_class_lacks_makes_delta_infinite() -> None:
    table = pa.table({"q": ["a", "a", "b", "b"], "s": ["x", "x", "x", "y"]})
    assert delta_disclosure(table, ["q"], ["s"]) == math.inf


def test_delta_is_the_largest_logarithm_where_nothing_lacks() -> None:
    table = pa.table({"q": list("aaabbb"), "s": list("xxyxyy")})
    assert delta_disclosure(table, ["q"], ["s"]) == pytest.approx(math.log(1.5))


def test_recursive_diversity_takes_the_most_frequent_value() -> None:
    table = pa.table({"q": ["a"] * 6, "s": list("xxxxyz")})
    assert measure(table, quasi=["q"], sensitive=["s"]).sensitive[0].c == 4.0  # 4 < c * 1 with l = 3


@given(ROWS, st.randoms(use_true_random=False))
@settings(max_examples=6)
def test_the_order_of_rows_changes_nothing(rows: list[dict[str, object]], random: object) -> None:
    mixed = list(rows)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    keys = {"quasi": ["a", "b"], "sensitive": ["s"], "subsets": 2}
    assert measure(as_table(mixed), **keys) == measure(as_table(rows), **keys)  # type: ignore[arg-type]


def test_several_sensitive_columns_each_count() -> None:
    table = pa.table({"q": list("aabb"), "s": list("xyxy"), "u": list("mmmn")})
    found = measure(table, quasi=["q"], sensitive=["s", "u"])
    assert [each.diversity for each in found.sensitive] == [2, 1]
    assert (found.l, found.t) == (1, 0.25)


# missing values


def test_a_missing_value_is_a_value_or_left_out_as_asked() -> None:
    table = pa.table({"q": ["a", "a", None, "b", "b"], "s": ["x", None, "x", "x", "y"]})
    whole = measure(table, quasi=["q"], sensitive=["s"])
    assert (whole.records, whole.k, whole.dropped, whole.sensitive[0].values) == (5, 1, 0, 3)
    known = measure(table, quasi=["q"], sensitive=["s"], missing=Missing.DROP)
    assert (known.records, known.k, known.dropped, known.sensitive[0].values) == (4, 2, 1, 2)
    assert known.sensitive[0].diversity == 1  # x alone is known of class a


def test_not_a_number_is_missing() -> None:
    table = pa.table({"q": [1.0, float("nan"), None, 1.0]})
    assert measure(table, quasi=["q"]).sizes == ((2, 2),)


def test_a_class_of_which_nothing_is_known_gives_nothing_away() -> None:
    table = pa.table({"q": ["a", "a", "b", "b"], "s": [None, None, "x", "y"]})
    found = measure(table, quasi=["q"], sensitive=["s"], missing=Missing.DROP).sensitive[0]
    assert (found.diversity, found.closeness, found.delta) == (2, 0.0, 0.0)


def test_declared_columns_follow_their_declaration() -> None:
    schema = Schema.read(
        {
            "age": {"type": "integer", "lower": 0, "upper": 50},
            "sex": {"type": "category", "keys": ["f", "m"], "missing": "f"},
        }
    )
    table = pa.table({"age": [20, 70, 90, None], "sex": ["f", "m", "m", "m"], "s": list("xyzx")})
    found = measure(table, quasi=["age", "sex"], sensitive=["s"], columns=schema)
    assert (found.records, found.dropped, found.sizes) == (3, 1, ((1, 1), (2, 1)))


# what is refused


def test_bad_input_is_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidParameter, match="none is called 'weight'"):
        measure(HOSPITAL, quasi=["age", "weight"])
    with pytest.raises(InvalidParameter, match="At least one quasi-identifier"):
        measure(HOSPITAL, quasi=[])
    with pytest.raises(InvalidParameter, match="named twice"):
        measure(HOSPITAL, quasi=["age"], sensitive=["age"])
    with pytest.raises(InvalidParameter, match="list of names"):
        measure(HOSPITAL, quasi="age")
    with pytest.raises(InvalidParameter, match="no record"):
        measure(HOSPITAL.slice(0, 0), quasi=["age"])
    with pytest.raises(InvalidParameter, match="no sensitive column"):
        measure(HOSPITAL, quasi=["age"], sensitive=["care"], distances={"home": Ground.ORDERED})
    with pytest.raises(InvalidParameter, match="with a tree"):
        measure(HOSPITAL, quasi=["age"], sensitive=["care"], distances={"care": Ground.HIERARCHICAL})
    with pytest.raises(InvalidParameter, match="misses 4 of the 4 values"):
        measure(HOSPITAL, quasi=["age"], sensitive=["care"], distances={"care": Tree({"flu": ("*",)})})


@pytest.mark.parametrize("ground", [Ground.EQUAL, Ground.ORDERED, Tree({"u": ("*",), "v": ("*",)})])
def test_where_no_sensitive_value_is_known_nothing_can_be_learnt(
    ground: Ground | GeneralisationHierarchy,
) -> None:
    rows: list[dict[str, object]] = [{"a": "p", "s": None}] * 3
    records = brute.coded(rows, ["a"], ["s"])
    found = measure_records(records, distances={"s": ground}).sensitive[0]
    assert (found.closeness, found.alpha, found.values) == (0, 0, 0)
    kept = generalise_records(records, Demand(k=2, t=Fraction(1, 5), l=2), distances={"s": ground})
    assert kept.suppressed == 0
