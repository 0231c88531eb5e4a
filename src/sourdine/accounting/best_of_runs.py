"""What it costs to tell only the best of a random number of private runs."""

from fractions import Fraction

import numpy as np

from sourdine.accounting.rounding import with_margin
from sourdine.accounting.zcdp import above_zero, tight_epsilon
from sourdine.core import check
from sourdine.core.laws import Floats


def best_of_runs(orders: Floats, divergences: Floats, mean: float, delta: float) -> float:
    """An epsilon of the best of K runs, where one run has these Renyi divergences and only the best is told.

    K must be drawn at random and stay secret: after each run, stop with probability 1/mean. Settings may be
    drawn anew for each run, if the divergences are the largest of all settings. The best then has
    e(a) <= r(a) + 2 (1 - 1/b) r(b) + 2 log(mean)/b + log(mean)/(a - 1) at order a, for every order b
    (Papernot and Steinke 2022, theorem 2, at eta = 1 and gamma = 1/mean, where K is geometric).

    >>> orders = np.arange(2.0, 200)
    >>> round(best_of_runs(orders, orders / 200, mean=10, delta=1e-5), 3)
    0.849
    """
    average = float(check.between("best_of_runs", "mean", mean, Fraction(1), Fraction(2**40)))
    log_mean = float(np.log(average))
    others = 2 * float(np.min((1 - 1 / orders) * divergences + log_mean / orders))
    best = divergences + others + log_mean / (orders - 1)
    bounds = tight_epsilon(orders, best, above_zero("best_of_runs", delta))
    return with_margin(max(0.0, float(np.min(bounds))))
