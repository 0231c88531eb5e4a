"""diffprivlib's mechanisms, which take one value a call."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from diffprivlib import mechanisms

from benchmarks.noise.probe import Sampler, answer_for


class Diffprivlib(Sampler):
    packages = ("diffprivlib", "scikit-learn", "numpy")

    def many(self, mechanism: str, size: Fraction, count: int) -> Callable[[], object]:
        randomise = self._mechanism(mechanism, size).randomise

        def draw() -> None:
            for _ in range(count):
                randomise(0)

        return draw

    def one(self, mechanism: str, size: Fraction) -> Callable[[], float]:
        randomise = self._mechanism(mechanism, size).randomise
        return lambda: randomise(0)

    def _mechanism(self, name: str, size: Fraction) -> Any:
        if name == "GaussianDiscrete":
            gaussian = mechanisms.GaussianDiscrete(epsilon=1.0, delta=1e-5, sensitivity=1)
            gaussian._scale = float(size)  # its sigma is otherwise found from epsilon and delta
            return gaussian
        return getattr(mechanisms, name)(epsilon=float(1 / size), sensitivity=1)


if __name__ == "__main__":
    answer_for(Diffprivlib())
