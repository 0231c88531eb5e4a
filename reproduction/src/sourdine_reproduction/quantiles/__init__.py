"""The source's two methods for private deciles, its theorems and its figures, beside the best we know."""

from sourdine.report.view import Section
from sourdine_reproduction.quantiles import bounds, claims, normal_law, repeated, salaries, uniform_law
from sourdine_reproduction.registry import Experiment, Result, Settings, experiment

_FAULTS = Section(
    title="What the published numbers come from",
    paragraphs=(
        "The curves of figures 3, 4 and 5, and the fits, were drawn by code that does not do what the text "
        "proves. Its score for inverse sensitivity is a difference of ranks in unsigned numbers without an "
        "absolute value, so it is one-sided; its answers lie between the least and the largest value, and "
        "the histogram ends at the largest, which is not private; the Laplace noise has half of its scale, "
        "which doubles ε; and the ranks of truth and target differ by up to 8. These numbers are something "
        "to beat, not to match.",
        "The text, too, needs mending: it returns an index that counts from 0 for cut points that count from "
        "1, leaves out the lower bound a, and gives −1 when no count crosses. Here bounds are declared, the "
        "noise is what the guarantee needs, and the answer is the cut point itself, or b when nothing "
        "crosses.",
    ),
)


@experiment("quantiles", "Private deciles: two methods, their theorems and figures")
def quantiles(settings: Settings) -> Result:
    """Figures 2 to 5, the theorems put to the test, and the question left open."""
    return Result.of(
        *(each.reproduce(settings) for each in (claims, bounds, uniform_law, normal_law, salaries, repeated)),
        name="quantiles",
        title="Private deciles, as published and as they are",
        lead=(
            "A report compared a histogram method with inverse sensitivity for the nine deciles under pure "
            "ε, by theorems and by experiments. Both are done again here with code that keeps its guarantee, "
            "beside the joint mechanism, which is closer than either."
        ),
        more=(_FAULTS,),
    )


__all__ = ["Experiment", "quantiles"]
