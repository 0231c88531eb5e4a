"""Synthetic tables with a guarantee: a tree of noisy tables of pairs, and rows drawn from it."""

from sourdine.tables.synthetic.declared import SyntheticBlock
from sourdine.tables.synthetic.model import SyntheticModel, SyntheticTable
from sourdine.tables.synthetic.plan import SyntheticPlan
from sourdine.tables.synthetic.published import from_release
from sourdine.tables.synthetic.synthesis import SyntheticRelease, synthesize

__all__ = [
    "SyntheticBlock",
    "SyntheticModel",
    "SyntheticPlan",
    "SyntheticRelease",
    "SyntheticTable",
    "from_release",
    "synthesize",
]
