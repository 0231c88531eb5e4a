"""What a collector keeps: how many reports came, and sums over them. Two collectors' counts add up."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter


@dataclass(frozen=True, eq=False)
class Counts:
    """Sums over reports made by one oracle, known by its fingerprint.

    >>> one = Counts("f" * 16, 2, np.array([1, 1]))
    >>> (one + one).sums.tolist()
    [2, 2]
    """

    fingerprint: str
    reports: int
    sums: NDArray[np.int64]

    def __add__(self, other: "Counts") -> "Counts":
        if self.fingerprint != other.fingerprint or self.sums.shape != other.sums.shape:
            raise InvalidParameter(
                "These counts are of reports made with other parameters. They measure different things and "
                "cannot be added. Keep them apart, or collect again under one specification."
            )
        return Counts(self.fingerprint, self.reports + other.reports, self.sums + other.sums)

    def to_json(self) -> dict[str, object]:
        """The counts for a file."""
        return {"counts": self.fingerprint, "reports": self.reports, "sums": self.sums.tolist()}

    @classmethod
    def from_json(cls, held: object) -> "Counts":
        """Counts read back; whatever is not counts is refused."""
        if isinstance(held, Mapping) and set(held) == {"counts", "reports", "sums"}:
            fingerprint, reports, sums = held["counts"], held["reports"], held["sums"]
            whole = isinstance(sums, list) and all(type(each) is int and abs(each) < 1 << 62 for each in sums)
            if isinstance(fingerprint, str) and type(reports) is int and 0 <= reports < 1 << 62 and whole:
                return cls(fingerprint, reports, np.array(sums, dtype=np.int64))
        raise InvalidParameter(
            "The counts cannot be read. They are cut short or were changed. Make them anew."
        )
