"""Tables with their true values: a made-up panel, and Adult, which is not part of the project.

Values lie on the declared grids, so that the truth is a plain sum over records, computed here by numpy.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.peers import ROOT, Environment
from sourdine.tables.compare import (
    AnswerChange,
    AnswerDifference,
    AnswerFormula,
    AnswerRatio,
    AnswerShare,
    AnswerStep,
)
from sourdine.tables.query import Query
from sourdine.tables.statistics import (
    Correlation,
    Count,
    Covariance,
    Mean,
    Regression,
    Sum,
    Units,
    WeightedMean,
    WeightedSum,
)

ADULT = Path(os.environ.get("ADULT", ROOT.parent / "shared" / "data" / "adult")) / "adult-train.csv"
DIFFPRIVLIB = Environment(
    name="diffprivlib",
    requirements=("diffprivlib==0.6.6", "scikit-learn==1.6.1", "scipy==1.17.1", "numpy==2.4.6"),
)
Floats = NDArray[np.float64]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """A table, what its columns are called by their part, and the bounds that are declared of them.

    `two` has two keys to compare, `order` has keys in an order, `by` some groups; `value` is a number that is
    explained by `on`, and `weight` is a weight.
    """

    name: str
    table: pa.Table
    columns: dict[str, dict[str, Any]]
    two: str
    order: str
    by: str
    value: str
    on: str
    weight: str

    @property
    def queries(self) -> list[Query]:
        """Every comparison and every statistic whose interval is new."""
        mean, (low, high) = f"mean of {self.value}", self.columns[self.two]["keys"]
        sides = {"column": self.two, "first": high, "second": low}
        steps: list[AnswerStep] = [
            AnswerDifference(mean, **sides),
            AnswerRatio(mean, **sides),
            AnswerDifference("count", **sides),
            AnswerShare("count", column=self.two),
            AnswerChange("count", column=self.order),
            AnswerChange("count", column=self.order, relative=True),
            AnswerRatio(f"sum of {self.value}", per="units"),
            AnswerFormula(mean, power=2),
        ]
        asked = [Mean(self.value), Count(), Sum(self.value), Units()]
        pair = [Regression(self.value, on=self.on), Correlation(self.value, self.on)]
        return [
            Query("groups", asked, by=[self.two, self.order], compare=steps),
            Query("pairs", [*pair, Covariance(self.value, self.on)], by=self.by),
            Query(
                "weighted",
                [WeightedMean(self.value, self.weight), WeightedSum(self.value, self.weight)],
                by=self.by,
            ),
        ]

    def truth(self, label: str, columns: Sequence[str], keys: Sequence[Key]) -> Floats:
        """The true values of an answer, key by key."""
        low, high = self.columns[self.two]["keys"]
        mean, order = f"mean of {self.value}", self.columns[self.order]["keys"]

        def means(key: dict[str, Any]) -> float:
            return float(self._held(key)[self.value].mean())

        def count(key: dict[str, Any]) -> float:
            return float(len(self._held(key)[self.value]))

        def before(key: dict[str, Any]) -> float:
            return count({**key, self.order: order[order.index(key[self.order]) - 1]})

        def line(key: dict[str, Any]) -> float:
            held = self._held({self.by: key[self.by]})
            slope, intercept = np.polyfit(held[self.on], held[self.value], 1)
            return float(slope if key["coefficient"] == "slope" else intercept)

        def pair(key: dict[str, Any]) -> Floats:
            held = self._held(key)
            return np.cov(held[self.value], held[self.on], ddof=0)

        def weighted(key: dict[str, Any]) -> float:
            held = self._held(key)
            return float((held[self.value] * held[self.weight]).sum())

        def two(of: Callable[[dict[str, Any]], float], key: dict[str, Any]) -> tuple[float, float]:
            return of({**key, self.two: high}), of({**key, self.two: low})

        known: dict[str, Callable[[dict[str, Any]], float]] = {
            mean: means,
            "count": count,
            "units": count,
            f"sum of {self.value}": lambda key: float(self._held(key)[self.value].sum()),
            f"{mean}, {high} less {low}": lambda key: -float(np.diff(two(means, key))[0]),
            f"{mean}, {high} over {low}": lambda key: float(np.divide(*two(means, key))),
            f"count, {high} less {low}": lambda key: -float(np.diff(two(count, key))[0]),
            f"share of count by {self.two}": lambda key: count(key) / count({self.order: key[self.order]}),
            f"change of count by {self.order}": lambda key: count(key) - before(key),
            f"relative change of count by {self.order}": lambda key: count(key) / before(key) - 1,
            f"sum of {self.value} per units": means,
            f"({mean})^2": lambda key: means(key) ** 2,
            f"regression of {self.value} on {self.on}": line,
            f"covariance of {self.value} and {self.on}": lambda key: float(pair(key)[0, 1]),
            f"correlation of {self.value} and {self.on}": lambda key: float(
                pair(key)[0, 1] / np.sqrt(pair(key)[0, 0] * pair(key)[1, 1])
            ),
            f"weighted mean of {self.value} by {self.weight}": lambda key: (
                weighted(key) / float(self._held(key)[self.weight].sum())
            ),
            f"weighted sum of {self.value} by {self.weight}": weighted,
        }
        return np.array([known[label](dict(zip(columns, key, strict=True))) for key in keys])

    def _held(self, key: dict[str, Any]) -> dict[str, Floats]:
        """The numbers of the records of a group."""
        chosen = np.ones(self.table.num_rows, bool)
        for name, value in key.items():
            chosen &= self.table[name].to_numpy(zero_copy_only=False) == value
        return {
            name: self.table[name].to_numpy()[chosen].astype(float)
            for name in (self.value, self.on, self.weight)
        }


def panel(size: int = 3000) -> Case:
    """A made-up panel: pay grows with age and differs by sex, answers have weights."""
    drawn = np.random.default_rng(1)
    sex, region, age = drawn.integers(0, 2, size), drawn.integers(0, 4, size), drawn.integers(18, 81, size)
    pay = np.clip(800 * age + 8000 * sex + drawn.normal(0, 9000, size), 0, 100_000)
    table = pa.table(
        {
            "sex": np.array(["f", "m"])[sex],
            "region": np.array(list("nsew"))[region],
            "age": age,
            "pay": np.round(pay / 100) * 100,
            "answers": np.round(np.clip(drawn.gamma(2, 1.5, size), 0, 10) * 16) / 16,
            "month": drawn.integers(0, 3, size),
        }
    )
    columns: dict[str, dict[str, Any]] = {
        "sex": {"type": "category", "keys": ["f", "m"]},
        "region": {"type": "category", "keys": list("nsew")},
        "age": {"type": "integer", "lower": 18, "upper": 80},
        "pay": {"type": "real", "lower": 0.0, "upper": 100_000.0, "granularity": 100.0},
        "answers": {"type": "real", "lower": 0.0, "upper": 10.0, "granularity": 0.0625},
        "month": {"type": "category", "keys": [0, 1, 2]},
    }
    return Case("panel", table, columns, "sex", "month", "region", "pay", "age", "answers")


def adult() -> Case:
    """Adult: hours by education, with the weights of the survey in thousands."""
    rows = [line.strip().split(", ") for line in ADULT.read_text().splitlines() if line.strip()]
    taken = [row for row in rows if row[8] in ("White", "Black")]
    numbers = np.array([[int(row[place]) for place in (0, 2, 4, 12)] for row in taken])
    table = pa.table(
        {
            "sex": [row[9] for row in taken],
            "race": [row[8] for row in taken],
            "decade": np.clip(numbers[:, 0] // 10, 2, 6),
            "weight": np.clip(np.round(numbers[:, 1] / 1000), 0, 500),
            "education": numbers[:, 2],
            "hours": numbers[:, 3],
        }
    )
    columns: dict[str, dict[str, Any]] = {
        "sex": {"type": "category", "keys": ["Female", "Male"]},
        "race": {"type": "category", "keys": ["White", "Black"]},
        "decade": {"type": "category", "keys": [2, 3, 4, 5, 6]},
        "weight": {"type": "integer", "lower": 0, "upper": 500},
        "education": {"type": "integer", "lower": 1, "upper": 16},
        "hours": {"type": "integer", "lower": 1, "upper": 99},
    }
    return Case("Adult", table, columns, "sex", "decade", "race", "hours", "education", "weight")
