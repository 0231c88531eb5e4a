"""An audit of training with correlated noise: every unit is a canary, and the correlation is taken off again.

Each canary has a coordinate of its own, and is in its batches or left out of all of them by a fair coin, as
the neighbours are of a run in a fixed order. Whoever sees all noisy sums knows how their noise is
correlated: its covariance tells which weights of the steps speak for a canary, with independent noise again.
Batches, clipping and noise are those of training itself. No data are looked at.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.linalg import cholesky, solve_triangular
from torch import nn

from sourdine.audit.one_run import Flags, Floats
from sourdine.audit.training.advantage import GradientAudit, audit_gradients
from sourdine.audit.training.canaries import HEIGHT
from sourdine.audit.training.checks import ALARM, Check
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits, coins
from sourdine.learning.correlation.stream import stream_of
from sourdine.learning.data.batches import Indices, mixed_order
from sourdine.learning.gradients.clipping import Flat
from sourdine.learning.planning import TrainingPlan, check_plan
from sourdine.learning.planning import plan as price
from sourdine.learning.pricing import PricedPlan
from sourdine.learning.step import Step

CONFIDENCE = 0.95
_OWNER = "audit_correlated"
_LEAST, _MOST = 64, 1 << 16  # canaries
_NUMBERS = 1 << 26  # of all steps, that are kept
_STEPS = 4096


@dataclass(frozen=True, kw_only=True)
class EquivalentRun:
    """Independent steps that cost as much as a correlated run, by its guarantee."""

    noise_multiplier: float
    sampling_rate: float
    steps: int
    delta: float


@dataclass(frozen=True, kw_only=True, eq=False)
class CorrelatedAudit:
    """What the canaries of a correlated run showed: its epsilon is at least `audited`.

    `claimed` is what the run states at the same delta. `verdict` accuses a faultless run with a chance of at
    most 10^-6.
    """

    claimed: float
    gradients: GradientAudit
    verdict: Check

    @property
    def audited(self) -> float:
        """The lower bound on epsilon, with the stated confidence."""
        return self.gradients.audited

    @property
    def refuted(self) -> bool:
        """Whether the run is not what it claims."""
        return self.verdict.failed


def audit_correlated(
    plan: TrainingPlan,
    *,
    confidence: float = CONFIDENCE,
    bits: Bits = SYSTEM,
) -> CorrelatedAudit:
    """Train once on canaries alone, as many as the plan's size, and bound epsilon by how well they are told.

    The guarantee under audit is that of one unit left out of its batches. An audit can refute the claim of a
    run, never prove it.

    >>> from sourdine.learning import BLT
    >>> from sourdine.testing import SeededBits
    >>> settings = TrainingPlan(
    ...     epsilon=2, delta=1e-5, epochs=2, batch_size=100, size=400, correlation=BLT(buffers=1)
    ... )
    >>> found = audit_correlated(settings, bits=SeededBits(1))
    >>> found.audited < found.claimed <= 2, found.refuted
    (True, False)
    """
    priced = _audited(plan)
    confidence = check.confidence(_OWNER, confidence)
    included = coins(bits, priced.size)
    noisy = _trained(priced, included, bits)
    evidence = _evidence(priced, noisy)
    gradients, verdict = audit_gradients(
        evidence, included, _equivalent(priced), confidence=confidence, alarm=ALARM
    )
    return CorrelatedAudit(claimed=priced.epsilon.upper, gradients=gradients, verdict=verdict)


def _audited(plan: TrainingPlan) -> PricedPlan:
    """A run that this audit can question."""
    settings = check_plan(_OWNER, plan)
    if settings.correlation is None or settings.size is None:
        raise InvalidParameter(
            "This audit is of training with correlated noise, on canaries alone. Give the plan a "
            "'correlation', such as BLT(), and a 'size': how many canaries there are."
        )
    settings = replace(settings, size=check.integer(_OWNER, "size", settings.size, _LEAST, _MOST))
    priced = price(settings)
    if priced.factor is None:
        raise InvalidParameter(
            "The plan took independent noise in Poisson batches. Audit that with audit_training."
        )
    steps = check.integer(_OWNER, "steps", priced.steps, 1, min(_STEPS, _NUMBERS // priced.size))
    return replace(priced, steps=steps)


def _trained(priced: PricedPlan, included: Flags, bits: Bits) -> Floats:
    """The noisy sums of all steps, in clipping norms: a row a step, a column a canary."""
    table = nn.Embedding(priced.size + 1, 1, padding_idx=0)  # row 0 is of all who are left out
    nn.init.zeros_(table.weight)
    step = Step.of(table, priced, clipping=Flat(norm=1.0), bits=bits)
    rows = torch.from_numpy(np.where(included, np.arange(1, priced.size + 1), 0))
    noisy = np.zeros((priced.steps, priced.size))
    for at, places in enumerate(priced.draw(bits)):
        if len(places):
            step.take(lambda part: HEIGHT * table(part).squeeze(1), (rows[torch.from_numpy(places)],))
        step.close()
        assert table.weight.grad is not None
        noisy[at] = table.weight.grad[1:, 0].double().numpy() * priced.batch_size
    return noisy


def _pieces(priced: PricedPlan) -> list[Indices]:
    """Who may come at each step of a turn, or of an epoch: the order is no secret."""
    order = mixed_order(priced.size)
    if priced.parts is not None:
        return list(np.array_split(order, priced.parts))
    return [order[start : start + priced.batch_size] for start in range(0, priced.size, priced.batch_size)]


def _evidence(priced: PricedPlan, noisy: Floats) -> Floats:
    """What speaks for each canary, as log-likelihood ratios."""
    root = cholesky(_covariance(priced), lower=True)
    white = solve_triangular(root, noisy, lower=True)
    moves = solve_triangular(root, np.eye(priced.steps), lower=True)  # what one use moves, by its step
    evidence, pieces, chance = np.zeros(priced.size), _pieces(priced), _equivalent(priced).sampling_rate
    for start, piece in enumerate(pieces):
        uses = moves[:, start :: len(pieces)]
        if priced.parts is None:
            moved = uses.sum(axis=1)
            evidence[piece] = moved @ white[:, piece] - moved @ moved / 2
            continue
        along = uses.T @ white[:, piece] - (uses**2).sum(axis=0)[:, None] / 2
        evidence[piece] = np.logaddexp(np.log1p(-chance), np.log(chance) + along).sum(axis=0)
    return evidence


def _covariance(priced: PricedPlan) -> Floats:
    """How the noise of steps is correlated for one coordinate: by the honest stream, one fresh draw at a
    time."""
    assert priced.factor is not None
    stream = stream_of(priced.factor, priced.every)
    apart = iter(torch.eye(2 * priced.steps))  # trees draw less than twice a step
    rows = [stream.following(lambda: next(apart)).double().numpy() for _ in range(priced.steps)]
    weights = np.array(rows) * priced.noise_multiplier
    return np.asarray(weights @ weights.T)


def _equivalent(priced: PricedPlan) -> EquivalentRun:
    """So many steps without sampling as a unit has uses, or one sampled step for each turn of the parts."""
    rate = 1.0 if priced.parts is None else priced.parts * priced.batch_size / priced.size
    return EquivalentRun(
        noise_multiplier=priced.noise_multiplier,
        sampling_rate=rate,
        steps=-(-priced.steps // priced.every),
        delta=priced.delta,
    )
