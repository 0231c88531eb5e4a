"""A made-up register of people of whom nobody exists.

People are drawn from plausible distributions by inverting them at uniform numbers, so that the same seed
gives the same register everywhere. A made-up twin of a declared table is `frames.mock`.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sourdine.core import files as disk
from sourdine.core.lazy import ndtri
from sourdine.core.random.bits import Bits
from sourdine.testing import SeededBits

Floats = NDArray[np.float64]
COLUMNS = ("age", "sex", "region", "salary", "diagnosis")
REGIONS = ("north", "east", "south", "west", "centre")
SEXES = ("f", "m")
DIAGNOSES = ("none", "hypertension", "diabetes", "asthma", "depression")
ADULT, RETIRED, OLDEST = 18, 67, 99

_SHARES = (0.14, 0.19, 0.24, 0.16, 0.27)  # of the regions
_PAY = (0.90, 0.96, 1.02, 0.97, 1.15)  # of the regions, against the whole
_AGES = (18, 25, 35, 45, 55, 65, 75, 85, 100)  # and the share of people below each
_BELOW = (0.0, 0.105, 0.26, 0.42, 0.595, 0.765, 0.895, 0.975, 1.0)


@dataclass(frozen=True, kw_only=True)
class Register:
    """People, column by column; a salary of NaN means that there is none."""

    age: NDArray[np.int64]
    sex: NDArray[np.str_]
    region: NDArray[np.str_]
    salary: Floats
    diagnosis: NDArray[np.str_]

    def write(self, path: Path) -> None:
        """Keep the register as CSV; who has no salary has an empty cell."""
        pay = ["" if missing else f"{value:.0f}" for missing, value in zip(*self._pay(), strict=True)]
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(zip(self.age, self.sex, self.region, pay, self.diagnosis, strict=True))
        disk.write_whole(path, text.getvalue())

    def _pay(self) -> tuple[list[bool], list[float]]:
        return np.isnan(self.salary).tolist(), self.salary.tolist()


def draw_register(count: int = 50_000, seed: int = 1) -> Register:
    """So many made-up people.

    >>> people = draw_register(3)
    >>> people.age.tolist(), people.sex.tolist()
    ([50, 55, 67], ['m', 'f', 'm'])
    """
    bits = SeededBits(seed)
    age = np.floor(np.interp(_uniform(count, bits), _BELOW, _AGES)).astype(np.int64)
    women = _uniform(count, bits) < 0.49 + 0.12 * (age > 75)
    region = _choose(np.tile(_SHARES, (count, 1)), bits)
    works = (age < RETIRED) & (_uniform(count, bits) < 0.62 + 0.2 * ((age >= 25) & (age < 60)))
    seniority = 1 - 0.5 * np.exp(-(age - ADULT) / 9)
    middle = 39_000 * np.asarray(_PAY)[region] * seniority * np.where(women, 0.92, 1.0)
    salary = np.where(works, np.rint(middle * np.exp(0.42 * ndtri(_uniform(count, bits)))), np.nan)
    return Register(
        age=age,
        sex=np.asarray(SEXES)[1 - women.astype(int)],
        region=np.asarray(REGIONS)[region],
        salary=salary,
        diagnosis=np.asarray(DIAGNOSES)[_choose(_illness(age, women), bits)],
    )


def _illness(age: NDArray[np.int64], women: NDArray[np.bool_]) -> Floats:
    """How likely each diagnosis is at an age and for a sex; the first is none."""
    decades = (age - ADULT) / 10
    ill = np.stack(
        [
            0.02 + 0.055 * decades,
            0.01 + 0.016 * decades,
            np.where(women, 0.055, 0.04),
            np.where(women, 0.075, 0.045),
        ],
        axis=1,
    )
    return np.concatenate([1 - ill.sum(axis=1, keepdims=True), ill], axis=1)


def _choose(shares: Floats | Sequence[Sequence[float]], bits: Bits) -> NDArray[np.int64]:
    """One of several for each person, by the shares in its row."""
    upper = np.cumsum(np.asarray(shares, dtype=float), axis=1)[:, :-1]
    chosen: NDArray[np.int64] = np.sum(_uniform(len(upper), bits)[:, None] >= upper, axis=1)
    return chosen


def _uniform(count: int, bits: Bits) -> Floats:
    """Numbers strictly between 0 and 1."""
    return ((bits.words(count) >> np.uint64(12)).astype(float) + 0.5) * 2.0**-52
