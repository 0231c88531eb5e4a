"""Which of many small p-values count as found."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Correction(StrEnum):
    """How a level is kept over many candidates."""

    BENJAMINI_HOCHBERG = "Benjamini-Hochberg"
    BONFERRONI = "Bonferroni"

    def detect(self, p_values: Floats, level: float) -> NDArray[np.bool_]:
        """Benjamini-Hochberg (1995) keeps the expected share of false ones among the found at the level;
        Bonferroni the chance of any false one.

        >>> Correction.BENJAMINI_HOCHBERG.detect(np.array([0.01, 0.04, 0.03, 0.9]), 0.05).tolist()
        [True, False, False, False]
        """
        count = len(p_values)
        if self is Correction.BONFERRONI:
            return np.asarray(p_values <= level / count)
        order = np.argsort(p_values, kind="stable")
        under = p_values[order] <= level * np.arange(1, count + 1) / count
        out = np.zeros(count, np.bool_)
        out[order[: int(np.max(np.flatnonzero(under) + 1, initial=0))]] = True
        return out
