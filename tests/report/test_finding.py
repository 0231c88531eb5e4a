import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from sourdine.frames.keys import Keys
from sourdine.report.finding import cells_of, count_cells, finding, named_rows, show
from sourdine.tables import Answer, Answers
from sourdine.tables.intervals import GroupEstimate


def answer(
    values: Sequence[float],
    half: float,
    *,
    kind: str = "count",
    keys: Iterable[tuple[str | float, ...]] | None = None,
    columns: tuple[str, ...] = ("region",),
    statistic: str | None = None,
    measure: str = "people",
    whole: bool | None = None,
    span: tuple[float, float] | None = None,
) -> Answer:
    number = np.array(values, dtype=float)
    named = keys or [(name,) for name in "abcdefghij"[: len(values)]]

    return Answer(
        kind=kind,
        columns=columns,
        keys=Keys.of(named, len(columns)),
        estimate=GroupEstimate(number, number - half, number + half),
        query="q",
        statistic=statistic or kind,
        measure=measure,
        whole=kind == "count" if whole is None else whole,
        span=span,
    )


def test_a_clear_lead_is_told() -> None:
    assert finding(answer([100, 500, 90], 20), 0.95) == "People: highest for b, 500 (480 to 520)"
    told = finding(answer([100.0, 500.0], 20, kind="mean", statistic="mean of pay", measure="pay"), 0.95)
    assert told == "The mean of pay: higher for b (500) than for a (100)"


def test_what_intervals_do_not_support_is_not_claimed() -> None:
    assert finding(answer([100, 110], 20), 0.95) == "People: the noise does not tell the two groups apart"
    assert "does not tell the 3 groups apart" in finding(answer([100, 110, 95], 20), 0.95)
    told = finding(answer([500, 495, 90], 20), 0.95)
    assert told == "People: a and b are highest, and the noise does not tell them apart"
    assert "a, b and c are highest" in finding(answer([500, 495, 490, 90], 20), 0.95)
    assert "4 of 5 groups may be the highest" in finding(answer([500, 495, 490, 485, 90], 20), 0.95)


def test_many_groups_need_a_wider_gap() -> None:
    # intervals that just do not meet: 95 % each is not enough for ten groups at once
    assert "does not tell" in finding(answer([141, 100], 20), 0.95)
    few, many = [200, 100], [200.0] + [100.0] * 9
    assert "higher for a" in finding(answer(few, 40), 0.95)
    assert "does not tell" in finding(answer(many, 40), 0.95)


@pytest.mark.parametrize("law", [stats.laplace, stats.norm])
@pytest.mark.parametrize("groups", [2, 10, 1000])
def test_the_widened_interval_holds_all_groups_at_once(law: object, groups: int) -> None:
    half = law.ppf(0.975)  # type: ignore[attr-defined]
    factor = 1 + math.log(groups) / math.log(20)
    outside = groups * 2 * law.sf(factor * half)  # type: ignore[attr-defined]
    assert outside <= 0.05 * (1 + 1e-9)


def test_margins_are_no_groups() -> None:
    keys = [("x", "f"), ("x", "m"), ("x", "all"), ("all", "f"), ("all", "m"), ("all", "all")]
    found = answer(
        [900, 10, 910, 900, 10, 910], 5, kind="contingency", keys=keys, columns=("site", "sex"), whole=True
    )
    assert finding(found, 0.95) == "People: higher for x · f (900) than for x · m (10)"


def test_a_single_number_is_told_with_its_interval() -> None:
    alone = answer([1234], 15, keys=[()], columns=())
    assert finding(alone, 0.95) == "People: 1,234 (1,219 to 1,249)"


def test_quantiles_tell_the_middle() -> None:
    keys = [(level,) for level in (0.1, 0.5, 0.9)]
    found = answer([10, 50, 90], 2, kind="quantiles", keys=keys, columns=("quantile",), measure="age")
    assert finding(found, 0.95) == (
        "Half of the values of age lie below 50 (48 to 52); "
        "the middle 80\N{NO-BREAK SPACE}% go from about 10 to 90"
    )
    by = [(sex, level) for sex in "fm" for level in (0.25, 0.5)]
    found = answer([1, 50, 2, 90], 2, kind="quantiles", keys=by, columns=("sex", "quantile"), measure="age")
    assert finding(found, 0.95) == "The median of age: higher for m (90) than for f (50)"


def test_numbers_are_told_with_all_their_digits() -> None:
    mean = answer([1], 1, kind="mean")
    assert show(33730.0, mean) == "33,730"
    assert show(0.1235, mean) == "0.1235"
    assert show(1e-7, mean) == "0.0000001"
    assert show(1.2e9, mean) == "1,200,000,000"
    assert show(0.37231, answer([1], 1, kind="proportion")) == "37.231\N{NO-BREAK SPACE}%"
    assert show(-3.0, answer([1], 1)) == "-3"


def test_where_the_interval_is_all_that_is_possible_nothing_is_said() -> None:
    alone = answer([50.0], 50, kind="mean", keys=[()], columns=(), statistic="mean of age", span=(0.0, 100.0))
    assert finding(alone, 0.95) == "The mean of age: nothing can be said, since the noise hides all"
    level = answer([50.0], 50, kind="quantiles", keys=[(0.5,)], columns=("quantile",), span=(0.0, 100.0))
    assert "nothing can be said" in finding(level, 0.95)
    narrow = answer(
        [50.0], 49, kind="mean", keys=[()], columns=(), statistic="mean of age", span=(0.0, 100.0)
    )
    assert finding(narrow, 0.95) == "The mean of age: 50 (0 to 100)"  # to the digits that it is worth


def test_a_group_of_which_nothing_is_known_is_not_compared() -> None:
    given = {"query": "q", "statistic": "mean of age", "kind": "mean", "columns": ("sex",), "measure": "age"}
    ends = {"f": (50, 49, 51), "m": (30, 29, 31), "x": (60, 0, 100)}

    def told(*groups: str) -> str:
        rows = zip(*(ends[group] for group in groups), strict=True)
        estimate = GroupEstimate(*(np.array(row, dtype=float) for row in rows))
        keys = Keys.of([(group,) for group in groups], 1)
        return finding(Answer(keys=keys, estimate=estimate, span=(0.0, 100.0), **given), 0.95)  # type: ignore[arg-type]

    assert told("f", "m") == "The mean of age: higher for f (50) than for m (30)"
    assert told("f", "m", "x") == f"{told('f', 'm')}; of 1 more group nothing can be said"
    assert told("f", "x") == "The mean of age: for f 50 (49 to 51); of 1 more group nothing can be said"
    assert told("x") == "The mean of age: nothing can be said, since the noise hides all"


def test_rows_for_people_name_every_group() -> None:
    found = answer([1, 2], 1, keys=[("n", True), ("n", False)], columns=("site", "well"))
    rows = list(named_rows(Answers((found,), 0.95)))
    assert [row[2] for row in rows] == ["n · well: yes", "n · well: no"]
    assert rows[0][3:] == ("1", "0", "2", "people")


@pytest.mark.parametrize("lead", [0.0, 30.0, 70.0, 500.0])
@pytest.mark.parametrize("kind", ["count", "quantiles"])
def test_many_groups_are_told_of_as_few_are(lead: float, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a look at each of them: which is ahead, and of how many nothing can be said."""
    values = [100.0, 100.0 + lead, 95.0, 100.0 + lead / 2, 20.0, 90.0, 99.0, 98.0]
    keys = [(name,) if kind == "count" else (name, 0.5) for name in "abcdefgh"]
    columns = ("region",) if kind == "count" else ("region", "quantile")
    few = answer(values, 20, kind=kind, keys=keys, columns=columns, span=(0.0, 1000.0), whole=False)
    wanted = finding(few, 0.95)
    monkeypatch.setattr("sourdine.report.finding.MOST_CELLS", 2)
    assert finding(few, 0.95) == wanted


def test_of_many_values_the_largest_are_looked_at() -> None:
    many = answer([5.0, 1.0, 9.0, 7.0], 1)
    assert [cell.label for cell in cells_of(many, 2)] == ["c", "d"]
    levels: list[tuple[str | float, ...]] = [(name, level) for name in "ab" for level in (0.25, 0.5)]
    curve = answer([5.0, 6.0, 9.0, 10.0], 1, kind="quantiles", keys=levels, columns=("sex", "quantile"))
    assert [cell.key for cell in cells_of(curve, 3)] == [("a", 0.25), ("a", 0.5)]
    assert count_cells(curve) == 4


def test_numbers_have_the_digits_that_their_interval_is_worth() -> None:
    share = answer(
        [0.54361],
        0.0035,
        kind="proportion",
        keys=[()],
        columns=(),
        statistic="proportion with a",
        span=(0, 1),
    )
    assert finding(share, 0.95).replace("\N{NO-BREAK SPACE}", " ") == "Share with a: 54.4 % (54.0 to 54.8)"


def test_a_group_that_is_hardly_known_does_not_hide_which_others_are_apart() -> None:
    number, half = np.array([42.1, 30.2, 42.7]), np.array([0.6, 2.0, 14.0])
    ages = replace(
        answer([0, 0, 0], 1, kind="mean", statistic="mean of age", measure="age", span=(0.0, 100.0)),
        estimate=GroupEstimate(number, number - half, number + half),
    )
    assert finding(ages, 0.95).endswith("c and a are highest, and the noise does not tell them apart")
