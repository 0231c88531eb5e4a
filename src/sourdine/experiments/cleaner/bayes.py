"""Gaussian naive Bayes, and how good a guess is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Truth = NDArray[np.bool_]
_SMOOTHING = 1e-9  # of the largest variance, as scikit-learn has it


@dataclass(frozen=True, eq=False)
class Classes:
    """For the healthy and the ill: how many they are, and mean and variance of each feature."""

    shares: Floats
    means: Floats
    variances: Floats

    @classmethod
    def fitted(cls, features: Floats, ill: Truth) -> "Classes":
        """What records say of the two classes; one that is empty has no share."""
        parts = [features[ill == k] if (ill == k).any() else features for k in (False, True)]
        least = _SMOOTHING * features.var(axis=0).max()
        return cls(
            np.array([(ill == k).mean() for k in (False, True)]),
            np.array([part.mean(axis=0) for part in parts]),
            np.array([part.var(axis=0) + least for part in parts]),
        )

    def guess(self, features: Floats) -> Truth:
        """Who is ill, by what is likelier."""
        away = (features[:, None, :] - self.means) ** 2 / self.variances + np.log(self.variances)
        with np.errstate(divide="ignore"):
            score = np.log(self.shares) - away.sum(axis=2) / 2
        guess: Truth = score[:, 1] > score[:, 0]
        return guess


def quality(truth: Truth, guess: Truth) -> tuple[float, float]:
    """Accuracy, and F1 for the ill."""
    both = float((truth & guess).sum())
    either = float(truth.sum() + guess.sum())
    return float((truth == guess).mean()), 2 * both / either if either else 0.0
