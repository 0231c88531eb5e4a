"""The Pima table: 768 women, eight measurements, and whether diabetes was found within five years."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.lazy import ndtri
from sourdine.core.random.bits import Bits
from sourdine.testing import SeededBits
from sourdine_reproduction.data import pima_in, read_numbers

Floats = NDArray[np.float64]
Truth = NDArray[np.bool_]

FILE = Path("pima") / "pima-indians-diabetes.csv"
SIZE, ILL = 768, 268
TEST = 154  # a fifth, rounded up
OUTCOME = "Outcome"

# what is declared: bounds and typical values that textbooks give, none of them from the table. A zero in
# these columns means that nothing was measured
DECLARED: dict[str, dict[str, Any]] = {
    "Pregnancies": {"type": "integer", "lower": 0, "upper": 20, "missing": 3},
    "Glucose": {"type": "integer", "lower": 40, "upper": 250, "missing": 110},
    "BloodPressure": {"type": "integer", "lower": 30, "upper": 140, "missing": 75},
    "SkinThickness": {"type": "integer", "lower": 5, "upper": 70, "missing": 27},
    "Insulin": {"type": "integer", "lower": 10, "upper": 600, "missing": 120},
    "BMI": {"type": "real", "lower": 15.0, "upper": 70.0, "granularity": 0.1, "missing": 30.0},
    "DiabetesPedigreeFunction": {
        "type": "real",
        "lower": 0.05,
        "upper": 2.5,
        "granularity": 0.001,
        "missing": 0.4,
    },
    "Age": {"type": "integer", "lower": 18, "upper": 90, "missing": 35},
}
FEATURES = tuple(DECLARED)
UNMEASURED = ("Glucose", "BloodPressure", "SkinThickness", "Insulin", "BMI")
WHOLE = tuple(name for name in FEATURES if DECLARED[name]["type"] == "integer")

# mean and deviation of what was measured, and the share that was not: of the healthy, then of the ill
_MOMENTS = {
    "Pregnancies": ((3.298, 3.014, 0.0), (4.866, 3.734, 0.0)),
    "Glucose": ((110.6, 24.75, 0.006), (142.3, 29.54, 0.007)),
    "BloodPressure": ((70.88, 12.15, 0.038), (75.32, 12.28, 0.06)),
    "SkinThickness": ((27.24, 10.01, 0.278), (33.0, 10.3, 0.328)),
    "Insulin": ((130.3, 102.3, 0.472), (206.8, 132.2, 0.515)),
    "BMI": ((30.86, 6.554, 0.018), (35.41, 6.603, 0.007)),
    "DiabetesPedigreeFunction": ((0.43, 0.299, 0.0), (0.55, 0.372, 0.0)),
    "Age": ((31.19, 11.66, 0.0), (37.07, 10.95, 0.0)),
}


@dataclass(frozen=True, eq=False)
class Pima:
    """Measurements, NaN where there is none; who is ill; and whether the table is the real one."""

    columns: dict[str, Floats]
    ill: Truth
    real: bool

    @property
    def train(self) -> NDArray[np.int64]:
        """The records to learn from, by the published split."""
        return _split()[TEST:]

    @property
    def test(self) -> NDArray[np.int64]:
        """The records to judge by."""
        return _split()[:TEST]

    def imputed(self) -> Floats:
        """True records with declared values in place of missing ones, clamped to the declared bounds."""
        return np.column_stack(
            [
                np.clip(
                    np.where(np.isnan(values), DECLARED[name]["missing"], values),
                    DECLARED[name]["lower"],
                    DECLARED[name]["upper"],
                )
                for name, values in self.columns.items()
            ]
        )

    def with_medians(self) -> Floats:
        """As published: medians of the table in place of missing values, which is not private."""
        return np.column_stack(
            [np.where(np.isnan(values), np.nanmedian(values), values) for values in self.columns.values()]
        )


def read_pima(data: Path | None) -> Pima:
    """The table in the folder of downloaded data, or one made up to have its published moments."""
    path = pima_in(data)
    if path is None:
        return stand_in(SeededBits(1))
    columns = {
        name: column.copy() for name, column in read_numbers(path, (*FEATURES, OUTCOME), size=SIZE).items()
    }
    ill = columns.pop(OUTCOME) > 0
    for name in UNMEASURED:
        columns[name][columns[name] == 0] = np.nan
    return Pima(columns, ill, real=True)


def stand_in(bits: Bits) -> Pima:
    """A made-up table: log-normal measurements with the moments of the real one, for ill and healthy."""
    ill = np.arange(SIZE) < ILL
    ill = ill[np.argsort(bits.words(SIZE))]
    columns = {}
    for name, moments in _MOMENTS.items():
        mean, deviation, absent = (np.where(ill, moments[1][i], moments[0][i]) for i in range(3))
        spread = np.log1p((deviation / mean) ** 2)
        values = np.exp(np.log(mean) - spread / 2 + np.sqrt(spread) * ndtri(_uniform(bits)))
        digits = {"integer": 0, "real": 1}[DECLARED[name]["type"]] + 2 * (name == "DiabetesPedigreeFunction")
        columns[name] = np.where(_uniform(bits) < absent, np.nan, np.round(values, digits))
    return Pima(columns, ill, real=False)


def _uniform(bits: Bits) -> Floats:
    return ((bits.words(SIZE) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def _split() -> NDArray[np.int64]:
    """The published order of the records, the first fifth to judge by: scikit-learn's, from seed 0."""
    order: NDArray[np.int64] = np.random.RandomState(0).permutation(SIZE)
    return order
