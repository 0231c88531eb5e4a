"""How near each method comes on values with ties, and whether forecasts hold: 200 releases a case.

`auto` sees what is declared: bounds, a granularity if the case has one, the number of values, the levels and
the neighbours. Beside it stand each method by itself, what `auto` took in version 0.1, what tables took there
(the tree), and an answer that looks at no value at all. A release is wrong if one of its answers is no
quantile. Its forecast fails if an answer is off by more ranks than were told for 95 % confidence.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.finding import verdict
from benchmarks.quantiles.cases import CASES, DECILES, SIZES, Case, Floats
from sourdine.core.distance import Distance, Neighbours
from sourdine.frames.rank_counts import SeparateRanks, SortedPlaces
from sourdine.tables.intervals import like_noises, noise
from sourdine.tables.quantiles.api import AUTO, METHODS, TREE, Allowance, Grid, MethodChoice, chosen
from sourdine.tables.quantiles.method import QuantileMethod
from sourdine.tables.quantiles.tree import BinTree, read_quantiles
from sourdine.testing import SeededBits

RELEASES, SAMPLES = 200, 50  # releases a case, of so many samples of made-up values
CONFIDENCE = 0.95
NAMES = (AUTO, *(name for name in METHODS if name != "naive"), TREE)
NEAREST = 1.2  # times the best method that `auto` may be off by
SAME = 1e-4  # of the range: errors below are as good as none


@dataclass(frozen=True)
class Ask:
    """Quantiles that are asked of values of a case."""

    case: Case
    size: int
    levels: tuple[float, ...]
    epsilon: float
    neighbours: Neighbours

    @property
    def grid(self) -> Grid:
        """The places of answers."""
        step = self.case.declared.get("granularity")
        return Grid.declared(self.case.bounds, step)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Measured:
    """Of many releases: the root mean square error over the range, the share wrong, the forecasts failed.

    `plain` are the forecasts that would fail were they about the answers alone, and not about places near.
    """

    rmse: float
    wrong: float
    failed: float
    plain: float
    method: str


def asks(*, sizes: Sequence[int] = SIZES, cases: Sequence[Case] = CASES) -> Iterator[Ask]:
    """Every case at every size, one level and nine, for both relations; some at a tenth of epsilon."""
    for epsilon, many in ((1.0, sizes), (0.1, sizes[-1:])):
        for neighbours in (Neighbours.REPLACE, Neighbours.ADD_REMOVE):
            for case in cases:
                for size in many:
                    yield from (Ask(case, size, levels, epsilon, neighbours) for levels in ((0.5,), DECILES))


def measure(ask: Ask, method: str, releases: int = RELEASES) -> Measured:
    """Errors of one method."""
    grid, bits = ask.grid, SeededBits(7)
    found, choice = _taken(ask, method)
    square, wrong, failed, plain = 0.0, 0, 0, 0
    for sample in range(SAMPLES):
        held = np.sort(grid.place(ask.case.values(ask.size, sample)))
        places = _drawn(found, ask, SortedPlaces(held), releases // SAMPLES, bits)
        square += float(np.sum((places - truth(ask, held)) ** 2)) * grid.step**2
        wrong += int((off(ask, held, places) > 0).any(axis=1).sum())
        failed += int(_failed(found, ask, held, places, found.near).sum())
        plain += int(_failed(found, ask, held, places, 0).sum())
    wide, many = ask.case.bounds[1] - ask.case.bounds[0], releases * len(ask.levels)
    return Measured(
        math.sqrt(square / many) / wide, wrong / releases, failed / releases, plain / releases, choice.name
    )


def measure_all(ask: Ask, releases: int = RELEASES) -> dict[str, Measured]:
    """Errors of every method; what `auto` takes is one of them, or a tree that nobody names."""
    found: dict[str, Measured] = {}
    held = {name: _taken(ask, name)[0] for name in (*NAMES[1:], AUTO)}
    for name, mechanism in held.items():
        same = next((other for other in found if held[other] == mechanism), None)
        found[name] = (
            measure(ask, name, releases)
            if same is None
            else replace(found[same], method=_taken(ask, name)[1].name)
        )
    return found


def _taken(ask: Ask, method: str) -> tuple[QuantileMethod | BinTree, MethodChoice]:
    """The mechanism of a method, or a tree, by what is declared."""
    return chosen(
        method,
        levels=ask.levels,
        places=ask.grid.places,
        allowance=Allowance(budget=Fraction(str(ask.epsilon))),
        neighbours=ask.neighbours,
        size=ask.size,
    )


def guessed(ask: Ask) -> float:
    """The error of answers that look at no value: those of values spread evenly between the bounds."""
    grid = ask.grid
    answers = np.asarray(ask.levels) * (grid.places - 1)
    square = 0.0
    for sample in range(SAMPLES):
        held = np.sort(grid.place(ask.case.values(ask.size, sample)))
        square += float(np.mean((answers - truth(ask, held)) ** 2)) * grid.step**2
    return math.sqrt(square / SAMPLES) / (ask.case.bounds[1] - ask.case.bounds[0])


def truth(ask: Ask, held: Floats) -> Floats:
    """The places of rank ceil(q n)."""
    ranks = [max(math.ceil(Fraction(str(level)) * held.size), 1) - 1 for level in ask.levels]
    return held[ranks]


def off(ask: Ask, held: Floats, places: Floats, near: int = 0) -> Floats:
    """How many values lie between each answer, or some place within `near` steps, and a quantile."""
    aims = np.array([float(Fraction(str(level)) * held.size) for level in ask.levels])
    below = np.searchsorted(held, places - near, side="left")
    upto = np.searchsorted(held, places + near, side="right")
    return np.asarray(np.maximum(np.maximum(below - aims, aims - upto), 0.0))


def _noise(tree: BinTree, ask: Ask) -> Any:
    """The noise on the counts of a tree, as `sourdine.quantiles` pays for it."""
    moved = tree.height * (2 if ask.neighbours is Neighbours.REPLACE else 1)
    distance = Distance.l1(moved, coordinates=moved, neighbours=ask.neighbours)
    return noise(distance, Fraction(str(ask.epsilon)), squared=False)


def _drawn(
    found: QuantileMethod | BinTree, ask: Ask, values: SortedPlaces, count: int, bits: SeededBits
) -> Floats:
    """So many answers for the same values."""
    if isinstance(found, QuantileMethod):
        return np.sort(found.draw(values, count, bits), axis=1)
    read = read_quantiles(
        SeparateRanks((), (values,) * count),
        found,
        mechanism=_noise(found, ask),
        levels=ask.levels,
        confidence=CONFIDENCE,
        bits=bits,
    )
    return read.value.reshape(count, -1)


def _failed(found: QuantileMethod | BinTree, ask: Ask, held: Floats, places: Floats, near: int) -> Any:
    """Which releases have an answer beyond the forecast; where there is none, none."""
    if isinstance(found, QuantileMethod):
        told = found.ranks_off(CONFIDENCE)
        far = np.inf if told is None else told
        return (off(ask, held, places, near) > far).any(axis=1)
    mechanism = _noise(found, ask)
    spread = np.array([found.spread(level) for level in ask.levels])
    told = like_noises(mechanism, spread, CONFIDENCE) * np.sqrt(spread)
    # of counts at the edges of its bin, each level on its own: the median alone
    middle = len(ask.levels) // 2
    return (off(ask, held, places, near) > told)[:, middle]


def before(ask: Ask) -> str:
    """What `auto` took in version 0.1, by what it still is called."""
    return "smooth" if len(ask.levels) == 1 else "joint"


def ratio(mine: Measured, others: Iterable[Measured]) -> float:
    """How many times the error of the best method, where there is one to speak of."""
    best = min(each.rmse for each in others)
    return 1.0 if mine.rmse <= SAME else mine.rmse / max(best, SAME)


def run(releases: int = RELEASES, asked: Iterable[Ask] | None = None) -> list[dict[str, Any]]:
    """Measure all cases."""
    rows: list[dict[str, Any]] = []
    for ask in asks() if asked is None else asked:
        found = measure_all(ask, releases)
        rows.append(
            {
                "case": ask.case.name,
                "size": ask.size,
                "levels": len(ask.levels),
                "epsilon": ask.epsilon,
                "neighbours": str(ask.neighbours),
                "took": found[AUTO].method,
                "before": before(ask),
                "ratio": ratio(found[AUTO], found.values()),
                "ratio before": ratio(found[before(ask)], found.values()),
                "ratio of the tree": ratio(found[TREE], found.values()),
                "guess": guessed(ask),
                "methods": {name: vars(each) for name, each in found.items()},
            }
        )
    return rows


def show(rows: Sequence[dict[str, Any]], releases: int, console: Console) -> None:
    """For each epsilon and relation the errors, then what became of them; then the worst of all."""
    for epsilon, neighbours in dict.fromkeys((row["epsilon"], row["neighbours"]) for row in rows):
        some = [row for row in rows if (row["epsilon"], row["neighbours"]) == (epsilon, neighbours)]
        under = f"epsilon {epsilon:g}, {neighbours} neighbours, {releases} releases"
        errors = _table(f"Errors in % of the range: {under}", [*NAMES, "no look"])
        change = _table(
            f"Before and now: {under}",
            ["error 0.1", "now", "of best 0.1", "now", "tree", "wrong 0.1", "now", "failed 0.1", "now"],
        )
        for row in some:
            auto, old = row["methods"][AUTO], row["methods"][row["before"]]
            asked = "median" if row["levels"] == 1 else "deciles"
            head = (row["case"], f"{row['size']:,}", asked)
            found = [row["methods"][name]["rmse"] for name in NAMES]
            errors.add_row(*head, *(f"{100 * error:.3g}" for error in (*found, row["guess"])))
            change.add_row(
                *head,
                *(f"{100 * each['rmse']:.3g}" for each in (old, auto)),
                *(f"{row[name]:.2f}" for name in ("ratio before", "ratio", "ratio of the tree")),
                f"{old['wrong']:.0%}",
                f"{auto['wrong']:.0%}",
                f"{old['plain']:.0%}",
                f"{auto['failed']:.0%}",
                row["took"],
            )
        console.print(errors)
        console.print(change)
    _conclude(rows, console)


def _table(title: str, names: Sequence[str]) -> Table:
    """A table of numbers by case; what auto takes stands last, where it is told."""
    shown = Table(title=title)
    for name in ("values", "n", "asked"):
        shown.add_column(name, no_wrap=True)
    for name in names:
        shown.add_column(name, justify="right")
    if "now" in names:
        shown.add_column("takes")
    return shown


def _conclude(rows: Sequence[dict[str, Any]], console: Console) -> None:
    """The worst ratio, then whether forecasts hold."""
    over = [row for row in rows if row["ratio"] > NEAREST]
    worst, old = (max(rows, key=lambda row: row[name]) for name in ("ratio", "ratio before"))
    which = f"{worst['case']}, {worst['size']:,} values, {worst['levels']} levels, {worst['neighbours']}"
    verdict(
        console,
        not over,
        f"auto is at most {NEAREST:g} times as far off as the best method in {len(rows) - len(over)} of "
        f"{len(rows)} cases (all); {worst['ratio']:.2f} times at worst ({which}), where 0.1 was "
        f"{old['ratio before']:.3g} times ({old['case']}, {old['size']:,} values)",
    )
    failed, name = max((each["failed"], name) for row in rows for name, each in row["methods"].items())
    verdict(
        console,
        failed <= 2 * (1 - CONFIDENCE),
        f"forecasts for {CONFIDENCE:.0%} confidence fail in {failed:.1%} of a case at most ({name})",
    )
