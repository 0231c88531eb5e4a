"""numpy's float samplers: neither exact nor private, the limit of what numpy arrays allow."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from benchmarks.noise.probe import Sampler, answer_for


class Numpy(Sampler):
    packages = ("numpy",)

    def many(self, mechanism: str, size: Fraction, count: int) -> Callable[[], object]:
        generator, size_ = np.random.default_rng(), float(size)
        draw = {"laplace": generator.laplace, "normal": generator.normal}[mechanism]
        return lambda: draw(0.0, size_, count)

    def one(self, mechanism: str, size: Fraction) -> Callable[[], float]:
        generator, size_ = np.random.default_rng(), float(size)
        draw = {"laplace": generator.laplace, "normal": generator.normal}[mechanism]
        return lambda: draw(0.0, size_)


if __name__ == "__main__":
    answer_for(Numpy())
