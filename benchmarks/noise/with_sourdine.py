"""Sourdine's exact samplers."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from benchmarks.noise.probe import Sampler, answer_for
from sourdine.mechanisms import Gaussian, Laplace


class Sourdine(Sampler):
    packages = ("sourdine", "numpy")

    def many(self, mechanism: str, size: Fraction, count: int) -> Callable[[], object]:
        noisy, values = self._mechanism(mechanism, size), np.zeros(count, dtype=np.int64)
        return lambda: noisy.sample(values)

    def one(self, mechanism: str, size: Fraction) -> Callable[[], float]:
        noisy, value = self._mechanism(mechanism, size), np.zeros(1, dtype=np.int64)
        return lambda: noisy.sample(value)[0]

    def _mechanism(self, name: str, size: Fraction) -> Laplace | Gaussian:
        return Laplace(scale=size) if name == "Laplace" else Gaussian(sigma=size)


if __name__ == "__main__":
    answer_for(Sourdine())
