"""Private training in one call."""

import copy
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

from numpy.typing import ArrayLike
from torch import nn
from torch.optim import SGD, Optimizer

from sourdine.accounting.dpsgd.training import Sampler
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.ledger import opened
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.randomness.bits import SYSTEM, Bits
from sourdine.learning.checkpoint import Checkpoint
from sourdine.learning.data.batches import UnitExamples
from sourdine.learning.data.examples import Examples, RepeatedExamples, batch_of, examples_of
from sourdine.learning.forecast import measure
from sourdine.learning.gradients.clipping import Clipping, Flat
from sourdine.learning.gradients.engine import check_model
from sourdine.learning.gradients.self_test import REHEARSED, self_test
from sourdine.learning.planning import plan
from sourdine.learning.result import Trained
from sourdine.learning.run import MakeOptimizer, MakeSchedule, Run, Watch
from sourdine.learning.task import Losses, Task, check_loss, cross_entropy

_LEARNING_RATE = 0.5


def fit(
    model: nn.Module,
    data: object,
    *,
    delta: float,
    epsilon: float | None = None,
    noise: float | None = None,
    epochs: int | None = None,
    steps: int | None = None,
    batch: int | None = None,
    sampler: Sampler | str = Sampler.POISSON,
    most: int | None = None,
    neighbours: Neighbours | str | None = None,
    group: int = 1,
    size: int | None = None,
    unit: ArrayLike | Iterable[object] | None = None,
    examples_per_unit: int | None = None,
    loss: Losses | None = None,
    clipping: Clipping | None = None,
    optimizer: MakeOptimizer | None = None,
    schedule: MakeSchedule | None = None,
    averaging: float | None = None,
    physical: int | None = None,
    public: object = None,
    rehearsal: object = None,
    checkpoint: Path | str | None = None,
    every: int | None = None,
    watch: Watch | None = None,
    ledger: Ledger | Path | str | None = None,
    purpose: str = "train a model",
    bits: Bits = SYSTEM,
) -> Trained:
    """Train a copy of a model on sensitive data, within (epsilon, delta).

    `data` is (inputs, targets), a torch Dataset, or a DataLoader, whose dataset is then sampled anew. With
    `epsilon` the noise follows from the epochs (or steps); with `noise` the epsilon does; with both, training
    stops where the budget ends. The ledger, or the one in a file, is charged before an example is looked at.

    - `sampler`: "poisson" or "allocation" (the guarantee is for adding or removing a unit), "fixed"
    (replacing one), "truncated" or "shuffle" (leaving one out), each with its own epsilon. With "allocation"
    each unit is in exactly one batch of each epoch; with "truncated" no batch is larger than `most`.
    - `neighbours`: "add-remove", "zero-out" or "replace", where the sampler is accounted for others than its
    own. - `group`: how many units are protected together, for Poisson batches.
    - `size`: a public number of units for the sampling rate, if the true one is not public.
    - `unit`: an id for each example; all examples of one id are protected together, and at most
      `examples_per_unit` of them count each time.
    - `loss`: gives one number for each example; cross entropy unless told.
    - `optimizer` and `schedule`: functions that make them, from the parameters and from the
      optimizer; both step once a batch.
    - `averaging`: the decay of an average of the parameters over the steps, which is then the model.
    - `physical`: how many units are computed at once, which changes nothing else.
    - `public`: examples that are nobody's secret, to tell accuracy on after each epoch.
    - `rehearsal`: a few public examples for the self-test; made-up ones unless given.
    - `checkpoint`: a file; a run that was killed goes on from it, is paid once and costs the same epsilon.
      It is written after each epoch, and after `every` steps.

    >>> import torch
    >>> x = torch.randn(200, 5, generator=torch.Generator().manual_seed(1))
    >>> y = (x[:, 0] > 0).long()
    >>> trained = fit(nn.Linear(5, 2), (x, y), epsilon=8, delta=1e-3, epochs=5, batch=40)
    >>> trained.plan.steps, trained.epsilon.upper <= 8, sorted(trained.model.state_dict())
    (25, True, ['bias', 'weight'])
    """
    check_model(model)
    task = Task(copy.deepcopy(model).train(), cross_entropy if loss is None else check_loss(loss))
    if isinstance(optimizer, Optimizer):
        raise InvalidParameter(
            "The 'optimizer' of fit must be a function that makes one from parameters, since a copy of the "
            "model is trained. Pass for example lambda parameters: torch.optim.SGD(parameters, lr=0.1)."
        )
    examples = examples_of(data)
    people = _people(unit, examples_per_unit, examples)
    present = examples.size if people is None else len(people)
    planned = plan(
        size=present if size is None else size,
        delta=delta,
        epsilon=epsilon,
        noise=noise,
        epochs=epochs,
        steps=steps,
        batch=batch if batch is not None else batch_of(data),
        sampler=sampler,
        most=most,
        neighbours=neighbours,
        group=group,
    )
    if not planned.batches.hides_size and planned.size != present:
        raise check.fail("fit", "size", "be left out unless batches are drawn by Poisson sampling", size)
    clip = Flat() if clipping is None else clipping
    per_unit = 1 if people is None else people.most
    rehearsed = examples if rehearsal is None else RepeatedExamples(examples_of(rehearsal))
    self_test(task, rehearsed.made_up(REHEARSED))
    if physical is None:
        measured = measure(model, rehearsed, loss=loss, clipping=clip, examples_per_unit=per_unit)
        planned, physical = replace(planned, forecast=measured), measured.physical
    run = Run(
        task=task,
        given=model,
        plan=planned,
        clipping=clip,
        examples=examples,
        people=people,
        optimizer=partial(SGD, lr=_LEARNING_RATE) if optimizer is None else optimizer,
        schedule=schedule,
        averaging=averaging,
        physical=check.integer("fit", "physical", physical, 1, 1 << 30),
        public=None if public is None else examples_of(public),
        every=None if every is None else check.integer("fit", "every", every, 1, 1 << 40),
        watch=watch,
        bits=bits,
    )
    file = None if checkpoint is None else Checkpoint(checkpoint)
    with opened(ledger) as payer, nullcontext() if file is None else file.held():
        return run.done(file, payer, purpose)


def _people(
    ids: ArrayLike | Iterable[object] | None, most: int | None, examples: Examples
) -> UnitExamples | None:
    """Whose examples they are, if that was said."""
    if ids is None:
        if most is not None:
            raise check.fail("fit", "examples_per_unit", "come with 'unit', an id for each example", most)
        return None
    if most is None:
        remedy = "Say how many examples of one person may count each time."
        raise check.fail("fit", "examples_per_unit", "be given with 'unit'", None, remedy)
    people = UnitExamples(ids, most)
    if people.examples != examples.size:
        raise InvalidParameter(
            f"The 'unit' of fit must hold one id for each of the {examples.size:,} examples. "
            f"It holds {people.examples:,}."
        )
    if not len(people):
        raise InvalidParameter("The 'unit' of fit holds no id at all, so there is nobody to learn from.")
    return people
