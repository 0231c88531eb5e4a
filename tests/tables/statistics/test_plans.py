"""What one plan with every statistic says, as it was said before there was a class for each."""

from fractions import Fraction
from typing import Any

import pytest

from sourdine.core.distance import Neighbours
from sourdine.frames import PrivacyUnit, Schema
from sourdine.tables import Privacy, Query, ReleasePlan, forecasts, statistics
from sourdine.tables.release import scans

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "lower": -3, "upper": 20},
    "pay": {"type": "real", "lower": -0.7, "upper": 2.0, "granularity": 0.3},
    "score": {"type": "real", "lower": 0.0, "upper": 1.0, "granularity": 0.01, "missing": 0.5},
    "site": {"type": "category", "keys": ["n", "s"]},
    "place": {"type": "category", "keys": ["a", "b", "c"]},
    "street": {"type": "text"},
}
ROWS = [["x", "a"], ["x", "b"], ["y", "c"]]
QUERIES: list[dict[str, Any]] = [
    {"name": "sums", "ask": [{"sum": "age"}, "count", {"sum": "score"}, {"deviation": "score"}], "weight": 2},
    {"name": "means", "ask": ["count", "units", {"mean": "age"}, {"variance": "pay"}], "by": ["site"]},
    {"name": "shares", "ask": [{"proportion": "age", "at_least": 3}, {"top": "place", "k": 2}]},
    {
        "name": "tables",
        "ask": [{"histogram": "age", "edges": [-3, 5, 20]}, {"contingency": ["site", "place"]}],
    },
    {
        "name": "adding up",
        "ask": [
            {"contingency": ["place", "site"], "consistent": True},
            {"kind": "hierarchy", "levels": ["region", "place"], "rows": ROWS},
        ],
    },
    {
        "name": "ranks",
        "ask": [
            {"quantiles": "age", "levels": [0.1, 0.5]},
            {"quantiles": "pay", "levels": [0.5], "method": "tree"},
        ],
    },
    {"name": "streets", "ask": ["count", {"mean": "score"}], "by": ["street"]},
]


def plan_of() -> ReleasePlan:
    return ReleasePlan(
        schema=Schema.read(COLUMNS),
        queries=tuple(map(Query.read, QUERIES)),
        privacy=Privacy(epsilon=Fraction(3), delta=1e-6),
        unit=PrivacyUnit(name="person", column="who", max_rows=2, max_groups=3),
        neighbours=Neighbours.REPLACE,
        size=5000,
    )


LINES: list[Any] = [
    ("streets", "keys of street", "Linf", "1", None, 1, "19/480"),
    ("sums", "sum of age", "L2", "6400", 2, 1, "19/320"),
    ("sums", "moments of score", "L2", "800000000", 6, 1, "57/320"),
    ("means", "count", "L2", "16", 4, 1, "19/640"),
    ("means", "units", "L2", "4", 4, 1, "19/640"),
    ("means", "sum and count of age", "L2", "8464", 8, 1, "19/640"),
    ("means", "moments of pay", "L2", "160000", 12, 1, "19/640"),
    ("shares", "proportion with age at least 3", "L2", "8", 4, 1, "19/320"),
    ("shares", "top 2 of place", "Linf", "1", None, 1, "19/320"),
    ("tables", "histogram of age", "L2", "16", 4, 1, "19/320"),
    ("tables", "site by place", "L2", "24", 6, 1, "19/320"),
    ("adding up", "place by site", "L2", "208", 24, 1, "19/320"),
    ("adding up", "place in region", "L2", "136", 18, 1, "19/320"),
    ("ranks", "quantiles of age", "Hamming", "2", None, 1, "19/320"),
    ("ranks", "ranks of pay", "L2", "8", 4, 1, "19/320"),
    ("streets", "sum and count of score", "L2", "240000", 12, 1, "19/240"),
    ("(all queries)", "data quality", "L2", "48", 24, 1, "1/20"),
]
FORECASTS: list[Any] = [
    (
        "streets",
        "keys of street",
        41.0,
        "people",
        "a key is shown from about 108 people on, and nearly surely from 149",
    ),
    ("sums", "sum of age", 1085.0, "age", ""),
    ("sums", "count", 38.3733, "records", ""),
    ("sums", "sum of score", 24.76983, "score", ""),
    ("sums", "deviation of score", 0.003133348, "score", "if values are spread evenly between their bounds"),
    ("means", "count", 77.0, "records", ""),
    ("means", "units", 38.0, "people", ""),
    (
        "means",
        "mean of age",
        0.4997423,
        "age",
        "if values are spread evenly between their bounds, for groups of 2,500",
    ),
    (
        "means",
        "variance of pay",
        0.1127939,
        "pay²",
        "if values are spread evenly between their bounds, for groups of 2,500",
    ),
    ("shares", "proportion with age at least 3", 0.542714, "percentage points", "for a share near one half"),
    (
        "shares",
        "top 2 of place",
        42.64903,
        "people",
        "a key this far above the last that is listed is not left out",
    ),
    ("tables", "histogram of age", 54.0, "records", ""),
    ("tables", "site by place", 66.0, "records", ""),
    ("adding up", "place by site", 138.3568, "records", "at most, for numbers that add up; mostly less"),
    ("adding up", "place in region", 124.1156, "records", "at most, for numbers that add up; mostly less"),
    ("ranks", "quantiles of age", 504.7136, "ranks", "of about 5,000; at most, mostly far less; no interval"),
    ("ranks", "quantiles of pay", 63.63486, "ranks", "of about 5,000"),
    ("streets", "count", 81.41, "records", ""),
    (
        "streets",
        "mean of score",
        0.5,
        "score",
        "if values are spread evenly between their bounds, for groups of 108",
    ),
]


def test_what_is_measured_shared_and_paid_stays() -> None:
    found = [
        (
            line.measurement.scope.query,
            line.measurement.label,
            str(line.distance.norm),
            str(line.distance.amount),
            line.distance.coordinates,
            line.count,
            str(line.share),
        )
        for line in plan_of().lines
    ]
    assert found == LINES


def test_what_is_forecast_stays() -> None:
    found = [
        (each.query, each.statistic, each.error, each.measure, each.note) for each in forecasts(plan_of())
    ]
    assert [(*each[:2], *each[3:]) for each in found] == [(*each[:2], *each[3:]) for each in FORECASTS]
    assert [each[2] for each in found] == pytest.approx([each[2] for each in FORECASTS], rel=1e-5)


def test_lines_about_the_same_records_are_summed_at_once() -> None:
    plan = plan_of()
    assert [[plan.lines.index(line) for line in scan] for scan in scans(plan)] == [
        [0],
        [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12],
        [13],
        [14],
        [15],
        [16],
    ]


def test_a_statistic_by_another_name_is_answered_with_its_own() -> None:
    for name, meant in {"Median": "Quantiles", "Average": "Mean", "Counts": "Count"}.items():
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'\. Did you mean {meant}\("):
            getattr(statistics, name)
    with pytest.raises(AttributeError, match=r"no attribute 'Zzz'\.$"):
        statistics.Zzz  # noqa: B018
