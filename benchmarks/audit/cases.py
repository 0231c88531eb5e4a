"""Scores of canaries of a Gaussian mechanism, the same in every environment."""

from typing import Any

import numpy as np

DELTA, ALARM = 1e-5, 0.05
CANARIES, SHIFTS = (2000, 20_000), (1.0, 2.0, 4.0)


def scores(seed: int, canaries: int, mu: float) -> tuple[Any, Any]:
    """Coins of canaries, and a score of each: N(mu, 1) if it is in, N(0, 1) otherwise."""
    random = np.random.default_rng(seed)
    included = random.random(canaries) < 0.5
    return random.normal(size=canaries) + mu * included, included
