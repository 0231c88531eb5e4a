"""A model judged on public examples: loss, accuracy, and measures of the user's own."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.batches import Indices
from sourdine.learning.data.examples import Examples
from sourdine.learning.result import Progress
from sourdine.learning.task import Task, cross_entropy

Metric = Callable[[Tensor, Tensor], float | Tensor]
_AT_ONCE = 1000


@dataclass(frozen=True)
class Judge:
    """Tells how good a model is on examples that were declared public.

    A metric is a function of all outputs and targets that gives a number, for example
    `{"top 5": lambda outputs, targets: top_k_accuracy(targets, outputs, k=5)}`.
    """

    task: Task
    public: Examples
    metrics: Mapping[str, Metric] = field(default_factory=dict)

    def judged(self, now: Progress) -> Progress:
        """How far a run is, with loss, accuracy and metrics; a metric that fails is not a number."""
        return self._judged(now, _number)

    def rehearse(self) -> None:
        """Judge once, and raise where something fails: before anything is paid."""
        self._judged(Progress(step=0, steps=1, epoch=0, epsilon=0.0), _checked)

    def _judged(self, now: Progress, value_of: "_ValueOf") -> Progress:
        size, losses, hits = self.public.size, 0.0, 0
        outputs: list[Tensor] = []
        targets: list[Tensor] = []
        self.task.model.eval()
        with torch.no_grad():
            for start in range(0, size, _AT_ONCE):
                scores, classes = self._run(np.arange(start, min(start + _AT_ONCE, size)))
                losses += float(self.task.loss(scores, classes).sum())
                hits += int((scores.argmax(1) == classes).sum()) if self._has_classes else 0
                if self.metrics:
                    outputs.append(scores.cpu())
                    targets.append(classes.cpu())
            measures = {
                name: value_of(name, metric, torch.cat(outputs), torch.cat(targets))
                for name, metric in self.metrics.items()
            }
        self.task.model.train()
        accuracy = hits / size if self._has_classes else None
        return replace(now, loss=losses / size, accuracy=accuracy, metrics=measures)

    @property
    def _has_classes(self) -> bool:
        return self.task.loss is cross_entropy and self.public.like()[-1].ndim == 1

    def _run(self, places: Indices) -> tuple[Tensor, Tensor]:
        return self.task.outputs(self.public.batch(places))


_ValueOf = Callable[[str, Metric, Tensor, Tensor], float]


def _number(name: str, metric: Metric, outputs: Tensor, targets: Tensor) -> float:
    try:
        return float(metric(outputs, targets))
    except Exception:  # the run is paid for: it ends with the numbers that there are
        return math.nan


def _checked(name: str, metric: Metric, outputs: Tensor, targets: Tensor) -> float:
    try:
        return float(metric(outputs, targets))
    except Exception as problem:
        raise InvalidParameter(
            f"The metric '{name}' cannot be computed: {str(problem).rstrip('. ')}. It must be a function of "
            "outputs and targets that gives one number. Nothing was paid for."
        ) from problem


def check_metrics(metrics: object, public: object) -> Mapping[str, Metric]:
    """Metrics by name, if there are public examples to compute them on."""
    if metrics is None:
        return {}
    if not isinstance(metrics, Mapping) or not all(
        isinstance(name, str) and callable(each) for name, each in metrics.items()
    ):
        raise InvalidParameter(
            "The 'metrics' of fit must be a dict from names to functions of outputs and targets. Write "
            "metrics={'recall': lambda outputs, targets: ...}."
        )
    if public is None:
        raise InvalidParameter(
            "The 'metrics' of fit need 'public' examples: nothing is told of the private ones, since it was "
            "not paid for. Pass public=(inputs, targets)."
        )
    return metrics
