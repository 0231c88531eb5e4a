"""What epsilon means: beliefs, odds, attacks and examples, as data and in words."""

from sourdine.accounting.explain.curve import EPSILONS, PRIORS, Curve, posterior_bounds, posterior_table
from sourdine.accounting.explain.deployments import DEPLOYMENTS, Deployment
from sourdine.accounting.explain.explanation import (
    Explanation,
    explain_cost,
    explain_guarantee,
    explain_ledger,
    explain_training,
)
from sourdine.accounting.explain.words import sentences

__all__ = [
    "DEPLOYMENTS",
    "EPSILONS",
    "PRIORS",
    "Curve",
    "Deployment",
    "Explanation",
    "explain_cost",
    "explain_guarantee",
    "explain_ledger",
    "explain_training",
    "posterior_bounds",
    "posterior_table",
    "sentences",
]
