"""How far methods are off from a sample's deciles, by size and by epsilon, beside the source's curves.

Those are read from `seed-figures` within the folder of data, where their numbers are at hand. Errors are
means over fresh samples; published lines are pale, ours in full colour.
"""

import csv
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sourdine.core.display import Spec
from sourdine.core.lazy import ndtri
from sourdine.core.random.bits import Bits
from sourdine.frames.rank_counts import SortedPlaces
from sourdine.report.charts.base import Axis, Row, Series, Slider, draw_lines
from sourdine.report.view import TextTable
from sourdine.tables.quantiles import QuantileMethod
from sourdine.tables.quantiles.api import Allowance, Grid, named
from sourdine_reproduction.registry import Settings

Floats = NDArray[np.float64]

LEVELS = tuple(Fraction(i, 10) for i in range(1, 10))
DECILES = tuple(float(level) for level in LEVELS)

# names as people read them, and those of the room; the source's two first
METHODS = {"histogram": "histogram", "inverse sensitivity": "inverse", "joint": "joint"}


@dataclass(frozen=True)
class ValueLaw:
    """Values are drawn by a quantile function; the bounds are declared, never taken from values."""

    bounds: tuple[float, float]
    quantile: Callable[[Floats], Floats]

    def sample(self, size: int, bits: Bits) -> Floats:
        """So many values, in rising order."""
        return np.sort(self.quantile(uniform(size, bits)))

    @property
    def grid(self) -> Grid:
        """The places of answers: 2^20 steps between the bounds."""
        return Grid.declared(self.bounds, None, 1 << 20)


def uniform(size: int, bits: Bits) -> Floats:
    """So many values between 0 and 1, neither of them included."""
    whole: Floats = (bits.words(size) >> np.uint64(11)).astype(np.float64)
    return (whole + 0.5) * 2.0**-53


UNIFORM = ValueLaw((0.0, 1.0), lambda share: share)
NORMAL = ValueLaw((-6.0, 6.0), lambda share: np.asarray(ndtri(share), np.float64))


def true_deciles(ordered: Floats) -> Floats:
    """The value of rank ceil(i n / 10), for each decile."""
    ranks = np.array([-(-i * len(ordered) // 10) for i in range(1, 10)])
    deciles: Floats = ordered[ranks - 1]
    return deciles


def method_for(name: str, places: int, epsilon: float, size: int) -> QuantileMethod:
    """The method under a name that people read, for nine deciles that share epsilon."""
    exact = Fraction(str(epsilon))
    return named(METHODS[name], levels=DECILES, places=places, allowance=Allowance(budget=exact), size=size)


def rmse(method: QuantileMethod, ordered: Floats, grid: Grid, count: int, bits: Bits) -> Floats:
    """The root mean squared error over the nine deciles, of so many answers, unsorted as in the source."""
    places = method.draw(SortedPlaces(np.sort(grid.place(ordered))), count, bits)
    missed: Floats = np.sqrt(((grid.value(places) - true_deciles(ordered)) ** 2).mean(axis=-1))
    return missed


def mean_rmse(name: str, law: ValueLaw, size: int, epsilon: float, *, samples: int, bits: Bits) -> float:
    """The mean over fresh samples, one answer each."""
    grid = law.grid
    method = method_for(name, grid.places, epsilon, size)
    errors = [float(rmse(method, law.sample(size, bits), grid, 1, bits)[0]) for _ in range(samples)]
    return float(np.mean(errors))


def fit_power(sizes: Floats, errors: Floats) -> tuple[float, float]:
    """c and a of c n^-a, by least squares on logarithms.

    >>> c, a = fit_power(np.array([10.0, 100.0]), np.array([1.0, 0.1]))
    >>> round(c, 6), round(a, 6)
    (10.0, 1.0)
    """
    slope, offset = np.polyfit(np.log(sizes), np.log(errors), 1)
    return float(np.exp(offset)), float(-slope)


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
    places = np.unique(place)
    return [(float(x[place == i].mean()), float(y[place == i].mean())) for i in places]


def _find(data: Path | None, name: str) -> Path | None:
    if data is None:
        return None
    path = data / _FOLDER / name
    return path if path.is_file() else None


def _curve(pairs: Sequence[Sequence[str]]) -> Curve:
    numbers = np.array([[float(cell) for cell in pair] for pair in pairs])
    return numbers[:, 0], numbers[:, 1]


COLOURS = {
    "histogram, published": "#E69F00",
    "histogram": "#D55E00",
    "inverse sensitivity, published": "#56B4E9",
    "inverse sensitivity": "#0072B2",
    "smooth, ρ = 1": "#CC79A7",
    "smooth, ρ = 100": "#7A4B8C",
    "joint": "#009E73",
}


def draw_errors(rows: Iterable[Row], *, x: Axis, y: Axis, slider: Slider | None = None) -> Spec:
    """A line for each method among the rows, under the field `method`."""
    table = list(rows)
    shown = {str(row["method"]) for row in table}
    names = tuple(name for name in COLOURS if name in shown)
    series = Series(field="method", names=names, colours=tuple(COLOURS[name] for name in names))
    return draw_lines(table, x=x, y=y, series=series, slider=slider)


def published_rows(curves: Mapping[str, Curve], field: str, **common: float) -> list[Row]:
    """The published curves as rows, thinned."""
    return [
        {"method": f"{name}, published", field: x, "error": y, **common}
        for name, curve in curves.items()
        for x, y in thin(curve)
    ]


FITTED_FROM = 1000  # n from which the published fit of inverse sensitivity comes out of the published curve
EPSILONS = (1.0, 0.5)


@dataclass(frozen=True)
class Errors:
    """Mean errors by method, epsilon and n."""

    means: Mapping[tuple[str, float, int], float]

    @classmethod
    def measure(
        cls, law: ValueLaw, sizes: Sequence[int], *, samples: int, label: str, settings: Settings, bits: Bits
    ) -> "Errors":
        """Mean over fresh samples, for every method, epsilon and n."""
        cases = [(name, epsilon, n) for n in sizes for epsilon in EPSILONS for name in METHODS]
        return cls(
            {
                (name, epsilon, n): mean_rmse(name, law, n, epsilon, samples=samples, bits=bits)
                for name, epsilon, n in settings.watch(label, cases)
            }
        )

    def curve(self, name: str, epsilon: float) -> Curve:
        """The errors of one method at one epsilon."""
        pairs = [(n, error) for (method, e, n), error in self.means.items() if (method, e) == (name, epsilon)]
        numbers = np.array(pairs, np.float64)
        return numbers[:, 0], numbers[:, 1]

    def table(self, name: str, title: str, published: Mapping[float, Mapping[str, Curve]]) -> TextTable:
        """A row for each epsilon and n: ours, and beside them the published errors near that n."""
        keys = list(dict.fromkeys((epsilon, n) for _, epsilon, n in self.means))
        methods = [method for method in METHODS if any(method in curves for curves in published.values())]
        return TextTable(
            name=name,
            title=title,
            columns=("ε", "n", *METHODS, *(f"{method}, published" for method in methods)),
            rows=tuple(
                (
                    epsilon,
                    n,
                    *(self.means[method, epsilon, n] for method in METHODS),
                    *(near(published.get(epsilon, {}).get(method), n) for method in methods),
                )
                for epsilon, n in sorted(keys, key=lambda key: (-key[0], key[1]))
            ),
        )

    def draw(self, published: Mapping[float, Mapping[str, Curve]], unit: str) -> Spec:
        """Lines against n, with a slider for epsilon."""
        rows: list[Row] = [
            {"method": name, "epsilon": epsilon, "n": n, "error": error}
            for (name, epsilon, n), error in self.means.items()
        ]
        for epsilon, curves in published.items():
            rows += published_rows(curves, "n", epsilon=epsilon)
        return draw_errors(
            rows,
            x=Axis(field="n", title="number of values", log=True, form=",.0f"),
            y=Axis(field="error", title=f"root mean squared error{unit}", log=True),
            slider=Slider(field="epsilon", title="ε", values=EPSILONS[::-1], start=1.0),
        )


def fit(curve: Curve) -> tuple[float, float]:
    """c and a of c n^-a from n = 1,000 on."""
    there = curve[0] >= FITTED_FROM
    return fit_power(curve[0][there], curve[1][there])


def near(curve: Curve | None, x: float, reach: float = 1.1) -> float | None:
    """The mean of a curve within a tenth of a place."""
    if curve is None:
        return None
    there = (curve[0] >= x / reach) & (curve[0] <= x * reach)
    return float(curve[1][there].mean()) if there.any() else None


def power(c: float, a: float) -> str:
    """A fit as people write it."""
    return f"{c:.3g} n^−{a:.3f}"


@dataclass(frozen=True)
class ByEpsilon:
    """What was found for each method and epsilon, and what was published, where it is at hand."""

    means: dict[tuple[str, float], float]
    published: dict[str, Curve]

    @classmethod
    def beside(cls, errors: dict[tuple[str, float], float], settings: Settings, figure: str) -> "ByEpsilon":
        """Our errors beside the published curves of a figure."""
        curves = {
            shown: read_pairs(settings.data, f"{figure}-{method}.dat") for method, shown in NAMES.items()
        }
        return cls(errors, {name: curve for name, curve in curves.items() if curve is not None})

    def table(self, name: str, title: str, within: float) -> TextTable:
        """A row for each epsilon; published errors are those within a factor of it."""
        return TextTable(
            name=name,
            title=title,
            columns=("ε", *METHODS, *(f"{method}, published" for method in self.published)),
            rows=tuple(
                (
                    epsilon,
                    *(self.means[method, epsilon] for method in METHODS),
                    *(near(curve, epsilon, within) for curve in self.published.values()),
                )
                for epsilon in dict.fromkeys(epsilon for _, epsilon in self.means)
            ),
        )

    def draw(self, measure: str = "") -> Spec:
        """All curves on logarithmic axes."""
        rows: list[Row] = [
            {"method": method, "epsilon": epsilon, "error": error}
            for (method, epsilon), error in self.means.items()
        ]
        return draw_errors(
            rows + published_rows(self.published, "epsilon"),
            x=Axis(field="epsilon", title="ε for all nine deciles", log=True),
            y=Axis(field="error", title=f"root mean squared error{measure}", log=True),
        )
