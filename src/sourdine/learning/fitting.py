"""Private training in one call."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from numpy.typing import ArrayLike
from torch import nn
from torch.optim import SGD, Optimizer

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.ledger import opened
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.learning.data.augmentation import Augmentation, AugmentedExamples
from sourdine.learning.data.examples import Examples, batch_of, examples_of
from sourdine.learning.data.named import Collate
from sourdine.learning.data.units import UnitIds
from sourdine.learning.devices.placement import Placement
from sourdine.learning.devices.wrapping import unwrap
from sourdine.learning.evaluation.judging import Metric, check_metrics
from sourdine.learning.evaluation.stopping import EarlyStopping, check_stopping
from sourdine.learning.exact import usual_places
from sourdine.learning.execution import Execution, check_execution
from sourdine.learning.gradients.clipping import Clipping, Flat
from sourdine.learning.gradients.owners import check_model
from sourdine.learning.planning import TrainingPlan, check_plan
from sourdine.learning.planning import plan as price
from sourdine.learning.result import Progress, Trained
from sourdine.learning.running.checkpoint import Checkpoint
from sourdine.learning.running.moving import MakeOptimizer, MakeSchedule
from sourdine.learning.running.run import ReportProgress, Run
from sourdine.learning.task import Losses, Task, check_loss, cross_entropy

_LEARNING_RATE = 0.5


def fit(
    model: nn.Module,
    data: object,
    plan: TrainingPlan,
    *,
    collate: Collate | None = None,
    units: UnitIds | ArrayLike | Iterable[object] | None = None,
    loss: Losses | None = None,
    clipping: Clipping | None = None,
    optimizer: MakeOptimizer | None = None,
    schedule: MakeSchedule | None = None,
    averaging: float | None = None,
    augmentation: Augmentation | None = None,
    public: object = None,
    metrics: Mapping[str, Metric] | None = None,
    stopping: EarlyStopping | None = None,
    checkpoint: Checkpoint | Path | str | None = None,
    execution: Execution | None = None,
    progress: ReportProgress | Sequence[ReportProgress] | None = None,
    ledger: Ledger | Path | str | None = None,
    purpose: str = "train a model",
    bits: Bits = SYSTEM,
) -> Trained:
    """Train a copy of a model on sensitive data, within the (epsilon, delta) of a plan.

    `data` is (inputs, targets), a torch Dataset, or a DataLoader, whose dataset is then sampled anew, in
    batches of its size unless the plan states one. Items may be dicts, as data sets and tokenizers of Hugging
    Face give them, or the data one dict of tensors: the column 'labels' is the target, and the others are
    arguments of the model, of which the loss is given the `logits` if it names some. The first item tells
    keys, shapes and types; one that is unlike it adds nothing. The ledger, or the one in a file, is charged
    before an example is looked at.

    - `plan`: the budget, the length of the run and how batches are drawn.
    - `collate`: makes tensors of a list of items, which is one at a time, padded to a stated length.
    - `units`: an id for each example, whose examples are protected together; `UnitIds` says how many of one
      id may count each time, one unless told.
    - `loss`: gives one number for each example; cross entropy unless told.
    - `optimizer` and `schedule`: functions that make them, from the parameters and from the
      optimizer; both step once a batch.
    - `averaging`: the decay of an average of the parameters over the steps, which is then the model.
    - `augmentation`: how images are changed at random before a gradient is taken; it costs no epsilon.
    - `public`: examples that are nobody's secret, to tell accuracy on after each epoch.
    - `metrics`: functions of outputs and targets by name, told on the public examples beside accuracy.
    - `stopping`: a rule that ends the run early by what public examples tell; the plan is paid as a whole.
    - `checkpoint`: a file; a run that was killed goes on from it, is paid once and costs the same epsilon.
      It is written after each epoch; `Checkpoint` may say more often.
    - `execution`: on which device, how much at once and by how many processes, which changes no price.
    - `progress`: a function, or several, told after each step how far the run is; `CsvLog` writes it down.

    >>> import torch
    >>> x = torch.randn(200, 5, generator=torch.Generator().manual_seed(1))
    >>> y = (x[:, 0] > 0).long()
    >>> plan = TrainingPlan(epsilon=8, delta=1e-3, epochs=5, batch_size=40)
    >>> trained = fit(nn.Linear(5, 2), (x, y), plan)
    >>> trained.plan.steps, trained.epsilon.upper <= 8, sorted(trained.model.state_dict())
    (25, True, ['bias', 'weight'])
    """
    how = check_execution("fit", execution)
    model, processes = unwrap(model, how.processes)
    with processes.all_or_none():
        examples = examples_of(data, collate)
        shown_public = None if public is None else _alike(examples_of(public, collate), examples)
        task = task_of(model, loss, how.placement, examples.names)
        check_optimizer("fit", optimizer)
        owners = _owners(units, examples)
        present = examples.size if owners is None else len(owners)
        wanted = check_plan("fit", plan)
        if wanted.batch_size is None:
            wanted = replace(wanted, batch_size=batch_of(data))
        priced = price(wanted, size=present)
        if not priced.batches.hides_size and priced.size != present:
            raise check.fail(
                "fit", "size", "be left out unless batches are drawn by Poisson sampling", priced.size
            )
        clip = Flat() if clipping is None else clipping
        shown, copies = augmented("fit", examples, augmentation, bits)
        prepared = how.prepare(
            task,
            examples,
            clipping=clip,
            examples_per_unit=copies * (1 if owners is None else owners.max_examples),
            batch_size=priced.batch_size,
        )
        physical = prepared.physical_batch_size
        if priced.exact and how.physical_batch_size is None:
            physical = min(physical, usual_places(model, priced.batch_size))
        run = Run(
            task=task,
            original=model,
            plan=replace(priced, forecast=prepared.forecast),
            clipping=clip,
            examples=shown,
            copies=copies,
            units=owners,
            optimizer=partial(SGD, lr=_LEARNING_RATE) if optimizer is None else optimizer,
            schedule=schedule,
            averaging=averaging,
            physical_batch_size=physical,
            way=prepared.way,
            tried=prepared.tried,
            public=shown_public,
            metrics=check_metrics(metrics, public),
            stopping=check_stopping(stopping, public, metrics or ()),
            progress=_all_of(progress),
            bits=bits,
            processes=processes,
        )
    file = checkpoint if checkpoint is None or isinstance(checkpoint, Checkpoint) else Checkpoint(checkpoint)
    with ExitStack() as stack:
        payer = None
        with processes.all_or_none():
            if processes.first:
                payer = stack.enter_context(opened(ledger))
                if file is not None:
                    stack.enter_context(file.lock())
        return run.done(file if processes.first else None, payer, purpose)


def _all_of(progress: ReportProgress | Sequence[ReportProgress] | None) -> ReportProgress | None:
    """One function that tells several."""
    if progress is None or callable(progress):
        return progress
    listeners = tuple(progress)
    if not all(callable(each) for each in listeners):
        raise check.fail("fit", "progress", "be a function, or several of them", progress)

    def tell(now: Progress) -> None:
        for each in listeners:
            each(now)

    return tell


def augmented(
    owner: str, examples: Examples, augmentation: Augmentation | None, bits: Bits
) -> tuple[Examples, int]:
    """The examples as a model sees them, and how many versions of each come in a row."""
    if augmentation is None:
        return examples, 1
    value: object = augmentation
    if not isinstance(value, Augmentation):
        raise check.fail(owner, "augmentation", "be an Augmentation", value, "Write Augmentation(flip=True).")
    return AugmentedExamples(examples, augmentation, bits), augmentation.copies


def _alike(public: Examples, examples: Examples) -> Examples:
    """Public examples, of which a model is asked the same."""
    if public.names != examples.names:
        raise InvalidParameter(
            "The 'public' examples of fit must have the columns of the data. Give both the same, by the same "
            "names."
        )
    return public


def task_of(
    model: nn.Module,
    loss: Losses | None,
    placement: Placement | None = None,
    names: tuple[str, ...] | None = None,
) -> Task:
    """A copy of a model to train and its loss, or why it cannot be trained privately."""
    check_model(model)
    where = Placement() if placement is None else placement
    copied = where.put(copy.deepcopy(model)).train()
    return Task(copied, cross_entropy if loss is None else check_loss(loss), where.autocast, names)


def check_optimizer(owner: str, optimizer: object) -> None:
    """Refuse an optimizer that exists already: it would step the parameters of another model."""
    if isinstance(optimizer, Optimizer):
        raise InvalidParameter(
            f"The 'optimizer' of {owner} must be a function that makes one from parameters, since a copy of "
            "the model is trained. Pass for example lambda parameters: torch.optim.SGD(parameters, lr=0.1)."
        )


def _owners(ids: UnitIds | ArrayLike | Iterable[object] | None, examples: Examples) -> UnitIds | None:
    """Whose examples they are, if that was said."""
    if ids is None:
        return None
    units = ids if isinstance(ids, UnitIds) else UnitIds(ids)
    if units.examples != examples.size:
        raise InvalidParameter(
            f"The 'units' of fit must hold one id for each of the {examples.size:,} examples. "
            f"They hold {units.examples:,}."
        )
    if not len(units):
        raise InvalidParameter("The 'units' of fit hold no id at all, so there is nobody to learn from.")
    return units
