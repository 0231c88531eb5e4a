"""Errors against the number of values, for a law: what figures 3 and 4 have in common."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sourdine.core.bits import Bits
from sourdine.experiments.quantiles.drawing import draw_errors, published_rows
from sourdine.experiments.quantiles.measure import METHODS, Law, fit_power, mean_rmse
from sourdine.experiments.quantiles.published import Curve
from sourdine.experiments.registry import Settings
from sourdine.report.charts import Axis, Row, Slider, Spec
from sourdine.report.table import Table

FITTED_FROM = 1000  # n from which the published fit of inverse sensitivity comes out of the published curve
EPSILONS = (1.0, 0.5)


@dataclass(frozen=True)
class Errors:
    """Mean errors by method, epsilon and n."""

    found: Mapping[tuple[str, float, int], float]

    @classmethod
    def measure(
        cls, law: Law, sizes: Sequence[int], *, samples: int, label: str, settings: Settings, bits: Bits
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
        pairs = [(n, error) for (method, e, n), error in self.found.items() if (method, e) == (name, epsilon)]
        numbers = np.array(pairs, np.float64)
        return numbers[:, 0], numbers[:, 1]

    def table(self, name: str, title: str, published: Mapping[float, Mapping[str, Curve]]) -> Table:
        """A row for each epsilon and n: ours, and beside them the published errors near that n."""
        keys = list(dict.fromkeys((epsilon, n) for _, epsilon, n in self.found))
        told = [method for method in METHODS if any(method in curves for curves in published.values())]
        return Table(
            name=name,
            title=title,
            columns=("ε", "n", *METHODS, *(f"{method}, published" for method in told)),
            rows=tuple(
                (
                    epsilon,
                    n,
                    *(self.found[method, epsilon, n] for method in METHODS),
                    *(near(published.get(epsilon, {}).get(method), n) for method in told),
                )
                for epsilon, n in sorted(keys, key=lambda key: (-key[0], key[1]))
            ),
        )

    def draw(self, published: Mapping[float, Mapping[str, Curve]], unit: str) -> Spec:
        """Lines against n, with a slider for epsilon."""
        rows: list[Row] = [
            {"method": name, "epsilon": epsilon, "n": n, "error": error}
            for (name, epsilon, n), error in self.found.items()
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
    kept = curve[0] >= FITTED_FROM
    return fit_power(curve[0][kept], curve[1][kept])


def near(curve: Curve | None, x: float, reach: float = 1.1) -> float | None:
    """The mean of a curve within a tenth of a place."""
    if curve is None:
        return None
    kept = (curve[0] >= x / reach) & (curve[0] <= x * reach)
    return float(curve[1][kept].mean()) if kept.any() else None


def power(c: float, a: float) -> str:
    """A fit as people write it."""
    return f"{c:.3g} n^−{a:.3f}"
