"""What an audit notes of every step: the noise that was added, who was drawn, and how far each canary moved.

A trace sees what training keeps secret, so it is for audits of data that one owns. Nothing outside this
package makes one, `fit` takes none, and none is handed out: beside data an audit tells of it only whether the
checks hold. An ordinary run does not pay for it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sourdine.audit.training.checks import Floats
from sourdine.audit.training.probe import TABLE, ProbedExamples
from sourdine.learning.data.batches import Indices
from sourdine.learning.data.trees import Tree
from sourdine.learning.gradients.way import GradientWay
from sourdine.learning.running.run import Run
from sourdine.learning.step import Step

_SAMPLE = 1 << 15  # coordinates of which the noise of every step is kept, and
_NUMBERS = 1 << 23  # how many numbers that may be over all steps
LAGS = tuple(2**power for power in range(7))  # how far apart steps, coordinates and units are compared
_CELLS = 32  # of equal chance, by which the law of the noise is looked at

EDGES: Floats = np.asarray(torch.special.ndtri(torch.arange(1, _CELLS, dtype=torch.float64) / _CELLS).numpy())


class Trace:
    """Numbers of a run, step by step. The noise is that of the sums, in the deviations that were claimed."""

    def __init__(self, layers: Mapping[str, int], *, steps: int, units: int, canaries: int) -> None:
        self.layers = dict(layers)
        self.units, self.planned = units, steps
        self.squares: list[Floats] = []  # of each step: sums of squared noise, by layer
        self.sums: list[Floats] = []
        self.beside: list[float] = []  # the noise along the sum it was added to
        self.cells = np.zeros(_CELLS, np.int64)
        self.samples: list[NDArray[np.float32]] = []
        share = max(1, min(_SAMPLE, _NUMBERS // steps) // len(self.layers))
        self._shares = {name: min(size, share) for name, size in self.layers.items()}
        self.draws = np.zeros(units, np.int64)  # how often each unit was
        self.sizes: list[int] = []
        self.twice = 0  # units that came more than once into one batch
        self.overlaps: dict[int, list[tuple[int, int]]] = {lag: [] for lag in LAGS}  # with batches before
        self.pairs: dict[int, list[int]] = {lag: [] for lag in LAGS}  # of units so far apart, both drawn
        self._before: list[NDArray[np.bool_]] = []
        self.moved = 0.0  # the most that a canary moved the sum by, in clipping norms
        self.astray = 0  # canaries that were drawn and did not count, or counted and were not drawn
        self.evidence = np.zeros(canaries)  # that each canary is in, as log-likelihood ratios

    @property
    def steps(self) -> int:
        """How many there were."""
        return len(self.sizes)

    def take_batch(self, places: Indices) -> None:
        """Note who was drawn."""
        mask = np.zeros(self.units, np.bool_)
        mask[places] = True
        self.twice += len(places) - int(mask.sum())
        self.draws += mask
        self.sizes.append(int(mask.sum()))
        for lag in LAGS:
            if lag <= len(self._before):
                other = self._before[-lag]
                self.overlaps[lag].append((int((mask & other).sum()), int(other.sum())))
            if 2 * lag <= self.units:
                blocks = mask[: self.units // (2 * lag) * 2 * lag].reshape(-1, 2, lag)
                self.pairs[lag].append(int((blocks[:, 0] & blocks[:, 1]).sum()))
        self._before = [*self._before, mask][-LAGS[-1] :]

    def take_noise(self, noise: Mapping[str, Tensor], clean: Mapping[str, Tensor]) -> None:
        """Note the noise of a step, in the deviations claimed, and how it lies to the sum below it."""
        flat = [noise[name].flatten() for name in self.layers]
        self.squares.append(np.array([float(each.square().sum()) for each in flat]))
        self.sums.append(np.array([float(each.sum()) for each in flat]))
        along = sum(float((noise[name] * clean[name]).sum()) for name in self.layers)
        length = float(torch.stack([clean[name].square().sum() for name in self.layers]).sum().sqrt())
        if length > 0:
            self.beside.append(along / length)
        few = torch.cat([each[: self._shares[name]] for name, each in zip(self.layers, flat, strict=True)])
        sample = few.to(torch.float32).cpu().numpy()
        self.cells += np.bincount(np.searchsorted(EDGES, sample), minlength=_CELLS)
        self.samples.append(sample)

    @property
    def parts(self) -> dict[str, slice]:
        """Where the kept noise of each layer stands."""
        ends = np.cumsum(list(self._shares.values())).tolist()
        return {
            name: slice(end - self._shares[name], end) for name, end in zip(self._shares, ends, strict=True)
        }


class TracedStep(Step):
    """A step that another one takes, with what it adds noted in a trace."""

    def __init__(self, inner: Step, claimed: "TracedRun") -> None:
        self.inner, self.trace, self._examples = inner, claimed.trace, claimed.watched
        self.processes, self._begun, self._follower = inner.processes, True, inner._follower
        self._intake = inner._intake
        self.clipping, self.batch_size, self.mechanism = inner.clipping, inner.batch_size, inner.mechanism
        self._norm, self._noise_claimed = float(claimed.clipping.norm), claimed.plan.noise_multiplier
        self._divisor, self._rate = claimed.plan.batch_size, claimed.plan.sampling_rate

    def ready(self, way: GradientWay) -> None:
        self.inner.ready(way)

    def take(self, losses: Callable[..., Tensor], batch: Tree, *, examples_per_unit: int = 1) -> None:
        self.inner.take(losses, batch, examples_per_unit=examples_per_unit)

    def close(self) -> None:
        requests, self._examples.requests = self._examples.requests, []
        places = np.concatenate(requests) if requests else np.zeros(0, np.int64)
        self.trace.take_batch(places)
        clean = {
            name: self.inner._sums[name].double().clone() if name in self.inner._sums else _zero(value)
            for name, value in self.inner._wanted.items()
        }
        self.inner.close()
        noisy = {
            name: _zero(value) if value.grad is None else value.grad.double() * self._divisor
            for name, value in self.inner._wanted.items()
        }
        deviation = self._noise_claimed * self._norm
        self.trace.take_noise({name: (noisy[name] - clean[name]) / deviation for name in clean}, clean)
        mask = np.zeros(clean[TABLE].numel(), np.bool_)
        mask[self._examples.rows_at(places)] = True
        self._note_canaries(_units(clean[TABLE], self._norm), _units(noisy[TABLE], self._norm), mask)

    def _note_canaries(self, clean: Floats, noisy: Floats, mask: NDArray[np.bool_]) -> None:
        """Note how far canaries moved the sum, in clipping norms, and what speaks for each."""
        trace = self.trace
        trace.moved = max(trace.moved, float(np.abs(clean).max()))
        trace.astray += int(((clean != 0) != mask).sum())
        # of the log-likelihood, if the canary was drawn
        shift = (noisy[1:] - 0.5) / self._noise_claimed**2
        with np.errstate(divide="ignore"):
            trace.evidence += np.logaddexp(np.log1p(-self._rate), shift + np.log(self._rate))


@dataclass(frozen=True, kw_only=True)
class TracedRun(Run):
    """A run whose every step is noted."""

    trace: Trace
    watched: ProbedExamples

    def made_step(self) -> Step:
        plan = self.plan
        inner = Step(
            self.task.model,
            noise_multiplier=plan.noise_multiplier,
            batch_size=plan.batch_size,
            steps=plan.steps,
            clipping=self.clipping,
            bits=self.bits,
        )
        return TracedStep(inner, self)


def _zero(value: Tensor) -> Tensor:
    return torch.zeros_like(value, dtype=torch.float64)


def _units(value: Tensor, norm: float) -> Floats:
    return np.asarray((value.flatten() / norm).cpu().numpy())
