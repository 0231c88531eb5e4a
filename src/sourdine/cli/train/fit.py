"""`sourdine train fit`: train a model on sensitive data, and hand it over with its certificate."""

import json
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.option_groups import with_groups
from sourdine.cli.shared.parse import AsJson, number
from sourdine.cli.train.handover import RUNS, Handover, Run, check_free, files_in, plain_runs, print_runs
from sourdine.cli.train.model import ChosenModel, ModelOptions
from sourdine.cli.train.options import (
    OPTIMIZERS,
    Cache,
    Data,
    DataOptions,
    ExecutionOptions,
    PlanOptions,
    Test,
    optimizer_of,
    with_usual_batch,
)
from sourdine.cli.train.progress import training_bar
from sourdine.cli.train.solve import refuse as refuse_for_least_squares
from sourdine.cli.train.solve import solve_privately
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted

if TYPE_CHECKING:
    from sourdine.accounting.ledger import Ledger
    from sourdine.learning.data.augmentation import Augmentation
    from sourdine.learning.data.labelled import Labelled
    from sourdine.learning.execution import Execution
    from sourdine.learning.models import Recipe
    from sourdine.learning.planning import TrainingPlan
    from sourdine.learning.result import Progress
    from sourdine.learning.running.run import ReportProgress

_OWNER = "train fit"
_PLAIN_BATCH = 64
_ADAPTIVE_RATE = 0.002  # of optimizers that scale their steps themselves
_AUGMENTED: dict[str, type[int] | type[float]] = {
    "flip": int,
    "shift": int,
    "rotate": float,
    "crop": float,
    "blur": float,
}
_LONGEST = 200  # characters of what the ledger notes


@dataclass(frozen=True, kw_only=True)
class RecipeOptions:
    """What takes the place of the usual settings of a model."""

    learning_rate: Annotated[
        str | None,
        typer.Option("--learning-rate", "--lr", help="The length of a step. Without: the usual."),
    ] = None
    momentum: Annotated[
        str | None,
        typer.Option("--momentum", help="How much of the last step carries over. Without: the usual."),
    ] = None
    clip: Annotated[
        str | None,
        typer.Option("--clip", help="The norm of clipped gradients. Without: the usual."),
    ] = None
    averaging: Annotated[
        str | None, typer.Option("--averaging", help="The decay of an average over the steps; 0 for none.")
    ] = None
    optimizer: Annotated[
        str | None,
        typer.Option("--optimizer", help=f"{', '.join(OPTIMIZERS)}. It costs no epsilon. Without: sgd."),
    ] = None
    augment: Annotated[
        str | None,
        typer.Option(
            "--augment",
            help="Images changed at random in every step: flip, shift=PIXELS, rotate=DEGREES, blur=PIXELS, "
            "separated by commas. It costs no epsilon.",
        ),
    ] = None
    copies: Annotated[
        int, typer.Option("--copies", help="With --augment: versions of an image, averaged in a step.")
    ] = 1

    def recipe(self, usual: "Recipe", epochs: int | None) -> "Recipe":
        """The settings of a model, with what was stated in place of what is usual."""
        recipe = usual
        if self.optimizer is not None:
            if self.optimizer not in OPTIMIZERS:
                raise check.fail(_OWNER, "optimizer", f"be one of {', '.join(OPTIMIZERS)}", self.optimizer)
            if self.optimizer != "sgd":
                if self.momentum is not None:
                    raise InvalidParameter(
                        f"The optimizer {self.optimizer} takes no --momentum. Leave it out, or take sgd."
                    )
                recipe = replace(recipe, optimizer=self.optimizer, learning_rate=_ADAPTIVE_RATE)
        if self.learning_rate is not None:
            step = float(number(_OWNER, "learning-rate", self.learning_rate, Fraction(1, 10**9), 10**6))
            recipe = replace(recipe, learning_rate=step)
        if self.momentum is not None:
            momentum = float(number(_OWNER, "momentum", self.momentum, 0, Fraction(9999, 10**4)))
            recipe = replace(recipe, momentum=momentum)
        if self.clip is not None:
            recipe = replace(recipe, clip=float(number(_OWNER, "clip", self.clip, Fraction(1, 10**6), 10**6)))
        if self.averaging is not None:
            decay = float(number(_OWNER, "averaging", self.averaging, 0, Fraction(99999, 10**5)))
            recipe = replace(recipe, averaging=decay or None)
        if epochs is not None:
            recipe = replace(recipe, epochs=check.integer(_OWNER, "epochs", epochs, 1, 1 << 20))
        return recipe

    def augmentation(self) -> "Augmentation | None":
        """How images are changed, if they are."""
        from sourdine.learning.data.augmentation import Augmentation

        if self.augment is None:
            if self.copies != 1:
                raise InvalidParameter("Copies of what? Give --augment with --copies.")
            return None
        changes: dict[str, bool | int | float] = {}
        for word in self.augment.split(","):
            name, sign, text = (part.strip() for part in word.partition("="))
            if name not in _AUGMENTED or bool(sign) == (name == "flip"):
                raise check.fail(
                    _OWNER, "augment", "be of flip, shift=4, rotate=15, crop=0.5 and blur=1", self.augment
                )
            changes[name] = True if name == "flip" else _AUGMENTED[name](number(_OWNER, name, text, 0, 4096))
        return Augmentation(**changes, copies=self.copies)  # type: ignore[arg-type]


@with_groups
def fit(
    data: Data,
    *,
    model: ModelOptions,
    hidden: Annotated[
        int | None, typer.Option("--hidden", help="Units of the hidden layer of mlp or VGG.")
    ] = None,
    extra_layer: Annotated[
        int | None, typer.Option("--extra-layer", help="One more hidden layer, of so many units.")
    ] = None,
    plan: PlanOptions,
    settings: RecipeOptions,
    how: ExecutionOptions,
    without_privacy: Annotated[
        bool, typer.Option("--without-privacy", help="Train as usual, to compare. It protects nobody.")
    ] = False,
    repeats: Annotated[
        int, typer.Option("--repeats", help="How many times to train, each from a fresh start.")
    ] = 1,
    ledger: Annotated[str | None, typer.Option(help="Pay from this ledger before training begins.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep the run in this file, and go on from it if it is there.")
    ] = None,
    cache: Cache = None,
    single: Annotated[
        bool, typer.Option("--single", help="Features in single precision, not half: twice the space.")
    ] = False,
    reading: DataOptions,
    test: Test = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder. Without it: DATA-model, here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model within a budget, and write it with a card and its certificate.

    model.pt holds a plain state_dict of torch. Accuracy is reported on the test part of the data, which must
    be public. Nothing is spent if anything stated is wrong. With --features, the features of images are
    computed once and frozen, and a head is trained on them; --model vgg16 trains the convolutions too.

    Examples: sourdine train fit mnist --epsilon 3 ·
    sourdine train fit mnist --model cnn --epsilon 3 --epochs 15 --repeats 3 --ledger mnist.ledger ·
    sourdine train fit flowers --side 224 --features vgg16 --weights vgg16.pth --reduce 2 --model mlp
    --hidden 512 --cache kept --epsilon 8 ·
    sourdine train fit mnist --model cnn --epsilon 3 --optimizer adam --augment shift=2,rotate=10 --copies 4 ·
    sourdine train fit mnist --features random --model least-squares --epsilon 0.5 ·
    sourdine train fit people.csv --model linear --target ill --epsilon 1 --checkpoint people.run
    """
    chosen = model.choose(_OWNER, hidden=hidden, extra=extra_layer)
    recipe = settings.recipe(chosen.recipe(plan.level(_OWNER)), plan.epochs)
    augmentation = settings.augmentation()
    count = check.integer(_OWNER, "repeats", repeats, 1, 1000)
    if chosen.kind is None:
        refuse_for_least_squares(
            plan,
            learning_rate=settings.learning_rate,
            momentum=settings.momentum,
            clip=settings.clip,
            averaging=settings.averaging,
            optimizer=settings.optimizer,
            augment=settings.augment,
            checkpoint=checkpoint,
            without_privacy=without_privacy or None,
            repeats=None if count == 1 else count,
            device=how.device,
            dtype=how.dtype,
            physical_batch_size=how.physical_batch_size,
            log=how.log,
        )
    execution = how.execution()
    show.check_place(how.log)
    if without_privacy:
        _refuse(
            epsilon=plan.epsilon,
            noise_multiplier=plan.noise_multiplier,
            ledger=ledger,
            checkpoint=checkpoint,
            steps=plan.steps,
            device=how.device,
            dtype=how.dtype,
            physical_batch_size=how.physical_batch_size,
        )
    stated = None if without_privacy else plan.plan(_OWNER, recipe)
    folder = Path(f"{data.resolve().stem}-model") if output is None else output
    places = [folder] if count == 1 else [folder / f"run-{turn + 1}" for turn in range(count)]
    check_free(folder, places)
    show.check_place(checkpoint)
    parts = reading.read(data, test)
    warning = "" if stated is None else _warning(stated, len(parts.train))
    if warning and not as_json:
        show.say(warning, mark="WARNING: ")
    with ExitStack() as stack:
        paid = None if ledger is None else stack.enter_context(_open(ledger))
        train, judged, features = chosen.prepared(parts, cache, single=single)
        job = _Job(chosen, recipe, stated, plan.batch_size, train, judged, paid, augmentation, execution)
        handover = Handover(chosen, train.classes, features, paid)
        for place in places:
            show.check_folder(place)
        runs = []
        for turn, place in enumerate(places):
            label = "training" if count == 1 else f"run {turn + 1} of {count}"
            run = job.run(label, _numbered(checkpoint, turn, count), _numbered(how.log, turn, count))
            runs.append(run)
            document = plain_runs(runs, places[: turn + 1]) | {"warning": warning or None}
            summary = json.dumps(document, indent=2) + "\n"
            handover.write(run, place, summary if count == 1 else None)
    if count > 1:
        show.keep(summary, folder / RUNS)
    if as_json:
        show.document(document | {"files": [str(path) for path in files_in(folder)]})
    else:
        print_runs(runs, folder)


@dataclass(frozen=True)
class _Job:
    """One of several like runs."""

    chosen: ChosenModel
    recipe: "Recipe"
    plan: "TrainingPlan | None"  # None is training without privacy
    batch_size: int | None
    train: "Labelled"
    test: "Labelled | None"
    ledger: "Ledger | None"
    augmentation: "Augmentation | None"
    execution: "Execution"

    def run(self, label: str, checkpoint: Path | None, log: Path | None) -> "Run":
        from sourdine.learning.baseline import fit_without_privacy
        from sourdine.learning.evaluation.csv_log import CsvLog
        from sourdine.learning.fitting import fit as fit_privately
        from sourdine.learning.gradients.clipping import Flat

        purpose = f"train the model {self.chosen.name}"[:_LONGEST]
        if self.chosen.kind is None:
            assert self.plan is not None
            assert self.plan.epsilon is not None
            return solve_privately(
                self.train,
                self.test,
                epsilon=self.plan.epsilon,
                delta=self.plan.delta,
                ledger=self.ledger,
                purpose=purpose,
            )
        fresh = self.chosen.fresh(self.train.shape, len(self.train.classes))
        optimizer = optimizer_of(self.recipe.learning_rate, self.recipe.momentum, self.recipe.optimizer)
        public = None if self.test is None else self.test.pair
        with training_bar(label) as bar:
            progress = bar if log is None else _both(bar, CsvLog(log))
            if self.plan is None:
                usual = min(_PLAIN_BATCH, len(self.train))
                return fit_without_privacy(
                    fresh,
                    self.train.pair,
                    epochs=self.recipe.epochs,
                    batch_size=usual if self.batch_size is None else self.batch_size,
                    optimizer=optimizer,
                    augmentation=self.augmentation,
                    public=public,
                    progress=progress,
                )
            return fit_privately(
                fresh,
                self.train.pair,
                with_usual_batch(self.plan, self.recipe, len(self.train)),
                clipping=Flat(norm=self.recipe.clip),
                optimizer=optimizer,
                averaging=self.recipe.averaging,
                augmentation=self.augmentation,
                public=public,
                checkpoint=checkpoint,
                execution=self.execution,
                progress=progress,
                ledger=self.ledger,
                purpose=purpose,
            )


def _both(bar: "ReportProgress", log: "ReportProgress") -> "ReportProgress":
    def tell(now: "Progress") -> None:
        bar(now)
        log(now)

    return tell


def _numbered(path: Path | None, turn: int, count: int) -> Path | None:
    """The checkpoint of one of several runs, or its log."""
    if path is None or count == 1:
        return path
    return path.with_name(f"{path.name}.{turn + 1}")


def _warning(plan: "TrainingPlan", present: int) -> str:
    """What is doubtful about the guarantee, told before anything is paid or trained."""
    from sourdine.accounting.dpsgd.training import warn_of_delta

    size = present if plan.size is None else plan.size
    return warn_of_delta(plan.delta, size, f"the {counted(size, 'example')}")


def _refuse(**options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise InvalidParameter(
                f"Training without privacy takes no --{name.replace('_', '-')}. Leave it out, or leave out "
                "--without-privacy."
            )


def _open(path: str) -> "Ledger":
    from sourdine.accounting.ledger import Ledger

    return Ledger.open(path)
