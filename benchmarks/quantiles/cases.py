"""Values as people have them, mostly with ties, and what is publicly known of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DECILES = tuple(i / 10 for i in range(1, 10))
SIZES = (20, 200, 5000)


@dataclass(frozen=True)
class Case:
    """How values are made up, and what is declared of them: bounds, and a granularity if one is known."""

    name: str
    bounds: tuple[float, float]
    make: Callable[[np.random.Generator, int], Floats]
    declared: Mapping[str, object] = field(default_factory=dict)

    def values(self, size: int, seed: int) -> Floats:
        """So many made-up values, in rising order and within the bounds."""
        made = np.asarray(self.make(np.random.default_rng([seed, size]), size), np.float64)
        return np.sort(np.clip(made, *self.bounds))


def _likert(rng: np.random.Generator, size: int) -> Floats:
    return rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], size, p=[0.08, 0.17, 0.3, 0.3, 0.15])


def _ages(rng: np.random.Generator, size: int) -> Floats:
    return np.floor(np.where(rng.random(size) < 0.8, rng.uniform(0, 65, size), rng.gamma(9, 8, size)))


def _hours(rng: np.random.Generator, size: int) -> Floats:
    return np.where(rng.random(size) < 0.45, 40.0, np.rint(rng.normal(38, 12, size)))


def _incomes(rng: np.random.Generator, size: int) -> Floats:
    return 1000 * np.rint(np.exp(rng.normal(10.4, 0.6, size)) / 1000)


STEP = {"granularity": 1}
CASES = (
    Case("answers 1 to 5", (1, 5), _likert, STEP),
    Case("ages", (0, 120), _ages, STEP),
    Case("hours, many 40", (0, 99), _hours, STEP),
    Case("hours, fine grid", (0, 99), _hours),
    Case("constant", (0, 100), lambda rng, size: np.full(size, 37.0), STEP),
    Case("constant, fine grid", (0, 100), lambda rng, size: np.full(size, 37.0)),
    Case("rounded incomes", (0, 1_000_000), _incomes),
    Case("rounded incomes, step declared", (0, 1_000_000), _incomes, {"granularity": 1000}),
    Case("uniform", (0, 1), lambda rng, size: rng.uniform(0, 1, size)),
    Case("normal", (-6, 6), lambda rng, size: rng.normal(0, 1, size)),
)
