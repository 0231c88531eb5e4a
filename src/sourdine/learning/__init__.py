"""Training on sensitive data: clipped gradients, noise, samplers tied to their accounting.

Names are imported when first used: what needs no torch works without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sourdine.core.errors import SourdineError

if TYPE_CHECKING:
    from sourdine.accounting.dpsgd import Sampler as Sampler
    from sourdine.learning.card import Card as Card
    from sourdine.learning.card import card_of as card_of
    from sourdine.learning.clipping import Automatic as Automatic
    from sourdine.learning.clipping import Clipping as Clipping
    from sourdine.learning.clipping import Flat as Flat
    from sourdine.learning.clipping import PerLayer as PerLayer
    from sourdine.learning.engine import Engine as Engine
    from sourdine.learning.fitting import fit as fit
    from sourdine.learning.forecast import measure as measure
    from sourdine.learning.group_norm import with_group_norm as with_group_norm
    from sourdine.learning.least_squares import solve as solve
    from sourdine.learning.memory import Memory as Memory
    from sourdine.learning.memory_fit import memory_of as memory_of
    from sourdine.learning.noisy_gradient import NoisyGradient as NoisyGradient
    from sourdine.learning.planning import Forecast as Forecast
    from sourdine.learning.planning import Plan as Plan
    from sourdine.learning.planning import plan as plan
    from sourdine.learning.repeats import Repeats as Repeats
    from sourdine.learning.repeats import repeat as repeat
    from sourdine.learning.samplers import AllocatedBatches as AllocatedBatches
    from sourdine.learning.samplers import FixedBatches as FixedBatches
    from sourdine.learning.samplers import PoissonBatches as PoissonBatches
    from sourdine.learning.samplers import ShuffledBatches as ShuffledBatches
    from sourdine.learning.samplers import TruncatedBatches as TruncatedBatches
    from sourdine.learning.solved import Solved as Solved
    from sourdine.learning.step import Step as Step
    from sourdine.learning.trained import Progress as Progress
    from sourdine.learning.trained import Trained as Trained

_HOMES = {
    "AllocatedBatches": "learning.samplers",
    "Automatic": "learning.clipping",
    "Card": "learning.card",
    "Clipping": "learning.clipping",
    "Engine": "learning.engine",
    "FixedBatches": "learning.samplers",
    "Flat": "learning.clipping",
    "Forecast": "learning.planning",
    "Memory": "learning.memory",
    "NoisyGradient": "learning.noisy_gradient",
    "PerLayer": "learning.clipping",
    "Plan": "learning.planning",
    "PoissonBatches": "learning.samplers",
    "Progress": "learning.trained",
    "Repeats": "learning.repeats",
    "Sampler": "accounting.dpsgd",
    "ShuffledBatches": "learning.samplers",
    "Solved": "learning.solved",
    "Step": "learning.step",
    "Trained": "learning.trained",
    "TruncatedBatches": "learning.samplers",
    "card_of": "learning.card",
    "fit": "learning.fitting",
    "measure": "learning.forecast",
    "memory_of": "learning.memory_fit",
    "plan": "learning.planning",
    "repeat": "learning.repeats",
    "solve": "learning.least_squares",
    "with_group_norm": "learning.group_norm",
}

__all__ = [
    "AllocatedBatches",
    "Automatic",
    "Card",
    "Clipping",
    "Engine",
    "FixedBatches",
    "Flat",
    "Forecast",
    "Memory",
    "NoisyGradient",
    "PerLayer",
    "Plan",
    "PoissonBatches",
    "Progress",
    "Repeats",
    "Sampler",
    "ShuffledBatches",
    "Solved",
    "Step",
    "Trained",
    "TruncatedBatches",
    "card_of",
    "fit",
    "measure",
    "memory_of",
    "plan",
    "repeat",
    "solve",
    "with_group_norm",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'sourdine.learning' has no attribute '{name}'")
    try:
        return getattr(import_module(f"sourdine.{_HOMES[name]}"), name)
    except ModuleNotFoundError as problem:
        if problem.name != "torch":
            raise
        raise SourdineError(
            "Training needs torch, which is not installed. Install it with: pip install 'sourdine[learn]'."
        ) from problem


def __dir__() -> list[str]:
    return sorted(__all__)
