"""The source's curves, where their numbers are at hand: in `seed-figures` within the folder of data."""

import csv
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Curve = tuple[Floats, Floats]

NAMES = {"histogram": "histogram", "inverse": "inverse sensitivity"}
_FOLDER = "seed-figures"
_POINTS = 24


def read_methods(data: Path | None, name: str) -> dict[str, Curve]:
    """The two curves of a CSV with columns method, n and rmse; none where there is no such file."""
    path = _find(data, name)
    if path is None:
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {
        shown: _curve([(row["n"], row["rmse"]) for row in rows if row["method"] == method])
        for method, shown in NAMES.items()
    }


def read_pairs(data: Path | None, name: str) -> Curve | None:
    """The curve of a file with two numbers a line; none where there is no such file."""
    path = _find(data, name)
    if path is None:
        return None
    lines = path.read_text(encoding="utf-8").split("\n")
    return _curve([line.split() for line in lines if line.strip()])


def thin(curve: Curve) -> list[tuple[float, float]]:
    """Means over at most 24 stretches, each as long as the others on a logarithmic axis."""
    x, y = curve
    edges = np.geomspace(x.min(), x.max() * (1 + 1e-9), _POINTS + 1)
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, _POINTS - 1)
    held = np.unique(place)
    return [(float(x[place == i].mean()), float(y[place == i].mean())) for i in held]


def _find(data: Path | None, name: str) -> Path | None:
    if data is None:
        return None
    path = data / _FOLDER / name
    return path if path.is_file() else None


def _curve(pairs: Sequence[Sequence[str]]) -> Curve:
    numbers = np.array([[float(cell) for cell in pair] for pair in pairs])
    return numbers[:, 0], numbers[:, 1]
