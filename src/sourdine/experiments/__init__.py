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
from sourdine.experiments.statements import SOURCES, STATEMENTS, PublishedStatement, SourceDocument, Standing

__all__ = [
    "SOURCES",
    "STATEMENTS",
    "ClaimVerdict",
    "Experiment",
    "PublishedStatement",
    "Result",
    "Settings",
    "SourceDocument",
    "Standing",
    "answer",
    "compare",
    "experiment",
    "find_experiments",
    "judge",
]
