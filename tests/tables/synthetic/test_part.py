"""What a unit moves, on the way that records really take: every input of every mechanism is recorded.

Columns and edges answer the same whatever they are given, as the proof conditions on what was released.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sourdine.frames import PrivacyUnit
from sourdine.tables import Table
from sourdine.tables.synthetic.measure import FINENESS, SynthesisNoise, join_cells, measure_part
from sourdine.tables.synthetic.synthesis import codes_by_part
from sourdine.testing import SeededBits

SIZES = [2, 3, 2]
RECORDS = list(product(*map(range, SIZES)))


@dataclass
class Recorder:
    """A mechanism that keeps what it is given, and gives back what it was told to."""

    answer: Any = None
    sigma: float = 1.0
    given: list[Any] = field(default_factory=list)

    def sample(self, values: Any, bits: object) -> Any:
        self.given.append(np.array(values))
        return self.answer if self.answer is not None else np.array(values)


class Chooser(Recorder):
    """Chooses one pair after the other."""

    def sample(self, values: Any, bits: object) -> Any:
        super().sample(values, bits)
        return len(self.given) - 1


def inputs(records: Iterable[tuple[int, ...]], noisy: list[list[int]]) -> tuple[list[Any], list[Any]]:
    """What the counts and the choices of one part were asked with."""
    rows = np.array(list(records), np.uint8).reshape(-1, len(SIZES))
    columns = tuple(Recorder(np.array(each)) for each in noisy)
    edges, pairs = Chooser(), Recorder()
    noise = SynthesisNoise(columns=columns, edges=edges, pairs=pairs)  # type: ignore[arg-type]
    measure_part([rows[:, place] for place in range(len(SIZES))], SIZES, noise, SeededBits(1))
    return [*(each.given[0] for each in columns), *pairs.given], edges.given


def moved(
    one: tuple[list[Any], list[Any]], other: tuple[list[Any], list[Any]]
) -> tuple[list[int], list[int]]:
    """The squared L2 distance of each count, and the largest change of a score in each choice."""
    squares = [int(((a - b) ** 2).sum()) for a, b in zip(one[0], other[0], strict=True)]
    scores = []
    for a, b in zip(one[1], other[1], strict=True):
        assert (np.isfinite(a) == np.isfinite(b)).all()  # which pairs may be chosen is public
        there = np.isfinite(a)
        scores.append(int(np.abs(a[there] - b[there]).max()))
    return squares, scores


@pytest.mark.parametrize(
    ("noisy", "reached"),
    [
        ([[2, 1], [1, 0, 2], [1, 2]], False),  # all cells of each column are one
        ([[9, 9], [9, 1, 1], [9, 9]], False),  # more is expected in each cell than anybody is in
        ([[-30, 90], [60, 0, 0], [30, 40]], True),  # nobody is expected in some cells: there scores rise
        ([[0, 0], [7, 8, 9], [1, 30]], True),
    ],
)
def test_what_one_unit_moves_on_every_small_table(noisy: list[list[int]], reached: bool) -> None:
    """All tables of at most two records: added, removed, and replaced by any other.

    The bound on scores holds whatever columns answered; it is reached where both cells of a record that is
    replaced move a score the same way.
    """
    found = {
        records: inputs(records, noisy)
        for count in (0, 1, 2)
        for records in combinations_with_replacement(RECORDS, count)
    }
    worst: dict[str, list[int]] = {"add": [0, 0], "replace": [0, 0]}
    for records, one in found.items():
        for record in RECORDS:
            if len(records) < 2:
                squares, scores = moved(one, found[tuple(sorted((*records, record)))])
                assert squares == [1] * 5  # three columns and two pairs
                worst["add"] = [1, max(worst["add"][1], *scores)]
            if records:
                squares, scores = moved(one, found[tuple(sorted((*records[1:], record)))])
                worst["replace"] = [max(worst["replace"][0], *squares), max(worst["replace"][1], *scores)]
    assert worst["add"] == [1, FINENESS]
    assert worst["replace"][0] == 2
    assert (worst["replace"][1] == 2 * FINENESS) if reached else (worst["replace"][1] < 2 * FINENESS)


def test_a_unit_that_changes_its_part_moves_two_by_one_each() -> None:
    """The target's parts under replacement: squares add up to 2, and each part's scores move by 16."""
    noisy = [[2, 1], [1, 0, 2], [1, 2]]
    for record, other in product(RECORDS[:6], RECORDS[6:]):
        left = moved(inputs([record, record], noisy), inputs([record], noisy))
        entered = moved(inputs([], noisy), inputs([other], noisy))
        assert [a + b for a, b in zip(left[0], entered[0], strict=True)] == [2] * 5
        assert max(*left[1], *entered[1]) <= FINENESS


COLUMNS = {
    "a": {"type": "category", "keys": ["x", "y"]},
    "n": {"type": "real", "lower": 0, "upper": 10, "granularity": 0.5},
    "t": {"type": "flag"},
}
VALUES: list[tuple[Any, Any, Any]] = [
    ("x", 1.0, True),
    ("undeclared", float("nan"), None),
    (None, float("inf"), False),
    ("", -7.0, True),
    ("y\0", None, None),
]


def codes_of(rows: list[tuple[Any, ...]], unit: PrivacyUnit, target: str | None) -> list[list[np.ndarray]]:
    names = [*COLUMNS, "id"]
    kinds = (pa.string(), pa.float64(), pa.bool_(), pa.int64())
    columns = {
        name: pa.array([row[place] for row in rows], kind)
        for place, (name, kind) in enumerate(zip(names, kinds, strict=True))
    }
    people = Table(pa.table(columns), unit=unit, columns=COLUMNS)
    plan = people.synthetic_plan(epsilon=1, delta=1e-6, target=target, columns=list(COLUMNS))
    return codes_by_part(plan, people.source, SeededBits(3))


@pytest.mark.parametrize("target", [None, "t"])
def test_a_record_lies_in_one_cell_of_each_column_whatever_it_holds(target: str | None) -> None:
    """With and without the first unit: in one part, one record more, the others as they were."""
    unit = PrivacyUnit("person", column="id", max_rows=9)
    others = [(*values, place) for place, values in enumerate(VALUES, 1)]
    for mine in (VALUES[:1], VALUES, VALUES[1:] * 3):  # one record, all of them, and copies
        more = codes_of([*((*values, 0) for values in mine), *others], unit, target)
        less = codes_of(others, unit, target)
        sizes = [(len(one[0]), len(other[0])) for one, other in zip(more, less, strict=True)]
        assert sum(one for one, _ in sizes) == sum(other for _, other in sizes) + 1
        for one, other in zip(more, less, strict=True):
            here, there = (
                sorted(zip(*(each.tolist() for each in part), strict=True)) for part in (one, other)
            )
            for record in there:
                here.remove(record)
            assert len(here) <= 1


def test_cells_that_noise_hides_are_one_and_every_cell_has_a_place() -> None:
    for noisy in product((-5, 0, 4, 40), repeat=3):
        places = join_cells(np.array(noisy), 1.0)
        hidden = [count < 5 for count in noisy]
        assert sorted(set(places.tolist())) == list(range(places.max() + 1))
        assert len({places[i] for i in range(3) if hidden[i]}) == (1 if sum(hidden) > 1 else sum(hidden))
