"""What the source documents published, done again: one file an experiment, found by itself."""

from sourdine.experiments.registry import (
    ClaimVerdict,
    Experiment,
    Result,
    Settings,
    answer,
    compare,
    experiment,
    find_experiments,
    judge,
)
from sourdine.experiments.statements import SOURCES, STATEMENTS, Source, Standing, Statement

__all__ = [
    "SOURCES",
    "STATEMENTS",
    "ClaimVerdict",
    "Experiment",
    "Result",
    "Settings",
    "Source",
    "Standing",
    "Statement",
    "answer",
    "compare",
    "experiment",
    "find_experiments",
    "judge",
]
