"""Adult as declared cells: bins and keys from its codebook, never from the rows. NumPy alone is needed."""

import csv
import itertools
import os
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers import ROOT

DATA = Path(os.environ.get("DATA", ROOT.parent / "shared" / "data"))
DELTA = 1e-6
EPSILONS = (1.0, 3.0)
TARGET = "income"
_NAMES = [
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education_num",
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
NAMES = [name for name in _NAMES if name not in ("fnlwgt", "education")]
EDGES = {
    "age": [15, 20, 25, 30, 35, 40, 45, 50, 55, 60, 65, 70, 75, 80, 85, 90],
    "education_num": list(range(1, 18)),
    "gain": [0, 1, 1000, 3000, 5000, 7500, 10000, 15000, 50000, 100000],
    "loss": [0, 1, 1000, 1500, 1750, 2000, 2500, 5000],
    "hours": [0, 10, 20, 25, 30, 35, 40, 41, 45, 50, 60, 80, 100],
}
KEYS = {  # of the codebook; '?' is a category
    "workclass": "? Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay "
    "Never-worked",
    "marital": "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
    "Married-AF-spouse",
    "occupation": "? Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty "
    "Handlers-cleaners Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv "
    "Protective-serv Armed-Forces",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "country": "? United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India "
    "Japan Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal "
    "Ireland France Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua "
    "Scotland Thailand Yugoslavia El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
    "income": "<=50K >50K",
}
SIZES = [len(EDGES[name]) - 1 if name in EDGES else len(KEYS[name].split()) for name in NAMES]
Codes = Any  # a matrix of whole numbers, a row a record


def cells(name: str) -> tuple[Codes, list[dict[str, Any]]]:
    """The cells of every record of a file (train or test), and the records as they are written."""
    with (DATA / "adult" / f"adult-{name}.csv").open() as file:
        rows = [[cell.strip().rstrip(".") for cell in row] for row in csv.reader(file) if len(row) == 15]
    records = [
        {key: _value(key, cell) for key, cell in zip(_NAMES, row, strict=True) if key in NAMES}
        for row in rows
    ]
    columns = [_codes(key, [record[key] for record in records]) for key in NAMES]
    return np.stack(columns, axis=1), records


def _value(name: str, cell: str) -> str | int:
    return int(cell) if name in EDGES else cell


def _codes(name: str, values: list[Any]) -> Codes:
    if name in EDGES:
        return np.clip(np.searchsorted(EDGES[name], values, side="right") - 1, 0, len(EDGES[name]) - 2)
    places = {key: place for place, key in enumerate(KEYS[name].split())}
    return np.array([places[value] for value in values])


def distances(real: Codes, synthetic: Codes, width: int) -> dict[tuple[int, ...], float]:
    """The total variation of every table of so many columns."""
    found = {}
    for columns in itertools.combinations(range(len(SIZES)), width):
        sizes = [SIZES[column] for column in columns]
        shares = []
        for rows in (real, synthetic):
            joint = np.ravel_multi_index([rows[:, column] for column in columns], sizes)
            shares.append(np.bincount(joint, minlength=int(np.prod(sizes))) / len(rows))
        found[columns] = float(np.abs(shares[0] - shares[1]).sum() / 2)
    return found


def area(train: Codes, test: Codes) -> float:
    """The area under the curve of a boosted model of the income, on test rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.metrics import roc_auc_score

    if len(np.unique(train[:, -1])) < 2:
        return 0.5
    model = HistGradientBoostingClassifier(random_state=0).fit(train[:, :-1], train[:, -1])
    return float(roc_auc_score(test[:, -1], model.predict_proba(test[:, :-1])[:, 1]))
