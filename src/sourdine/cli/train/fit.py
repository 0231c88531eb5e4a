"""`sourdine train fit`: train a model on sensitive data, and hand it over with its certificate."""

import json
import statistics
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Union

import typer

from sourdine.cli.budget.options import Group, MaxBatchSize, Relation
from sourdine.cli.certificate import CERTIFICATE
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import number, plain_bracket
from sourdine.cli.train.options import (
    AsJson,
    Batch,
    Cache,
    ChosenModel,
    Classes,
    Data,
    Delta,
    Drawn,
    Epochs,
    Epsilon,
    Extra,
    Grey,
    Head,
    Hidden,
    Looked,
    Noise,
    Patches,
    Reduce,
    Side,
    Spec,
    StatedRun,
    Steps,
    Target,
    Test,
    Units,
    Weights,
    optimizer_of,
    read_epsilon,
    read_parts,
)
from sourdine.cli.train.progress import training_bar
from sourdine.cli.train.solve import refuse as refuse_for_least_squares
from sourdine.cli.train.solve import solve_privately
from sourdine.core import check, disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted

if TYPE_CHECKING:
    from sourdine.accounting.ledger import Ledger
    from sourdine.learning.baseline import Unprotected
    from sourdine.learning.data.labelled import Labelled
    from sourdine.learning.features.extractor import Extractor
    from sourdine.learning.least_squares.solve import Solved
    from sourdine.learning.models import Recipe
    from sourdine.learning.result import Trained

Run = Union["Trained", "Unprotected", "Solved"]
MODEL, CARD, RUNS = "model.pt", "card.md", "runs.json"
_OWNER = "train fit"
_PLAIN_BATCH = 64
_LONGEST = 200  # characters of what the ledger notes


def fit(
    data: Data,
    *,
    model: Head = None,
    features: Looked = None,
    weights: Weights = None,
    reduce: Reduce = 1,
    patches: Patches = None,
    hidden: Hidden = None,
    extra_layer: Extra = None,
    epsilon: Epsilon = None,
    delta: Delta = "1e-5",
    noise: Noise = None,
    epochs: Epochs = None,
    steps: Steps = None,
    batch: Batch = None,
    sampler: Drawn = "poisson",
    most: MaxBatchSize = None,
    neighbours: Relation = None,
    group: Group = 1,
    size: Units = None,
    rate: Annotated[
        str | None,
        typer.Option("--learning-rate", "--lr", help="The length of a step. Without: the usual."),
    ] = None,
    momentum: Annotated[
        str | None,
        typer.Option("--momentum", help="What goes on of a step. Without: the usual."),
    ] = None,
    clip: Annotated[
        str | None,
        typer.Option("--clip", help="The norm of clipped gradients. Without: the usual."),
    ] = None,
    averaging: Annotated[
        str | None, typer.Option("--averaging", help="The decay of an average over the steps; 0 for none.")
    ] = None,
    without_privacy: Annotated[
        bool, typer.Option("--without-privacy", help="Train as usual, to compare. It protects nobody.")
    ] = False,
    repeats: Annotated[int, typer.Option("--repeats", help="Train so often, each from a fresh start.")] = 1,
    ledger: Annotated[Path | None, typer.Option(help="Pay from this ledger before training begins.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Keep the run in this file, and go on from it if it is there.")
    ] = None,
    cache: Cache = None,
    single: Annotated[
        bool, typer.Option("--single", help="Features in single precision, not in half: twice the room.")
    ] = False,
    classes: Classes = 10,
    side: Side = 32,
    grey: Grey = False,
    spec: Spec = None,
    target: Target = None,
    test: Test = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The folder. Without it: DATA-model, here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model within a budget, and write it with a card and its certificate.

    model.pt holds a plain state_dict of torch. Accuracy is told on the test part of the data, which must be
    public. Nothing is spent if anything stated is wrong. With --features, the features of images are computed
    once and frozen, and a head is trained on them; --model vgg16 trains the convolutions too.

    Examples: sourdine train fit mnist --epsilon 3 ·
    sourdine train fit mnist --model cnn --epsilon 3 --epochs 15 --repeats 3 --ledger mnist.ledger ·
    sourdine train fit flowers --side 224 --features vgg16 --weights vgg16.pth --reduce 2 --model mlp
    --hidden 512 --cache kept --epsilon 8 ·
    sourdine train fit mnist --features random --model least-squares --epsilon 0.5 ·
    sourdine train fit people.csv --model linear --target ill --epsilon 1 --checkpoint people.run
    """
    chosen = ChosenModel.read(
        _OWNER,
        model=model,
        features=features,
        weights=weights,
        reduce=reduce,
        patches=patches,
        hidden=hidden,
        extra=extra_layer,
    )
    recipe = _recipe(
        chosen.recipe(read_epsilon(_OWNER, epsilon)),
        rate=rate,
        momentum=momentum,
        clip=clip,
        averaging=averaging,
        epochs=epochs,
    )
    count = check.integer(_OWNER, "repeats", repeats, 1, 1000)
    if chosen.kind is None:
        refuse_for_least_squares(
            noise=noise,
            epochs=epochs,
            steps=steps,
            batch=batch,
            size=size,
            learning_rate=rate,
            momentum=momentum,
            clip=clip,
            averaging=averaging,
            checkpoint=checkpoint,
            without_privacy=without_privacy or None,
            repeats=None if count == 1 else count,
            sampler=None if sampler == "poisson" else sampler,
            most=most,
            neighbours=neighbours,
            group=None if group == 1 else group,
        )
    if without_privacy:
        _refuse(epsilon=epsilon, noise=noise, ledger=ledger, checkpoint=checkpoint, steps=steps)
        stated = None
    else:
        stated = StatedRun.read(
            _OWNER,
            recipe,
            epsilon=epsilon,
            noise=noise,
            delta=delta,
            epochs=epochs,
            steps=steps,
            sampler=sampler,
            size=size,
            most=most,
            neighbours=neighbours,
            group=group,
        )
    folder = Path(f"{data.resolve().stem}-model") if output is None else output
    places = [folder] if count == 1 else [folder / f"run-{turn + 1}" for turn in range(count)]
    _check_free([place / name for place in places for name in (MODEL, CARD, CERTIFICATE)] + [folder / RUNS])
    show.check_place(checkpoint)
    parts = read_parts(data, classes=classes, side=side, grey=grey, spec=spec, target=target, test=test)
    warning = "" if stated is None else _warning(stated, len(parts.train))
    if warning and not as_json:
        show.say(warning, mark="WARNING: ")
    with ExitStack() as held:
        paid = None if ledger is None else held.enter_context(_open(ledger))
        job = _Job(chosen, recipe, stated, *chosen.prepared(parts, cache, single=single), paid)
        for place in places:
            show.check_folder(place)
        runs = []
        for turn, place in enumerate(places):
            label = "training" if count == 1 else f"run {turn + 1} of {count}"
            file = (
                checkpoint
                if checkpoint is None or count == 1
                else checkpoint.with_name(f"{checkpoint.name}.{turn + 1}")
            )
            run = job.run(label, file, batch)
            job.write(run, place)
            runs.append(run)
    told = _plain(runs, places) | {"warning": warning or None}
    show.keep(json.dumps(told, indent=2) + "\n", folder / RUNS)
    if as_json:
        show.document(told | {"files": [str(path) for path in _files(folder)]})
    else:
        _print(runs, folder)


@dataclass(frozen=True)
class _Job:
    """One of several like runs."""

    chosen: ChosenModel
    recipe: "Recipe"
    stated: StatedRun | None
    train: "Labelled"
    test: "Labelled | None"
    features: "Extractor | None"
    ledger: "Ledger | None"

    def run(self, label: str, checkpoint: Path | None, batch: int | None) -> "Run":
        from sourdine.learning.baseline import fit_without_privacy
        from sourdine.learning.fitting import fit as fit_privately
        from sourdine.learning.gradients.clipping import Flat

        purpose = f"train the model {self.chosen.name}"[:_LONGEST]
        if self.chosen.kind is None:
            assert self.stated is not None
            assert self.stated.epsilon is not None
            return solve_privately(
                self.train,
                self.test,
                epsilon=self.stated.epsilon,
                delta=self.stated.delta,
                ledger=self.ledger,
                purpose=purpose,
            )
        fresh = self.chosen.fresh(self.train.shape, len(self.train.classes))
        optimizer = optimizer_of(self.recipe.learning_rate, self.recipe.momentum)
        public = None if self.test is None else self.test.pair
        with training_bar(label) as watch:
            if self.stated is None:
                return fit_without_privacy(
                    fresh,
                    self.train.pair,
                    epochs=self.recipe.epochs,
                    batch=min(_PLAIN_BATCH, len(self.train)) if batch is None else batch,
                    optimizer=optimizer,
                    public=public,
                    watch=watch,
                )
            return fit_privately(
                fresh,
                self.train.pair,
                delta=self.stated.delta,
                epsilon=self.stated.epsilon,
                noise=self.stated.noise,
                epochs=self.stated.epochs,
                steps=self.stated.steps,
                batch=self.recipe.batch_for(self.stated.size or len(self.train)) if batch is None else batch,
                sampler=self.stated.sampler,
                most=self.stated.most,
                neighbours=self.stated.neighbours,
                group=self.stated.group,
                size=self.stated.size,
                clipping=Flat(norm=self.recipe.clip),
                optimizer=optimizer,
                averaging=self.recipe.averaging,
                public=public,
                checkpoint=checkpoint,
                watch=watch,
                ledger=self.ledger,
                purpose=purpose,
            )

    def write(self, run: "Run", place: Path) -> None:
        """The model, its card, and its certificate if it was paid."""
        import torch

        with disk.whole_file(place / MODEL) as waiting:  # it appears when all that goes with it is there
            torch.save(run.model.state_dict(), waiting)
            self._describe(run, place, waiting)

    def _describe(self, run: "Run", place: Path, model: Path) -> None:
        """The card of a model that waits, and its certificate."""
        from sourdine.learning.baseline import Unprotected
        from sourdine.learning.least_squares.solve import Solved

        named, classes = self.chosen.name, ", ".join(self.train.classes)
        if isinstance(run, Unprotected):
            show.keep(_WARNING.format(kind=named, classes=classes), place / CARD)
            return
        from sourdine.learning.result import card_of

        title = f"A {named} model, trained with differential privacy"
        if isinstance(run, Solved):
            card = run.card(self.ledger, name=title)
        else:
            card = card_of(run, self.ledger, name=title)
        facts = card.facts | {"model": named, "classes": classes}
        if self.chosen.reduce > 1:
            facts["images"] = f"reduced to 1/{self.chosen.reduce} of their height and width"
        if self.features is not None:
            facts["features"] = (
                f"{self.features!r}, fixed beforehand, computed image by image, so that they take nothing "
                "from other images"
            )
        card = replace(card, facts=facts)
        if card.certificate is not None:
            tied = card.certificate.with_digests([model])
            show.keep(tied.to_json() + "\n", place / CERTIFICATE)
            card = replace(card, certificate=tied)
        show.keep(card.text(), place / CARD)


_WARNING = """# A {kind} model, trained WITHOUT privacy

It may hold anything about anybody in the data it was trained on. Do not hand it out.

Classes: {classes}.
"""


def _recipe(
    usual: "Recipe",
    *,
    rate: str | None,
    momentum: str | None,
    clip: str | None,
    averaging: str | None,
    epochs: int | None,
) -> "Recipe":
    """The settings of a model, with what was stated in place of what is usual."""
    made = usual
    if rate is not None:
        step = float(number(_OWNER, "learning-rate", rate, Fraction(1, 10**9), 10**6))
        made = replace(made, learning_rate=step)
    if momentum is not None:
        made = replace(made, momentum=float(number(_OWNER, "momentum", momentum, 0, Fraction(9999, 10**4))))
    if clip is not None:
        made = replace(made, clip=float(number(_OWNER, "clip", clip, Fraction(1, 10**6), 10**6)))
    if averaging is not None:
        decay = float(number(_OWNER, "averaging", averaging, 0, Fraction(99999, 10**5)))
        made = replace(made, averaging=decay or None)
    if epochs is not None:
        made = replace(made, epochs=check.integer(_OWNER, "epochs", epochs, 1, 1 << 20))
    return made


def _warning(stated: StatedRun, present: int) -> str:
    """What is doubtful about the guarantee, told before anything is paid or trained."""
    from sourdine.accounting.dpsgd.training import warn_of_delta

    size = present if stated.size is None else stated.size
    return warn_of_delta(stated.delta, size, f"the {counted(size, 'example')}")


def _refuse(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise InvalidParameter(
                f"Training without privacy takes no --{name}. Leave it out, or leave out --without-privacy."
            )


def _check_free(places: list[Path]) -> None:
    for place in places:
        if place.exists():
            raise InvalidParameter(
                f"{place.parent} already holds a file {place.name}, which is not written over. "
                "Name another folder with -o."
            )


def _open(path: Path) -> "Ledger":
    from sourdine.accounting.ledger import Ledger

    return Ledger.open(path)


def _accuracies(runs: "list[Run]") -> list[float]:
    return [run.accuracy for run in runs if run.accuracy is not None]


def _plain(runs: "list[Run]", places: list[Path]) -> dict[str, object]:
    from sourdine.cli.train.plan import plain
    from sourdine.learning.baseline import Repeats

    trained, private = _kinds(runs)
    found = _accuracies(runs)
    return {
        "private": bool(private),
        "epsilon": plain_bracket(private[0].epsilon) if private else None,
        "epsilon_of_all": plain_bracket(Repeats(tuple(trained)).epsilon) if len(trained) > 1 else None,
        "plan": plain(trained[0].plan) if trained else None,
        "secure": all(run.secure for run in private) if private else None,
        "resumed": any(run.resumed for run in trained) if private else None,
        "mean": statistics.mean(found) if found else None,
        "deviation": statistics.stdev(found) if len(found) > 1 else None,
        "runs": [
            {
                "folder": str(place),
                "accuracy": run.accuracy,
                "line": next((each.receipt.number for each in private if each is run and each.receipt), None),
                "history": [
                    {"epoch": each.epoch, "step": each.step, "loss": each.loss, "accuracy": each.accuracy}
                    for each in getattr(run, "history", ())
                ],
            }
            for run, place in zip(runs, places, strict=True)
        ],
    }


def _kinds(runs: "list[Run]") -> "tuple[list[Trained], list[Trained | Solved]]":
    """Those that were trained privately, and all that are private."""
    from sourdine.learning.least_squares.solve import Solved
    from sourdine.learning.result import Trained

    return (
        [run for run in runs if isinstance(run, Trained)],
        [run for run in runs if isinstance(run, Trained | Solved)],
    )


def _print(runs: "list[Run]", folder: Path) -> None:
    from sourdine.learning.baseline import Repeats

    trained, private = _kinds(runs)
    if private:
        for name, value in private[0].words().items():
            show.line(f"{name.capitalize():<16} {value}")
    else:
        show.line("TRAINED WITHOUT PRIVACY: the model may hold anything about anybody.")
    found = _accuracies(runs)
    if len(found) > 1:
        listed = ", ".join(f"{100 * each:.2f}" for each in found)
        show.line(
            f"{'Accuracy':<16} {100 * statistics.mean(found):.2f} % on average, standard deviation "
            f"{100 * statistics.stdev(found):.2f} ({listed})"
        )
    elif found:
        show.line(f"{'Accuracy':<16} {100 * found[0]:.2f} %")
    if len(trained) > 1:
        whole = Repeats(tuple(trained)).epsilon.upper
        show.say(
            f"Each run has this epsilon of its own. Whoever gets several models pays for several: all "
            f"{len(private)} together have epsilon {whole:.4g}."
        )
    if any(run.resumed for run in trained):
        show.line("Went on from a checkpoint: paid once, with the same epsilon.")
    for run in private:
        if run.receipt is not None:
            show.line(f"Paid from the ledger, line {run.receipt.number}.")
    if private and private[0].receipt is None:
        show.line("Not paid from a ledger: whoever trains on these data again must add up the epsilons.")
    for path in _files(folder):
        show.line(f"  {path}")


def _files(folder: Path) -> list[Path]:
    names = (MODEL, CARD, CERTIFICATE, RUNS)
    return sorted(path for path in folder.rglob("*") if path.name in names)
