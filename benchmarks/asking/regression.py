"""Regression beside noisy least squares and diffprivlib, by how far slopes are off at the same epsilon."""

from dataclasses import replace

import numpy as np

import sourdine as sd
from benchmarks.asking.cases import DIFFPRIVLIB, Case
from sourdine.tables.query import Query
from sourdine.tables.release import _carry_out
from sourdine.tables.statistics import Regression
from sourdine.testing import SeededBits
from tests.campaigns.release_intervals import Floats, RememberedEngine

_MOMENTS = 5  # n, Σx, Σy, Σx², Σxy, each of which a record moves by up to 1


def scaled(case: Case) -> tuple[Floats, Floats, float]:
    """Both columns on [0, 1], and what a slope there is in the units of the columns."""
    ends = [(case.columns[name]["lower"], case.columns[name]["upper"]) for name in (case.on, case.value)]
    x, y = (
        (case.table[name].to_numpy().astype(float) - low) / (high - low)
        for name, (low, high) in zip((case.on, case.value), ends, strict=True)
    )
    return x, y, (ends[1][1] - ends[1][0]) / (ends[0][1] - ends[0][0])


def true_slope(case: Case) -> float:
    """The slope of the line through all records."""
    x, y, unit = scaled(case)
    return float(np.polyfit(x, y, 1)[0]) * unit


def ours(case: Case, epsilon: float, runs: int) -> Floats:
    """Slopes of so many releases."""
    table = sd.Table(case.table, unit="person", columns=case.columns, size=case.table.num_rows)
    plan = table.plan(Query("line", [Regression(case.value, on=case.on)]), epsilon=epsilon, quality=False)
    source = replace(table.source, engine=RememberedEngine(table.source.engine))
    slopes = []
    for run in range(runs):
        (answer,) = _carry_out(plan, source, bits=SeededBits(run)).values
        places = [place for place, key in enumerate(answer.keys) if "slope" in key]
        slopes.append(answer.estimate.value[places[0]])
    return np.array(slopes)


def noisy_least_squares(case: Case, epsilon: float, runs: int) -> Floats:
    """Laplace noise on the five plain moments, whose L1 distance is 5, and the normal equations solved."""
    x, y, unit = scaled(case)
    exact = np.array([len(x), x.sum(), y.sum(), (x * x).sum(), (x * y).sum()])
    noisy = exact + np.random.default_rng(1).laplace(0, _MOMENTS / epsilon, (runs, _MOMENTS))
    n, sx, sy, sxx, sxy = noisy.T
    return np.asarray((n * sxy - sx * sy) / (n * sxx - sx * sx) * unit)


def diffprivlib(case: Case, epsilon: float, runs: int) -> tuple[Floats, str]:
    """Slopes of diffprivlib's LinearRegression, whose neighbours have a record replaced; and its version."""
    DIFFPRIVLIB.prepare()
    x, y, unit = scaled(case)
    question = {"x": x.tolist(), "y": y.tolist(), "epsilon": epsilon, "runs": runs}
    answer = DIFFPRIVLIB.ask_once("benchmarks.asking.with_diffprivlib", question)
    return np.array(answer["slopes"]) * unit, str(answer["versions"]["diffprivlib"])
