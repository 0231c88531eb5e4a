"""What the source documents published, done again: one file an experiment, found by itself."""

from typing import TYPE_CHECKING

from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine_reproduction.registry import ClaimVerdict as ClaimVerdict
    from sourdine_reproduction.registry import Experiment as Experiment
    from sourdine_reproduction.registry import Result as Result
    from sourdine_reproduction.registry import Settings as Settings
    from sourdine_reproduction.registry import answer as answer
    from sourdine_reproduction.registry import compare as compare
    from sourdine_reproduction.registry import experiment as experiment
    from sourdine_reproduction.registry import find_experiments as find_experiments
    from sourdine_reproduction.registry import judge as judge
    from sourdine_reproduction.statements import SOURCES as SOURCES
    from sourdine_reproduction.statements import STATEMENTS as STATEMENTS
    from sourdine_reproduction.statements import PublishedStatement as PublishedStatement
    from sourdine_reproduction.statements import SourceDocument as SourceDocument
    from sourdine_reproduction.statements import Standing as Standing

_HOMES = {
    "registry": (
        "ClaimVerdict",
        "Experiment",
        "Result",
        "Settings",
        "answer",
        "compare",
        "experiment",
        "find_experiments",
        "judge",
    ),
    "statements": ("SOURCES", "STATEMENTS", "PublishedStatement", "SourceDocument", "Standing"),
}

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

# The command is loaded before its experiments are, which need numpy and what draws pages.
__getattr__ = late(__name__, _HOMES)
