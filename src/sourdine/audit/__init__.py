"""Empirical checks of claims: lower bounds on epsilon, distributions compared."""

from typing import TYPE_CHECKING

from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine.audit.examination import Verdict, examine
    from sourdine.audit.lower_bound import LowerBound, bound_epsilon, claim
    from sourdine.audit.one_run import Hypothesis, OneRunBound, bound_from_scores, largest_bound
    from sourdine.audit.outcomes import Tally, find_examples, same_law, tally

_HOMES = {
    "examination": ("Verdict", "examine"),
    "lower_bound": ("LowerBound", "bound_epsilon", "claim"),
    "one_run": ("Hypothesis", "OneRunBound", "bound_from_scores", "largest_bound"),
    "outcomes": ("Tally", "find_examples", "same_law", "tally"),
}
__getattr__ = late(__name__, _HOMES)

__all__ = [
    "Hypothesis",
    "LowerBound",
    "OneRunBound",
    "Tally",
    "Verdict",
    "bound_epsilon",
    "bound_from_scores",
    "claim",
    "examine",
    "find_examples",
    "largest_bound",
    "same_law",
    "tally",
]
