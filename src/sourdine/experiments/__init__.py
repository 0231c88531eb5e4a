"""What the source documents published, done again: one file an experiment, found by itself."""

from sourdine.experiments.registry import (
    ClaimVerdict,
    Experiment,
    Result,
    Settings,
    Standing,
    compare,
    experiment,
    find_experiments,
)

__all__ = [
    "ClaimVerdict",
    "Experiment",
    "Result",
    "Settings",
    "Standing",
    "compare",
    "experiment",
    "find_experiments",
]
