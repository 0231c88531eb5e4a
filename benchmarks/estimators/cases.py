"""The tables of this benchmark, declared: bounds, edges and categories are written here, not read from rows.

Only numpy is needed, since all environments read this file.
"""

import csv
import functools
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import ROOT, Environment

DATA = Path(os.environ.get("DATA", ROOT.parent / "shared" / "data"))
OURS = Environment(name="ours")
DIFFPRIVLIB = Environment(
    name="diffprivlib_estimators", requirements=("diffprivlib==0.6.6", "scikit-learn==1.6.1", "numpy==2.2.6")
)
INTERPRET = Environment(name="interpret", requirements=("interpret-core==0.7.8", "scikit-learn==1.6.1"))
EPSILONS = (0.1, 0.5, 1.0, 3.0)
DELTA = {"adult": 1e-6, "pima": 1e-4}

_ADULT = [
    "age",
    "workclass",
    "weight",
    "education",
    "years",
    "marital",
    "occupation",
    "relationship",
    "race",
    "sex",
    "gain",
    "loss",
    "hours",
    "country",
    "income",
]
_USED = [
    "age",
    "workclass",
    "years",
    "marital",
    "occupation",
    "relationship",
    "race",
    "sex",
    "gain",
    "loss",
    "hours",
    "country",
]
_CATEGORIES = {
    "workclass": "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc "
    "State-gov Without-pay",
    "marital": "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married "
    "Separated Widowed",
    "occupation": "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing "
    "Handlers-cleaners Machine-op-inspct Other-service Priv-house-serv Prof-specialty Protective-serv Sales "
    "Tech-support Transport-moving",
    "relationship": "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "race": "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "sex": "Female Male",
    "country": "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France "
    "Germany Greece Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy "
    "Jamaica Japan Laos Mexico Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal "
    "Puerto-Rico Scotland South Taiwan Thailand Trinadad&Tobago United-States Vietnam Yugoslavia",
}
_EDGES: dict[str, list[float]] = {
    "age": [float(edge) for edge in range(15, 95, 5)],
    "years": [edge + 0.5 for edge in range(17)],
    "gain": [0, 1, 3000, 5000, 7000, 10000, 20000, 100000],
    "loss": [0, 1, 1500, 1800, 2000, 2300, 5000],
    "hours": [float(edge) for edge in range(0, 110, 10)],
}
_PIMA = [(0, 17), (0, 200), (0, 122), (0, 99), (0, 846), (0, 67.1), (0, 2.5), (21, 81)]


@dataclass(frozen=True)
class Split:
    """Rows to fit and rows to judge by, and what is declared of each column."""

    rows: Any
    classes: Any
    test_rows: Any
    test_classes: Any
    columns: list[Any]

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The ends of numeric columns; categories are numbered."""
        return [
            (0, len(each) - 1) if isinstance(each[0], str) else (each[0], each[-1]) for each in self.columns
        ]

    def numeric(self, rows: Any) -> Any:
        """Rows with the number of each category, for libraries that take numbers."""
        columns = []
        for values, each in zip(np.asarray(rows, dtype=object).T, self.columns, strict=True):
            places = {key: place for place, key in enumerate(each)} if isinstance(each[0], str) else None
            columns.append([float(places[value]) if places else float(value) for value in values])
        return np.array(columns).T


def split(name: str, run: int) -> Split:
    """Adult as it is published, in two files; Pima split anew each run, three quarters to fit."""
    return _adult() if name == "adult" else _pima(run)


@functools.cache
def _adult() -> Split:
    parts = []
    for part in ("train", "test"):
        with (DATA / "adult" / f"adult-{part}.csv").open(newline="") as file:
            records = [row for row in csv.reader(file, skipinitialspace=True) if len(row) == len(_ADULT)]
        table = dict(zip(_ADULT, zip(*records, strict=True), strict=True))
        rows = np.empty((len(records), len(_USED)), dtype=object)
        for place, column in enumerate(_USED):
            rows[:, place] = (
                table[column] if column in _CATEGORIES else [float(each) for each in table[column]]
            )
        parts += [rows, np.array([income.startswith(">") for income in table["income"]], dtype=np.int64)]
    columns: list[Any] = [
        _CATEGORIES[each].split() if each in _CATEGORIES else _EDGES[each] for each in _USED
    ]
    return Split(parts[0], parts[1], parts[2], parts[3], columns)


def _pima(run: int) -> Split:
    (path,) = sorted((DATA / "pima").glob("*.csv"))
    table = np.loadtxt(path, delimiter=",")
    order = np.random.default_rng(run).permutation(len(table))
    test, fit = np.split(order, [len(table) // 4])
    classes = table[:, 8].astype(np.int64)
    return Split(table[fit, :8], classes[fit], table[test, :8], classes[test], [list(ends) for ends in _PIMA])


def judged(split: Split, guesses: Any, scores: Any) -> dict[str, float]:
    """Accuracy, and the area under the ROC curve: the chance that the second class scores higher."""
    truth = np.asarray(split.test_classes)
    values = np.asarray(scores, dtype=float)
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    second = truth == 1
    area = ranks[second].sum() - second.sum() * (second.sum() + 1) / 2
    return {
        "accuracy": float((np.asarray(guesses) == truth).mean()),
        "auc": float(area / (second.sum() * (~second).sum())),
    }
