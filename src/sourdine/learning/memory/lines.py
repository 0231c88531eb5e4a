"""What measured memory says: lines over the batch, jumps beside them, and the source's four formulas."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sourdine.learning.memory.model import FIRST, MemoryLine, Stage
from sourdine.learning.memory.table import MeasuredMemory, MemoryCase

Quantity = Callable[[MeasuredMemory], int | None]
LEFT, BACKWARD = "tensors after the step", "tensors at most until the gradient"
PEAK, RESIDENT = "tensors at most", "the process at most"
QUANTITIES: dict[str, Quantity] = {
    LEFT: lambda row: row.live[Stage.STEP],
    BACKWARD: lambda row: row.most[Stage.GRADIENT],
    PEAK: lambda row: row.peak,
    RESIDENT: lambda row: row.middle,
}
_LEAST_POINTS = 3


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A line through what was measured at several batches, everything else being equal."""

    like: MemoryCase
    quantity: str
    line: MemoryLine
    points: tuple[tuple[int, int], ...]

    @property
    def residuals(self) -> tuple[tuple[int, float], ...]:
        """Batches, and how far above the line their bytes are."""
        return tuple((batch, much - self.line.fixed - self.line.each * batch) for batch, much in self.points)

    @property
    def worst(self) -> float:
        """The largest distance from the line, as a share of what was measured."""
        return max(abs(off) / much for (_, off), (_, much) in zip(self.residuals, self.points, strict=True))


@dataclass(frozen=True, kw_only=True)
class Jump:
    """What is beyond the slope from a power of two, or from the batch below it, to the next batch."""

    like: MemoryCase
    quantity: str
    before: int
    after: int
    extra: int
    share: float  # of what was measured before


def fits(rows: Iterable[MeasuredMemory]) -> list[Fit]:
    """A line by least squares for each quantity of all rows that differ in the batch only.

    Two batches make a line as well, and nothing is left to judge it by.
    """
    results: list[Fit] = []
    for key, group in _alike(rows).items():
        for name, quantity in QUANTITIES.items():
            pairs = ((row.case.batch, quantity(row)) for row in group)
            points = tuple((batch, much) for batch, much in pairs if much is not None)
            if len(points) > 1:
                results.append(Fit(like=key, quantity=name, line=_through(points), points=points))
    return results


def jumps(fitted: Iterable[Fit]) -> list[Jump]:
    """Every step to, and just beyond, a power of two of which both ends were measured.

    The slope is that of the batches beside this step, so that a jump does not hide in its own line.
    """
    results: list[Jump] = []
    for fit in fitted:
        known = dict(fit.points)
        for batch in known:
            power = batch & (batch - 1) == 0 and batch > 1
            for before, after in ((batch - 1, batch), (batch, batch + 1)) if power else ():
                others = [point for point in fit.points if point[0] not in (before, after)]
                if before not in known or after not in known or len(others) < _LEAST_POINTS - 1:
                    continue
                slope = _through(others).each
                extra = round(known[after] - known[before] - slope)  # whole bytes
                share = extra / known[before]
                results.append(
                    Jump(
                        like=fit.like,
                        quantity=fit.quantity,
                        before=before,
                        after=after,
                        extra=extra,
                        share=share,
                    )
                )
    return results


@dataclass(frozen=True)
class Formula:
    """What the source says that a stage adds, in bytes, without its corrections for single sizes."""

    words: str
    bytes: Callable[[MemoryCase], float]


def source_formula(stage: Stage, private: bool) -> Formula:
    """The source's bound on what a stage adds, for its network on a graphics card.

    >>> case = MemoryCase(hidden=512, batch=16, reduce=1, private=True)
    >>> round(source_formula(Stage.STEP, True).bytes(case) / 1e6)
    1000
    """
    return _FORMULAS[stage, private]


def source_total(case: MemoryCase) -> float:
    """What the source's formulas come to after a step."""
    return sum(source_formula(stage, case.private).bytes(case) for stage in FIRST)


_MODEL = Formula("101,387 HU + 60,750,000", lambda case: 101_387 * case.hidden + 60_750_000)
_IMAGES = Formula(
    "602,112 BS/F² (up to twice as much)", lambda case: 588 * 1024 * case.batch / case.reduce**2
)
_FORMULAS = {
    (Stage.MODEL, False): _MODEL,
    (Stage.MODEL, True): _MODEL,
    (Stage.BATCH, False): _IMAGES,
    (Stage.BATCH, True): _IMAGES,
    (Stage.GRADIENT, False): Formula(
        "101,000 HU + 1,339,400", lambda case: 101_000 * case.hidden + 1_339_400
    ),
    (Stage.GRADIENT, True): Formula("101,000 HU + 7,489,400", lambda case: 101_000 * case.hidden + 7_489_400),
    (Stage.STEP, False): Formula("224,105 HU", lambda case: 224_105 * case.hidden),
    (Stage.STEP, True): Formula("108,500 (2 + BS) HU", lambda case: 108_500 * (2 + case.batch) * case.hidden),
}


def added(row: MeasuredMemory, stage: Stage) -> int:
    """What a stage added to what was alive before it."""
    place = FIRST.index(stage)
    return row.live[stage] - (row.live[FIRST[place - 1]] if place else 0)


@dataclass(frozen=True, kw_only=True)
class Ours:
    """What a stage adds in all rows with one way of training: c + h HU + b BS/F^2 + s BS + p BS HU, fitted.

    Terms that the rows cannot tell apart, or do not need, are 0.
    """

    terms: dict[str, float]
    worst: float  # of all rows, in bytes

    @property
    def words(self) -> str:
        """The formula, terms below one byte left out."""
        terms = [f"{value:,.0f} {name}".strip() for name, value in self.terms.items() if abs(value) >= 0.5]
        return " + ".join(terms).replace("+ -", "- ") or "0"


_TERMS: dict[str, Callable[[MemoryCase], float]] = {
    "": lambda case: 1.0,
    "HU": lambda case: float(case.hidden),
    "BS/F²": lambda case: case.batch / case.reduce**2,
    "BS": lambda case: float(case.batch),
    "BS HU": lambda case: float(case.batch * case.hidden),
}


def our_formula(rows: Sequence[MeasuredMemory], stage: Stage, private: bool) -> Ours:
    """The formula of a stage with the fewest terms that leaves no more than a hundredth, chosen greedily."""
    chosen = [row for row in rows if row.case.private is private]
    much = np.array([added(row, stage) for row in chosen], dtype=float)
    columns = {name: np.array([term(row.case) for row in chosen]) for name, term in _TERMS.items()}
    taken: list[str] = []
    weights = np.zeros(0)
    off = np.abs(much)
    enough = max(1.0, 0.01 * float(np.abs(much).max(initial=0.0)))
    while off.max(initial=0.0) > enough and len(taken) < len(columns):
        tries = {}
        for name in columns.keys() - set(taken):
            matrix = np.stack([columns[each] for each in (*taken, name)], axis=1)
            coefficients = np.linalg.lstsq(matrix, much, rcond=None)[0]
            tries[name] = (float(np.abs(matrix @ coefficients - much).max()), coefficients)
        best = min(sorted(tries), key=lambda name: tries[name][0])
        if tries[best][0] >= off.max():
            break
        taken.append(best)
        weights = tries[best][1]
        off = np.abs(np.stack([columns[each] for each in taken], axis=1) @ weights - much)
    terms = {name: float(weights[taken.index(name)]) for name in _TERMS if name in taken}
    return Ours(terms=terms, worst=float(off.max(initial=0.0)))


def _through(points: Sequence[tuple[int, int]]) -> MemoryLine:
    """The line by least squares."""
    across, up = np.array(points, dtype=float).T
    away = across - across.mean()
    each = float(away @ up) / float(away @ away)
    return MemoryLine(float(up.mean()) - each * float(across.mean()), each)


def _alike(rows: Iterable[MeasuredMemory]) -> dict[MemoryCase, list[MeasuredMemory]]:
    """Rows that differ in the batch only, by one of their cases, in the order of their batches."""
    groups: defaultdict[tuple[object, ...], list[MeasuredMemory]] = defaultdict(list)
    for row in rows:
        case = row.case
        key = (case.hidden, case.reduce, case.private, case.side, case.depth, case.classes, case.optimizer)
        groups[key].append(row)
    ordered = (sorted(group, key=lambda row: row.case.batch) for group in groups.values())
    return {group[0].case: group for group in ordered}
