"""Synthetic tables with a guarantee: a tree of noisy tables of pairs, and rows drawn from it."""

from typing import TYPE_CHECKING

from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine.tables.synthetic.declaration import SyntheticBlock
    from sourdine.tables.synthetic.model import SyntheticModel, SyntheticTable, from_release
    from sourdine.tables.synthetic.plan import SyntheticPlan
    from sourdine.tables.synthetic.synthesis import SyntheticRelease, synthesize

_HOMES = {
    "declaration": ("SyntheticBlock",),
    "model": (
        "SyntheticModel",
        "SyntheticTable",
        "from_release",
    ),
    "plan": ("SyntheticPlan",),
    "synthesis": (
        "SyntheticRelease",
        "synthesize",
    ),
}
__getattr__ = late(__name__, _HOMES)

__all__ = [
    "SyntheticBlock",
    "SyntheticModel",
    "SyntheticPlan",
    "SyntheticRelease",
    "SyntheticTable",
    "from_release",
    "synthesize",
]
