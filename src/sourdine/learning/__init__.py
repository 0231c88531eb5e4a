"""Training on sensitive data: clipped gradients, noise, samplers tied to their accounting.

Names are imported when first used: what needs no torch works without it.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from sourdine.core.errors import SourdineError
from sourdine.core.lazy import install_line

if TYPE_CHECKING:
    from sourdine.accounting.certificate.card import Card as Card
    from sourdine.accounting.dpsgd.training import Sampler as Sampler
    from sourdine.core.errors import VoidRun as VoidRun
    from sourdine.learning.baseline import Repeats as Repeats
    from sourdine.learning.baseline import repeat as repeat
    from sourdine.learning.correlation.declared import BLT as BLT
    from sourdine.learning.correlation.declared import Banded as Banded
    from sourdine.learning.correlation.declared import BinaryTree as BinaryTree
    from sourdine.learning.correlation.declared import LeastNoise as LeastNoise
    from sourdine.learning.data.augmentation import Augmentation as Augmentation
    from sourdine.learning.data.batches import AllocatedBatches as AllocatedBatches
    from sourdine.learning.data.batches import CyclicBatches as CyclicBatches
    from sourdine.learning.data.batches import FixedBatches as FixedBatches
    from sourdine.learning.data.batches import PoissonBatches as PoissonBatches
    from sourdine.learning.data.batches import ShuffledBatches as ShuffledBatches
    from sourdine.learning.data.batches import TruncatedBatches as TruncatedBatches
    from sourdine.learning.data.units import UnitIds as UnitIds
    from sourdine.learning.dataloader import loader as loader
    from sourdine.learning.devices.processes import ALONE as ALONE
    from sourdine.learning.devices.processes import Processes as Processes
    from sourdine.learning.devices.processes import ProcessGone as ProcessGone
    from sourdine.learning.evaluation.csv_log import CsvLog as CsvLog
    from sourdine.learning.evaluation.stopping import EarlyStopping as EarlyStopping
    from sourdine.learning.execution import Execution as Execution
    from sourdine.learning.fitting import fit as fit
    from sourdine.learning.forecast import measure as measure
    from sourdine.learning.gradients.adaptive import QuantileClipping as QuantileClipping
    from sourdine.learning.gradients.clipping import Automatic as Automatic
    from sourdine.learning.gradients.clipping import Clipping as Clipping
    from sourdine.learning.gradients.clipping import Flat as Flat
    from sourdine.learning.gradients.clipping import PerLayer as PerLayer
    from sourdine.learning.gradients.engine import Engine as Engine
    from sourdine.learning.gradients.self_test import check as check
    from sourdine.learning.least_squares.solve import Solved as Solved
    from sourdine.learning.least_squares.solve import solve as solve
    from sourdine.learning.memory.dry_run import memory_of as memory_of
    from sourdine.learning.memory.model import Memory as Memory
    from sourdine.learning.models import with_group_norm as with_group_norm
    from sourdine.learning.noise.noisy_gradient import NoisyGradient as NoisyGradient
    from sourdine.learning.planning import TrainingPlan as TrainingPlan
    from sourdine.learning.planning import plan as plan
    from sourdine.learning.pricing import NoiseForecast as NoiseForecast
    from sourdine.learning.pricing import PricedPlan as PricedPlan
    from sourdine.learning.pricing import StepForecast as StepForecast
    from sourdine.learning.result import Progress as Progress
    from sourdine.learning.result import Trained as Trained
    from sourdine.learning.result import card_of as card_of
    from sourdine.learning.running.checkpoint import Checkpoint as Checkpoint
    from sourdine.learning.selecting.best_of_runs import BestOfRuns as BestOfRuns
    from sourdine.learning.selecting.selection import Candidate as Candidate
    from sourdine.learning.selecting.selection import Selected as Selected
    from sourdine.learning.selecting.selection import select_best as select_best
    from sourdine.learning.step import Step as Step

_HOMES = {
    "ALONE": "learning.devices.processes",
    "Augmentation": "learning.data.augmentation",
    "AllocatedBatches": "learning.data.batches",
    "Automatic": "learning.gradients.clipping",
    "BLT": "learning.correlation.declared",
    "Banded": "learning.correlation.declared",
    "BinaryTree": "learning.correlation.declared",
    "BestOfRuns": "learning.selecting.best_of_runs",
    "Candidate": "learning.selecting.selection",
    "Selected": "learning.selecting.selection",
    "select_best": "learning.selecting.selection",
    "Card": "accounting.certificate.card",
    "Clipping": "learning.gradients.clipping",
    "CsvLog": "learning.evaluation.csv_log",
    "EarlyStopping": "learning.evaluation.stopping",
    "CyclicBatches": "learning.data.batches",
    "Engine": "learning.gradients.engine",
    "FixedBatches": "learning.data.batches",
    "Flat": "learning.gradients.clipping",
    "StepForecast": "learning.pricing",
    "PricedPlan": "learning.pricing",
    "UnitIds": "learning.data.units",
    "Execution": "learning.execution",
    "Checkpoint": "learning.running.checkpoint",
    "LeastNoise": "learning.correlation.declared",
    "Memory": "learning.memory.model",
    "NoiseForecast": "learning.pricing",
    "NoisyGradient": "learning.noise.noisy_gradient",
    "PerLayer": "learning.gradients.clipping",
    "TrainingPlan": "learning.planning",
    "PoissonBatches": "learning.data.batches",
    "ProcessGone": "learning.devices.processes",
    "Processes": "learning.devices.processes",
    "Progress": "learning.result",
    "QuantileClipping": "learning.gradients.adaptive",
    "Repeats": "learning.baseline",
    "Sampler": "accounting.dpsgd.training",
    "ShuffledBatches": "learning.data.batches",
    "Solved": "learning.least_squares.solve",
    "Step": "learning.step",
    "VoidRun": "core.errors",
    "Trained": "learning.result",
    "TruncatedBatches": "learning.data.batches",
    "card_of": "learning.result",
    "check": "learning.gradients.self_test",
    "fit": "learning.fitting",
    "loader": "learning.dataloader",
    "measure": "learning.forecast",
    "memory_of": "learning.memory.dry_run",
    "plan": "learning.planning",
    "repeat": "learning.baseline",
    "solve": "learning.least_squares.solve",
    "with_group_norm": "learning.models",
}

__all__ = [  # noqa: RUF022  (by plain order)
    "ALONE",
    "AllocatedBatches",
    "Augmentation",
    "Automatic",
    "BLT",
    "Banded",
    "BestOfRuns",
    "BinaryTree",
    "Candidate",
    "Card",
    "Checkpoint",
    "Clipping",
    "CsvLog",
    "CyclicBatches",
    "EarlyStopping",
    "Engine",
    "Execution",
    "FixedBatches",
    "Flat",
    "LeastNoise",
    "Memory",
    "NoiseForecast",
    "NoisyGradient",
    "PerLayer",
    "PoissonBatches",
    "PricedPlan",
    "ProcessGone",
    "Processes",
    "Progress",
    "QuantileClipping",
    "Repeats",
    "Sampler",
    "Selected",
    "ShuffledBatches",
    "Solved",
    "Step",
    "StepForecast",
    "Trained",
    "TrainingPlan",
    "TruncatedBatches",
    "UnitIds",
    "VoidRun",
    "card_of",
    "check",
    "fit",
    "loader",
    "measure",
    "memory_of",
    "plan",
    "repeat",
    "select_best",
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
            f"Training needs torch, which is not installed. Install it with: {install_line('learn')}"
        ) from problem


def __dir__() -> list[str]:
    return sorted(__all__)
