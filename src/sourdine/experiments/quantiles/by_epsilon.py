"""Errors of the methods against epsilon, beside the published curves."""

from dataclasses import dataclass

from sourdine.experiments.quantiles.by_size import near
from sourdine.experiments.quantiles.drawing import draw_errors, published_rows
from sourdine.experiments.quantiles.measure import METHODS
from sourdine.experiments.quantiles.published import NAMES, Curve, read_pairs
from sourdine.experiments.registry import Settings
from sourdine.report.charts import Axis, Row, Spec
from sourdine.report.table import Table


@dataclass(frozen=True)
class ByEpsilon:
    """What was found for each method and epsilon, and what was published, where it is at hand."""

    found: dict[tuple[str, float], float]
    published: dict[str, Curve]

    @classmethod
    def beside(cls, found: dict[tuple[str, float], float], settings: Settings, figure: str) -> "ByEpsilon":
        """Our errors beside the published curves of a figure."""
        curves = {
            shown: read_pairs(settings.data, f"{figure}-{method}.dat") for method, shown in NAMES.items()
        }
        return cls(found, {name: curve for name, curve in curves.items() if curve is not None})

    def table(self, name: str, title: str, within: float) -> Table:
        """A row for each epsilon; published errors are those within a factor of it."""
        return Table(
            name=name,
            title=title,
            columns=("ε", *METHODS, *(f"{method}, published" for method in self.published)),
            rows=tuple(
                (
                    epsilon,
                    *(self.found[method, epsilon] for method in METHODS),
                    *(near(curve, epsilon, within) for curve in self.published.values()),
                )
                for epsilon in dict.fromkeys(epsilon for _, epsilon in self.found)
            ),
        )

    def draw(self, measure: str = "") -> Spec:
        """All curves on logarithmic axes."""
        rows: list[Row] = [
            {"method": method, "epsilon": epsilon, "error": error}
            for (method, epsilon), error in self.found.items()
        ]
        return draw_errors(
            rows + published_rows(self.published, "epsilon"),
            x=Axis(field="epsilon", title="ε for all nine deciles", log=True),
            y=Axis(field="error", title=f"root mean squared error{measure}", log=True),
        )
