"""`sourdine audit training`: train once with canaries, and see whether epsilon is what was claimed."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.option_groups import with_groups
from sourdine.cli.shared.parse import AsJson, Seed, bits_of, check_seed
from sourdine.cli.train.options import (
    DataOptions,
    Epochs,
    Noise,
    PlanOptions,
    Steps,
    need_torch,
    read_model,
)
from sourdine.cli.train.progress import training_bar
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted

if TYPE_CHECKING:
    from sourdine.audit.training import TrainingAudit
    from sourdine.core.random.bits import Bits
    from sourdine.learning.data.labelled import Labelled
    from sourdine.learning.models import Model
    from sourdine.learning.planning import TrainingPlan

_OWNER = "audit training"
_CANARIES, _GRADIENTS, _STEPS, _CLASSES = 2000, 20_000, 20, 10

_PHYSICAL = 1024  # canaries alone take little memory, so that none is measured


@with_groups
def training(
    data: Annotated[
        Path | None,
        typer.Argument(help="What to train on, as for `train fit`. Without: the canaries alone."),
    ] = None,
    *,
    model: Annotated[
        str, typer.Option("--model", "-m", help="linear, mlp or cnn. A linear model hides canaries least.")
    ] = "linear",
    epsilon: Annotated[str | None, typer.Option("--epsilon", help="What the run claims. Without: 4.")] = None,
    noise: Noise = None,
    delta: Annotated[str, typer.Option("--delta", "-d", help="The delta of the claim.")] = "1e-6",
    epochs: Epochs = None,
    steps: Steps = None,
    batch: Annotated[
        int | None,
        typer.Option("--batch-size", "-b", help="Units in a batch on average. Without: half of all."),
    ] = None,
    canaries: Annotated[int, typer.Option("--canaries", help="How many canaries.")] = _CANARIES,
    gradients: Annotated[
        int, typer.Option("--gradients", help="How many canaries in gradient space.")
    ] = _GRADIENTS,
    score: Annotated[
        str, typer.Option("--score", help="gradient (sees the weights) or loss (sees the answers).")
    ] = "gradient",
    confidence: Annotated[float, typer.Option("--confidence", help="Of the bound.")] = 0.95,
    ledger: Annotated[str | None, typer.Option(help="Pay from this ledger before training begins.")] = None,
    reading: DataOptions,
    output: Annotated[
        Path | None, typer.Option("--html", help="Write a page with charts to this file.")
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Train once with canaries, each in or out by a coin, and bound epsilon by how well that is guessed.

    Every step is watched: canaries in gradient space bound epsilon from what a step says of them, and noise,
    batches and clipping are checked against the claim, with at most one false alarm in a million. A bound
    by the trained model above the claim refutes it too, at the stated confidence. What is not refuted is not
    proven: the report says which faults would have been seen. Exit code 1 means that the claim is refuted. On
    data, the audit is a run like any other and costs its epsilon; where a ledger pays for it, the checks of
    noise and batches are left out.

    Examples: sourdine audit training ·
    sourdine audit training mnist --epsilon 3 --epochs 2 --batch-size 500 --html audit.html
    """
    need_torch()

    check_seed(_OWNER, seed)
    if seed is not None and data is not None:
        raise InvalidParameter("Noise that can be repeated protects nobody. Leave out --seed, or the data.")
    show.check_page(output)
    lasts = epochs is None and steps is None and (epsilon is None or noise is None)
    job = _Job.read(
        PlanOptions(
            epsilon="4" if epsilon is None and noise is None else epsilon,
            noise_multiplier=noise,
            delta=delta,
            epochs=epochs,
            steps=_STEPS if lasts else steps,
            batch_size=batch,
        ),
        model=model,
        canaries=canaries,
        gradients=gradients,
        score=score,
        confidence=confidence,
        read=lambda: None if data is None else reading.read(data).train,
    )
    audit = job.run(bits_of(_OWNER, seed), ledger, None if as_json else _announce)
    if output is not None:
        from sourdine.report.pages.training_audit import training_audit_page

        show.keep(training_audit_page(audit, job.words).html(), output)
    if as_json:
        show.document(plain(audit) | {"page": str(output) if output else None})
    else:
        _print(audit, job, ledger, output)
    raise typer.Exit(1 if audit.refuted else 0)


@dataclass(frozen=True, kw_only=True)
class _Job:
    """An audit as it was asked for."""

    kind: "Model"
    plan: "TrainingPlan"
    canaries: int
    gradients: int
    score: str
    confidence: float
    train: "Labelled | None"

    @classmethod
    def read(
        cls,
        options: PlanOptions,
        *,
        model: str,
        canaries: int,
        gradients: int,
        score: str,
        confidence: float,
        read: "Callable[[], Labelled | None]",
    ) -> "_Job":
        from sourdine.audit.training.audit import LEAST, MOST
        from sourdine.learning.models import RECIPES, features_of

        kind = read_model(_OWNER, model)
        plan = options.plan(_OWNER, RECIPES[kind])
        train = read()
        shape = (1, 28, 28) if train is None else train.shape
        if features_of(kind, shape) is not None:
            raise check.fail(_OWNER, "model", "see its examples as they are", model, "Take linear.")
        if train is None and str(kind) != "linear":
            raise InvalidParameter(
                f"Name data for the model {kind}. The canaries alone are for a linear model."
            )
        return cls(
            kind=kind,
            plan=plan,
            canaries=check.integer(_OWNER, "canaries", canaries, LEAST, MOST),
            gradients=check.integer(_OWNER, "gradients", gradients, LEAST, MOST),
            score=score,
            confidence=float(check.confidence(_OWNER, confidence)),
            train=train,
        )

    @property
    def words(self) -> str:
        """What was trained, in a sentence."""
        beside = "alone" if self.train is None else f"and {counted(len(self.train), 'example')}"
        return (
            f"A {self.kind} model was trained once on canaries {beside}. Each of the {self.canaries:,} "
            "canaries was in or left out by a fair coin, and the trained model was asked which. So was each "
            f"of {self.gradients:,} canaries in gradient space, about which every step was asked."
        )

    def run(
        self,
        bits: "Bits",
        ledger: str | None,
        announce: Callable[[float], object] | None = None,
    ) -> "TrainingAudit":
        from sourdine.accounting.ledger import Ledger
        from sourdine.audit.training import audit_training, pixel_canaries
        from sourdine.learning.devices.placement import one_thread
        from sourdine.learning.execution import Execution
        from sourdine.learning.models import model_of

        train, count = self.train, self.canaries
        if train is None:
            model, canaries = (
                model_of(self.kind, (count,), _CLASSES),
                pixel_canaries((count,), _CLASSES, count),
            )
        else:
            classes = len(train.classes)
            model, canaries = (
                model_of(self.kind, train.shape, classes),
                pixel_canaries(train.shape, classes, count),
            )
        everybody = (0 if train is None else len(train)) + count // 2 + self.gradients // 2
        plan = self.plan if self.plan.batch_size else replace(self.plan, batch_size=everybody // 2)
        with (
            training_bar("auditing") as progress,
            nullcontext() if ledger is None else Ledger.open(ledger) as paid,
            one_thread() if train is None else nullcontext(),  # canaries alone are small tensors
        ):
            return audit_training(
                model,
                None if train is None else train.pair,
                plan,
                canaries=canaries,
                gradients=self.gradients,
                score=self.score,
                confidence=self.confidence,
                execution=Execution(physical_batch_size=_PHYSICAL if train is None else None),
                progress=progress,
                announce=announce,
                ledger=paid,
                bits=bits,
            )


def plain(audit: "TrainingAudit") -> dict[str, object]:
    """What was found, for machines."""
    others, members = audit.rates()
    gradients = audit.gradients
    return {
        "claimed": audit.claimed,
        "audited": audit.audited,
        "exceeded": audit.exceeded,
        "refuted": audit.refuted,
        "delta": audit.delta,
        "confidence": audit.confidence,
        "canaries": audit.canaries,
        "guesses": audit.guesses,
        "right": audit.right,
        "reach": audit.reach,
        "every_step": None
        if gradients is None
        else {
            "audited": gradients.audited,
            "noise_multiplier": gradients.noise_multiplier
            if math.isfinite(gradients.noise_multiplier)
            else None,
            "claimed_noise_multiplier": gradients.claimed_noise_multiplier,
            "typical": gradients.typical,
            "least_noise": gradients.least_noise,
            "canaries": gradients.canaries,
            "right": gradients.right,
        },
        "checks": [
            {
                "check": each.name,
                "found": each.finding or None,
                "chance": each.chance,
                "alarm": each.alarm,
                "failed": each.failed,
                "smallest": each.smallest,
            }
            for each in audit.checks
        ],
        "secrecy": audit.secrecy.value,
        "roc": {"false_positives": others.tolist(), "true_positives": members.tolist()},
    }


def _announce(reach: float) -> None:
    show.line(f"The trained model can show an epsilon of at most {reach:.3g} of so many canaries.")


def _print(audit: "TrainingAudit", job: _Job, ledger: str | None, output: Path | None) -> None:
    from sourdine.audit.training import Secrecy
    from sourdine.report.pages.training_audit import CHECK_COLUMNS, audit_words, check_rows, verdict

    show.line(verdict(audit) + ".")
    for name, value in audit_words(audit).items():
        show.line(f"{name.capitalize():<10} {value}")
    show.table(CHECK_COLUMNS, check_rows(audit))
    if not audit.refuted:
        show.say("An audit that finds nothing proves nothing: it may be too weak. The proofs are elsewhere.")
    if audit.claimed > audit.reach:
        show.say("The claim lies beyond what so many canaries can show. Take more with --canaries.")
    if job.train is not None and ledger is None:
        show.say(
            "It was not paid from a ledger. The audit trained on your data: whatever you tell of it costs "
            "the epsilon of the run, or more if the claim is false."
        )
    if audit.secrecy is Secrecy.PAID:
        show.say(
            "The checks of noise and batches are left out: beside the model they would cost delta that no "
            "ledger could pay. Audit canaries alone, without data, to see them."
        )
    if output is not None:
        show.line(f"Wrote {output}.")
