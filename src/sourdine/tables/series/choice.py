"""Which correlation matrix has the least error for what is asked: by declarations alone, with the reason."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from sourdine.mechanisms.correlated import MOST_DENSE
from sourdine.mechanisms.correlation import (
    CorrelationMatrix,
    LevelMatrix,
    Participation,
    PowerMatrix,
    TreeMatrix,
    least_error,
)
from sourdine.tables.series.declaration import SeriesView

_EXPONENTS = (Fraction(1, 2), Fraction(3, 8), Fraction(1, 4))
_FANS = (2, 3, 4, 6, 8, 11, 15, 20, 28)
_LEVEL, _DENSE = 1024, 400  # periods up to which such matrices are tried
_RESOLUTION, _LENGTH = 1024, 2048
# how much each period counts by itself beside what is asked: a few questions alone have no optimum
_FAINT = {"dense": 0.03, "dense, smoothed": 0.1}
INDEPENDENT = Fraction(0)
_RISES = 20


@dataclass(frozen=True, kw_only=True)
class MatrixChoice:
    """The matrix that was chosen, and the error of each view by it, by independent periods and paid anew.

    Errors are root mean squares over the periods, in the deviation of one release of one period that had the
    whole budget.
    """

    matrix: CorrelationMatrix
    name: str
    errors: tuple[float, ...]
    independent: tuple[float, ...]
    anew: tuple[float, ...]
    others: tuple[tuple[str, tuple[float, ...]], ...]

    def words(self, views: Sequence[SeriesView]) -> str:
        """Why it was chosen."""
        words = [
            f"{view.label} {error:.2f} (independent periods {alone:.2f}, paid anew {anew:.2f})"
            for view, error, alone, anew in zip(views, self.errors, self.independent, self.anew, strict=True)
        ]
        return (
            f"{self.name}: least error for what is asked, in deviations of one release of one period: "
            f"{'; '.join(words)}.{self._warning(views)}"
        )

    def _warning(self, views: Sequence[SeriesView]) -> str:
        """What would be better by itself: it shares the noise with the rest, or a difference takes little."""
        alike = 1.005
        rows = list(zip(views, self.errors, self.independent, self.anew, strict=True))
        if all(error <= alike * min(alone, anew) for _, error, alone, anew in rows):
            return ""
        worse = [
            f"{view.label} ({'independent periods' if alone <= anew else 'paid anew'})"
            for view, error, alone, anew in rows
            if error > alike * min(alone, anew)
        ]
        return (
            f" Asked for alone, with the whole budget, these would be more accurate otherwise: "
            f"{', '.join(worse)}. Leave out of 'publish' what you can do without."
        )


def view_errors(matrix: CorrelationMatrix, views: Sequence[SeriesView], length: float) -> tuple[float, ...]:
    """The error of each view, over the periods at which it is told; 0 where it never is."""
    return tuple(
        math.sqrt(np.mean([spread(matrix, view, t) ** 2 for t in view.periods(matrix.periods)] or [0.0]))
        * length
        for view in views
    )


def spread(matrix: CorrelationMatrix, view: SeriesView, period: int) -> float:
    """The deviation of a view for noise of deviation 1."""
    spans = view.spans(period)
    if isinstance(matrix, TreeMatrix) and (view.against or 0) >= (view.window or 0) * (len(spans) - 1):
        return math.sqrt(sum(matrix.variance(*span) for span, _ in spans))  # spans apart share no node
    return float(np.linalg.norm(view_coefficients(matrix, view, period)))


def view_coefficients(matrix: CorrelationMatrix, view: SeriesView, period: int) -> NDArray[np.float64]:
    """The weights of all rows up to a period that a view is read off by."""
    weights = np.zeros(matrix.rows_until(period))
    for (first, last), sign in view.spans(period):
        part = matrix.coefficients(first, last)
        weights[: part.size] += sign * part
    return weights


@cache
def choose_matrix(
    periods: int,
    views: tuple[SeriesView, ...],
    participation: Participation,
    *,
    squared: bool,
    extensible: bool = False,
) -> MatrixChoice:
    """The matrix with the least error, each view counting by how far it is from the best of them.

    With `extensible` only those whose first rows stay when periods are added.
    """
    matrices = _candidates(periods, squared, extensible)
    errors = {
        name: view_errors(matrix, views, _length(matrix, participation, squared))
        for name, matrix in matrices.items()
    }
    best = [min(each[i] for each in errors.values()) or 1.0 for i in range(len(views))]
    mixed = len(views) > 1 or any(view.window not in (None, 1) for view in views)
    if squared and mixed and not extensible and 1 < periods <= min(_DENSE, MOST_DENSE):
        for name, faint in _FAINT.items():
            dense = least_error(_questions(periods, views, best, faint), _LENGTH)
            matrices[name] = dense
            errors[name] = view_errors(dense, views, _length(dense, participation, squared))
    scores = {
        name: float(np.mean([(error / least) ** 2 for error, least in zip(each, best, strict=True)]))
        for name, each in errors.items()
    }
    name = min(scores, key=scores.__getitem__)
    alone = errors["independent periods"]
    return MatrixChoice(
        matrix=matrices[name],
        name=name,
        errors=errors[name],
        independent=alone,
        anew=tuple(_anew(view, periods, participation, squared) for view in views),
        others=tuple((other, each) for other, each in errors.items() if other != name),
    )


def _candidates(periods: int, squared: bool, extensible: bool) -> dict[str, CorrelationMatrix]:
    matrices: dict[str, CorrelationMatrix] = {"independent periods": PowerMatrix(periods, INDEPENDENT, 1)}
    if not squared:  # for Gaussian noise a power is always better
        trees = {f"tree of fan {fan}": TreeMatrix(periods, fan) for fan in _FANS if fan <= periods}
        return {**matrices, **trees}
    for exponent in _EXPONENTS:
        matrices[f"power {exponent}"] = PowerMatrix(periods, exponent, _RESOLUTION)
        if periods <= _LEVEL and not extensible:
            matrices[f"level power {exponent}"] = LevelMatrix(periods, exponent, _LENGTH)
    return matrices


def _length(matrix: CorrelationMatrix, participation: Participation, squared: bool) -> float:
    if squared:
        return math.sqrt(matrix.squared_length(participation))
    return float(matrix.length(participation))


def _questions(
    periods: int, views: Sequence[SeriesView], best: Sequence[float], faint: float
) -> NDArray[np.float64]:
    """Every question of every view as a row, weighed so that each view counts alike; and periods, faintly."""
    rows = []
    for view, least in zip(views, best, strict=True):
        steps = list(view.periods(periods))
        for step in steps:
            row = np.zeros(periods)
            for (first, last), sign in view.spans(step):
                row[first - 1 : last] += sign
            rows.append(row / (least * math.sqrt(len(steps))))
    return np.array([*rows, *(faint * np.eye(periods))])


def _anew(view: SeriesView, periods: int, participation: Participation, squared: bool) -> float:
    """The error where each release of a view is paid for by itself, out of the same budget.

    That is how far a unit moves all of them together, at the worst of the patterns that are tried.
    """
    patterns = [
        _stride(periods, start, participation.separation, participation.times)
        for start in {0, min(view.first, periods) - 1, periods // 2}
    ]
    if view.against is not None:  # what comes evenly cancels; whoever comes and goes moves more
        days = np.arange(periods)
        waves = [
            np.where((days + late) // width % 2, -1.0, 1.0)
            for width in {view.window or 1, view.against, view.first}
            for late in {0, width // 2, view.first}
        ]
        patterns += [_best_pattern(wave, participation) for wave in waves]
        patterns += [_risen(view, pattern, participation, squared) for pattern in patterns]
    return max(_moved(view, pattern, squared) for pattern in patterns)


def _stride(periods: int, start: int, step: int, often: int) -> NDArray[np.float64]:
    """The periods of a unit that comes so often, evenly."""
    unit = np.zeros(periods)
    unit[start : start + often * step : step] = 1
    return unit


def _answers(view: SeriesView, unit: NDArray[np.float64]) -> NDArray[np.float64]:
    """What a view tells of a series, at each period."""
    sums = np.concatenate([[0.0], np.cumsum(unit)])
    steps = np.arange(view.first, unit.size + 1)
    answers = np.zeros(steps.size)
    for (first, last), sign in view.spans(0):
        begin = np.ones_like(steps) if view.window is None else steps + first
        answers += sign * (sums[steps + last] - sums[begin - 1])
    return answers


def _moved(view: SeriesView, unit: NDArray[np.float64], squared: bool) -> float:
    return (
        float(np.linalg.norm(_answers(view, unit), 2 if squared else 1)) if unit.size >= view.first else 0.0
    )


def _risen(
    view: SeriesView, unit: NDArray[np.float64], participation: Participation, squared: bool
) -> NDArray[np.float64]:
    """A pattern that moves a view no less: the best for the slope of the length, as long as that rises.

    The length is convex, so that a pattern that is better for its slope is better for itself.
    """
    for _ in range(_RISES):
        answers = _answers(view, unit)
        pull = answers if squared else np.sign(answers)
        ends = np.concatenate([np.zeros(view.first - 1), pull])  # at each period, of what is told there
        later = np.concatenate([np.cumsum(ends[::-1])[::-1], np.zeros(view.first)])
        slope = np.zeros(unit.size)
        for (first, last), sign in view.spans(0):  # a period counts in what is told from -last to -first on
            at = np.arange(unit.size)
            slope += sign * (later[at - last] - later[np.minimum(at - first + 1, later.size - 1)])
        better = _best_pattern(slope, participation)
        if _moved(view, better, squared) <= _moved(view, unit, squared):
            break
        unit = better
    return unit


def _best_pattern(gains: NDArray[np.float64], participation: Participation) -> NDArray[np.float64]:
    """The periods that a unit may come in with the greatest sum of gains."""
    apart, periods = participation.separation, gains.size
    often = min(participation.times, -(-periods // apart))
    best = np.zeros((periods + apart, often + 1))  # from a period on, with so many visits left
    for t in range(periods - 1, -1, -1):
        best[t] = best[t + 1]
        best[t, 1:] = np.maximum(best[t, 1:], gains[t] + best[t + apart, :-1])
    pattern, t, left = np.zeros(periods), 0, often
    while t < periods and left:
        if best[t, left] > best[t + 1, left]:
            pattern[t], t, left = 1, t + apart, left - 1
        else:
            t += 1
    return pattern
