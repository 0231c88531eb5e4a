"""What oracles share whose report is a number that favours some categories over others."""

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core.bits import SYSTEM, Bits
from sourdine.local.oracle import CodeReports
from sourdine.local.telling import Ints, TellingOracle

_CHUNK = 1 << 15  # values handled at once, so that the arrays stay in the cache


class CodedOracle(CodeReports, TellingOracle):
    """Oracles whose report is a number, e^epsilon times as likely from the categories that it favours."""

    @abstractmethod
    def encode(self, truth: Ints, bits: Bits) -> Ints:
        """The reports of categories, all of them within 0 .. k-1."""

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        truth = self.truth(values)
        flat, reports = truth.reshape(-1), np.empty(truth.size, np.int64)
        for start in range(0, truth.size, _CHUNK):
            reports[start : start + _CHUNK] = self.encode(flat[start : start + _CHUNK], bits)
        return reports.reshape(truth.shape)
