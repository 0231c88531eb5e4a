"""OpenDP's exact integer samplers: whole vectors of 64-bit integers in one call."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import opendp.prelude as dp

from benchmarks.noise.probe import Sampler, answer_for

dp.enable_features("contrib")


class OpenDP(Sampler):
    packages = ("opendp", "numpy")

    def many(self, mechanism: str, size: Fraction, count: int) -> Callable[[], object]:
        domain = dp.vector_domain(dp.atom_domain(T="i64"))
        metric = dp.l1_distance(T="i64") if mechanism == "make_laplace" else dp.l2_distance(T="f64")
        measurement = self._measurement(mechanism, domain, metric, size)
        values = np.zeros(count, dtype=np.int64)
        return lambda: measurement(values)

    def one(self, mechanism: str, size: Fraction) -> Callable[[], float]:
        metric = dp.absolute_distance(T="i64" if mechanism == "make_laplace" else "f64")
        measurement = self._measurement(mechanism, dp.atom_domain(T="i64"), metric, size)
        return lambda: measurement(0)

    def _measurement(self, name: str, domain: Any, metric: Any, size: Fraction) -> Any:
        return getattr(dp.m, name)(domain, metric, scale=float(size))


if __name__ == "__main__":
    answer_for(OpenDP())
