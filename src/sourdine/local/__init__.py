"""Answers collected without trusting the collector: oracles, their reports, counts and estimates."""

from sourdine.local.bounded import BoundedLaplaceOracle, BoundedStaircaseOracle
from sourdine.local.choose import Choice, choose
from sourdine.local.choose_numeric import NumericChoice, choose_numeric
from sourdine.local.counts import Counts
from sourdine.local.distribution import Distribution
from sourdine.local.duchi import Duchi
from sourdine.local.estimate import Estimate
from sourdine.local.hadamard import HadamardResponse
from sourdine.local.hashing import LocalHashing
from sourdine.local.hybrid import Hybrid
from sourdine.local.kary import KaryOracle
from sourdine.local.memo import Memo
from sourdine.local.numeric import NumericOracle
from sourdine.local.oracle import FrequencyOracle, Oracle
from sourdine.local.piecewise import Piecewise
from sourdine.local.projective import ProjectiveGeometry
from sourdine.local.question import Question
from sourdine.local.shape import non_negative, norm_sub, simplex
from sourdine.local.square_wave import SquareWave
from sourdine.local.statistical_query import LocalCrowd, QueryPlan
from sourdine.local.subset import SubsetSelection
from sourdine.local.survey import Survey, best_survey
from sourdine.local.unary import OptimalUnary, SymmetricUnary

__all__ = [
    "BoundedLaplaceOracle",
    "BoundedStaircaseOracle",
    "Choice",
    "Counts",
    "Distribution",
    "Duchi",
    "Estimate",
    "FrequencyOracle",
    "HadamardResponse",
    "Hybrid",
    "KaryOracle",
    "LocalCrowd",
    "LocalHashing",
    "Memo",
    "NumericChoice",
    "NumericOracle",
    "OptimalUnary",
    "Oracle",
    "Piecewise",
    "ProjectiveGeometry",
    "QueryPlan",
    "Question",
    "SquareWave",
    "SubsetSelection",
    "Survey",
    "SymmetricUnary",
    "best_survey",
    "choose",
    "choose_numeric",
    "non_negative",
    "norm_sub",
    "simplex",
]
