"""The source documents' budget tool and its table, their curves, and the examples of the lecture notes."""

from sourdine_reproduction.budget import curves, flowers, formulas, lecture_notes, printed_run
from sourdine_reproduction.registry import Experiment, Result, Settings, experiment


@experiment("budget", "Budgets of private training, as published and as they are")
def budget(settings: Settings) -> Result:
    """Everything that the source documents print about budgets, published beside ours."""
    return Result.of(
        *(each.reproduce(settings) for each in (printed_run, flowers, curves, lecture_notes, formulas)),
        name="budget",
        title="Budgets of private training, as published and as they are",
        lead=(
            "A thesis published a tool for the budget of DP-SGD, curves drawn with it and a table of trained "
            "models; lecture notes published the formulas behind. Here each number is computed again, and "
            "stands beside the best we can prove."
        ),
    )


__all__ = ["Experiment", "budget"]
