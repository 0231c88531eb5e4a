"""What the source documents published, done again: one file an experiment, found by itself."""

from sourdine.experiments.registry import (
    Experiment,
    Result,
    Settings,
    Standing,
    Verdict,
    compare,
    experiment,
    find_experiments,
)

__all__ = [
    "Experiment",
    "Result",
    "Settings",
    "Standing",
    "Verdict",
    "compare",
    "experiment",
    "find_experiments",
]
