"""How useful a cleaned table still is: what a classifier learns from it, tested on untouched rows."""

from sourdine.local.utility.measure import JudgedOn, Utility, UtilityPoint, measure_utility
from sourdine.local.utility.models import LearningModel, Scores
from sourdine.local.utility.ranges import epsilon_range

__all__ = [
    "JudgedOn",
    "LearningModel",
    "Scores",
    "Utility",
    "UtilityPoint",
    "epsilon_range",
    "measure_utility",
]
