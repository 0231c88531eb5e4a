"""Answers collected without trusting the collector: oracles, their reports, counts and estimates."""

from sourdine.local.choose import Choice, NumericChoice, choose, choose_numeric
from sourdine.local.consistency import non_negative, norm_sub, simplex
from sourdine.local.estimate import Counts, Estimate
from sourdine.local.frequency.hadamard import HadamardResponse
from sourdine.local.frequency.hashing import GRR, OLH
from sourdine.local.frequency.projective import ProjectiveGeometry
from sourdine.local.frequency.subset import SubsetSelection
from sourdine.local.frequency.unary import OUE, SUE
from sourdine.local.memoization import Memo
from sourdine.local.numeric.bounded import BoundedLaplaceOracle, BoundedStaircaseOracle
from sourdine.local.numeric.distribution import Distribution
from sourdine.local.numeric.duchi import Duchi
from sourdine.local.numeric.oracle import NumericOracle
from sourdine.local.numeric.piecewise import Hybrid, Piecewise, SquareWave
from sourdine.local.oracle import FrequencyOracle, Oracle
from sourdine.local.question import Question
from sourdine.local.surveys.design import CentralComparison, Survey, best_survey
from sourdine.local.surveys.regression import AnswerRegression, regress
from sourdine.local.surveys.statistical_query import LocalCrowd, QueryPlan, best_each

__all__ = [
    "GRR",
    "OLH",
    "OUE",
    "SUE",
    "AnswerRegression",
    "BoundedLaplaceOracle",
    "BoundedStaircaseOracle",
    "CentralComparison",
    "Choice",
    "Counts",
    "Distribution",
    "Duchi",
    "Estimate",
    "FrequencyOracle",
    "HadamardResponse",
    "Hybrid",
    "LocalCrowd",
    "Memo",
    "NumericChoice",
    "NumericOracle",
    "Oracle",
    "Piecewise",
    "ProjectiveGeometry",
    "QueryPlan",
    "Question",
    "SquareWave",
    "SubsetSelection",
    "Survey",
    "best_each",
    "best_survey",
    "choose",
    "choose_numeric",
    "non_negative",
    "norm_sub",
    "regress",
    "simplex",
]
