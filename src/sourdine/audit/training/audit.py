"""Canaries, training and the bound in one call."""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.optim import SGD

from sourdine.accounting.dpsgd.training import Sampler
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.ledger import opened
from sourdine.audit.one_run import Flags, Floats, guess
from sourdine.audit.training.advantage import GradientAudit, bound_of_model, largest_bound_of_model
from sourdine.audit.training.canaries import Canaries, Score, WithCanaries, pixel_canaries, scores
from sourdine.audit.training.checks import Check
from sourdine.audit.training.watched import Secrecy, Watched
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits, coins
from sourdine.learning.data.examples import Examples, Tensors, examples_of
from sourdine.learning.execution import Execution, check_execution
from sourdine.learning.fitting import check_optimizer
from sourdine.learning.gradients.clipping import Clipping
from sourdine.learning.planning import TrainingPlan, check_plan
from sourdine.learning.running.moving import MakeOptimizer
from sourdine.learning.running.run import ReportProgress
from sourdine.learning.task import Losses, Task, cross_entropy

CANARIES, GRADIENTS, CONFIDENCE = 2000, 20_000, 0.95
LEAST, MOST = 64, 1 << 20  # canaries
_SLOWLY = (
    1e-4  # a learning rate by which gradients stay what they are at the start; epsilon knows nothing of it
)
_OWNER = "audit_training"


@dataclass(frozen=True, kw_only=True, eq=False)
class TrainingAudit:
    """What an audit of one run found: its epsilon is at least `audited`, with the stated confidence.

    `claimed` is what the run states at the same delta, and `reach` the most that so many canaries can show
    of a run of its shape. `scores` and `included` tell of each canary how much
    the model looks like having seen it, and whether it had. `gradients` is what the canaries in gradient
    space show, with every step seen, and `checks` what noise, batches and clipping of all steps show, as far
    as the `secrecy` of the run allows it to be told.
    """

    claimed: float
    audited: float
    delta: float
    confidence: float
    right: int
    guesses: int
    scores: Floats
    included: Flags
    reach: float
    gradients: GradientAudit | None = None
    checks: tuple[Check, ...] = ()
    secrecy: Secrecy = Secrecy.NONE

    @property
    def canaries(self) -> int:
        """How many there were."""
        return len(self.included)

    @property
    def exceeded(self) -> bool:
        """Whether the claim is false, unless chance was against it."""
        return self.audited > self.claimed

    @property
    def faults(self) -> tuple[Check, ...]:
        """The checks that accuse the run; a faultless one has any with a chance of at most 10^-6."""
        return tuple(each for each in self.checks if each.failed)

    @property
    def best(self) -> float:
        """The higher of the two bounds: from the trained model, and from every step."""
        return max(self.audited, 0.0 if self.gradients is None else self.gradients.audited)

    @property
    def refuted(self) -> bool:
        """Whether the run is not what it claims, by the canaries of the trained model or by its steps."""
        return self.exceeded or bool(self.faults)

    def rates(self) -> tuple[Floats, Floats]:
        """False and true positives of an attacker who takes all scores from some level on for members."""
        order = np.argsort(-self.scores, kind="stable")
        ended = np.append(np.diff(self.scores[order]) != 0, True)  # equal scores come all at once
        members = self.included[order]
        others = np.cumsum(~members)[ended] / max(1, int((~members).sum()))
        return others, np.cumsum(members)[ended] / max(1, int(members.sum()))


def audit_training(
    model: nn.Module,
    data: object,
    plan: TrainingPlan,
    *,
    canaries: int | Canaries = CANARIES,
    gradients: int = GRADIENTS,
    score: Score | str = Score.GRADIENT,
    confidence: float = CONFIDENCE,
    loss: Losses | None = None,
    clipping: Clipping | None = None,
    optimizer: MakeOptimizer | None = None,
    execution: Execution | None = None,
    progress: ReportProgress | None = None,
    announce: Callable[[float], object] | None = None,
    ledger: Ledger | Path | str | None = None,
    bits: Bits = SYSTEM,
) -> TrainingAudit:
    """Train once with canaries, each in or out by a fair coin, and bound epsilon by how well that is guessed.

    The run is that of `fit` with Poisson batches, and the guarantee under audit is that for adding or
    removing one example. Every step is watched: the noise, who was drawn, how far canaries move a sum. An
    audit can refute the claim of a run, never prove it.

    - `data`: what is trained on beside the canaries. It may be None, if the canaries are given: they are
      then all there is, and nothing else hides them.
    - `plan`: the claim, and the run that makes it. Canaries count beside the size of the data.
    - `canaries`: how many `pixel_canaries` to make, or your own.
    - `gradients`: how many canaries in gradient space to add, each with a direction of its own.
    - `score`: "gradient" needs the weights before and after, and sees most; "loss" needs the answers only.
    - `optimizer`: steps so small that gradients stay what they are at the start, unless given.
    - `announce`: called with the largest epsilon that the trained model can show of so many canaries, before
      anything is charged or trained.

    The other parameters are those of `fit`. What comes back is computed from noisy sums and from canaries,
    so on sensitive data it costs what the run costs: the ledger pays for it as for any other. The checks of
    the noise and of who was drawn look at what no noise hides. Without data they are told as they are. With
    data they tell only whether they hold, as they do for an honest run but once in a million: beside the
    model that costs up to (1 + e^epsilon) 10^-6 of delta, so keep it to yourself. With data and a ledger they
    are left out, since no ledger could pay for them. If the claim is false, so is what was paid.

    >>> from sourdine.learning.models import linear
    >>> from sourdine.testing import SeededBits
    >>> found = audit_training(
    ...     linear((100,), 2), None, TrainingPlan(epsilon=2, delta=1e-5, steps=4, batch_size=50),
    ...     canaries=pixel_canaries((100,), 2, 100), gradients=500, bits=SeededBits(1)
    ... )
    >>> found.audited <= found.claimed <= 2, found.faults
    (True, ())
    """
    plan = _audited(plan)
    kind = _score(score)
    confidence = check.confidence(_OWNER, confidence)
    check_optimizer(_OWNER, optimizer)
    losses = cross_entropy if loss is None else loss
    own = None if data is None else examples_of(data)
    all_canaries = canaries if isinstance(canaries, Canaries) else _canaries_for(model, own, canaries)
    count = check.integer(_OWNER, "canaries", len(all_canaries), LEAST, MOST)
    probes = check.integer(_OWNER, "gradients", gradients, LEAST, MOST)
    included = coins(bits, count)
    inside = all_canaries.at(torch.from_numpy(np.flatnonzero(included)))
    examples = Tensors(inside.inputs, inside.targets) if own is None else WithCanaries(own, inside)
    start = copy.deepcopy(model)
    watched = Watched(
        model,
        examples,
        canaries=all_canaries,
        gradients=coins(bits, probes),
        data=0 if own is None else own.size,
        loss=losses,
        clipping=clipping,
        bits=bits,
    )
    priced = watched.priced(plan)
    reach = largest_bound_of_model(count, priced, confidence=float(confidence))
    if announce is not None:
        announce(reach)
    with opened(ledger) as payer:
        trained = watched.trained(
            priced,
            optimizer=_slowly if optimizer is None else optimizer,
            execution=check_execution(_OWNER, execution),
            progress=progress,
            ledger=payer,
        )
    secrecy = Secrecy.NONE if own is None else Secrecy.DATA if ledger is None else Secrecy.PAID
    gradient, checks = watched.examined(priced, confidence, secrecy)
    evidence = scores(kind, start.eval(), trained, losses, all_canaries)
    best = bound_of_model(guess(evidence, included), count, priced, confidence=float(confidence))
    return TrainingAudit(
        claimed=priced.epsilon.upper,
        audited=best.epsilon,
        delta=plan.delta,
        confidence=float(confidence),
        right=best.right,
        guesses=best.guesses,
        scores=np.nan_to_num(evidence, nan=-math.inf),
        included=included,
        reach=reach,
        gradients=gradient,
        checks=checks,
        secrecy=secrecy,
    )


def _audited(plan_of_run: TrainingPlan) -> TrainingPlan:
    """A plan whose guarantee the canaries can question: one example more or less, in Poisson batches."""
    plan = check_plan(_OWNER, plan_of_run)
    if plan.sampler is not Sampler.POISSON:
        remedy = "Batches of other laws are not audited."
        raise check.fail(_OWNER, "sampler", "be poisson", str(plan.sampler), remedy)
    if plan.neighbours not in (None, Neighbours.ADD_REMOVE):
        remedy = "Canaries are added or left out. Leave it out of the plan."
        raise check.fail(_OWNER, "neighbours", "be add-remove", str(plan.neighbours), remedy)
    if plan.group > 1:
        remedy = "Each canary is one example. Audit the run for one."
        raise check.fail(_OWNER, "group", "be 1", plan.group, remedy)
    return plan


def _slowly(values: object) -> SGD:
    return SGD(values, lr=_SLOWLY)  # type: ignore[arg-type]


def _canaries_for(model: nn.Module, examples: Examples | None, count: int) -> Canaries:
    """Canaries of the shape of the data, with labels for all that the model tells apart."""
    if examples is None:
        raise InvalidParameter(
            "Without data nothing says what canaries should look like. Make some with "
            "pixel_canaries(shape, classes, count), and pass them as canaries."
        )
    like = examples.like()
    if not like[0].is_floating_point():
        raise InvalidParameter(
            "Canaries can be made for inputs that are real numbers. Pass your own for others: "
            "Canaries(inputs, targets)."
        )
    with torch.no_grad():
        outputs, _ = Task(copy.deepcopy(model).eval(), cross_entropy).outputs(like)
    return pixel_canaries(like[0].shape[1:], outputs.shape[1], count)


def _score(score: Score | str) -> Score:
    try:
        return Score(score)
    except ValueError:
        raise check.fail(_OWNER, "score", f"be one of {', '.join(Score)}", score) from None
