"""Figure 4: errors on standard normal values, against n."""

from sourdine.core.display import Figure
from sourdine.report.view import Section
from sourdine.testing import SeededBits
from sourdine_reproduction.quantiles.measure import NORMAL, Curve, Errors, near, read_methods
from sourdine_reproduction.registry import ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

SIZES = (100, 200, 400, 700, 1000, 2000, 4000, 7000, 10000)
FEWER = (300, 1000, 5000)


def reproduce(settings: Settings) -> ExperimentPart:
    """The figure at both of its epsilons."""
    bits = SeededBits(4)
    samples = 8 if settings.quick else 30
    sizes = FEWER if settings.quick else SIZES
    published = {
        epsilon: read_methods(settings.data, f"fig4-normal-eps{epsilon:g}.csv") for epsilon in (1.0, 0.5)
    }
    errors = Errors.measure(
        NORMAL, sizes, samples=samples, label="normal values", settings=settings, bits=bits
    )
    last = sizes[-1]
    mine, theirs, best = (
        errors.means[name, 1.0, last] for name in ("histogram", "inverse sensitivity", "joint")
    )
    verdict = judge(
        "report.normal",
        finding=f"{mine:.3g} against {theirs:.3g} at n = {last:,} and ε = 1; joint {best:.3g}",
        standing=Standing.REPRODUCED if mine > theirs else Standing.OTHERWISE,
        why=_from_figure(published[1.0].get("inverse sensitivity"), published[1.0].get("histogram"), last)
        + "With the noise that its guarantee needs, and cut points over declared bounds, the histogram falls "
        "farther behind.",
    )
    section = Section(
        title="Figure 4: normal values",
        paragraphs=(
            f"The bounds are declared as [−6, 6]; the source's code took them from the values. Means over "
            f"{samples} samples, in standard deviations.",
        ),
        tables=(errors.table("normal", "Normal values: error by n and ε", published),),
        figures=(
            Figure(
                title=f"Of {last:,} normal values at ε = 1, joint deciles are {theirs / best:.1f} times "
                "closer than inverse sensitivity's",
                chart=errors.draw(published, ", in standard deviations"),
                note="Published curves are means over stretches of n.",
            ),
        ),
    )
    return ExperimentPart((verdict,), section)


def _from_figure(inverse: Curve | None, histogram: Curve | None, n: int) -> str:
    """The published errors around n, where the curves are at hand."""
    theirs, mine = near(inverse, n), near(histogram, n)
    if theirs is None or mine is None:
        return ""
    return f"The published curves have {mine:.3g} against {theirs:.3g} there. "
