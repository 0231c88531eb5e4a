"""What `sourdine train fit` hands over: the model with its card and certificate, and what is told of runs."""

import statistics
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Union

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import plain_bracket
from sourdine.cli.train.model import ChosenModel
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.files import CERTIFICATE

if TYPE_CHECKING:
    from sourdine.accounting.ledger import Ledger
    from sourdine.learning.baseline import Unprotected
    from sourdine.learning.features.extractor import Extractor
    from sourdine.learning.least_squares.solve import Solved
    from sourdine.learning.result import Trained

Run = Union["Trained", "Unprotected", "Solved"]
MODEL, CARD, RUNS = "model.pt", "card.md", "runs.json"

_WARNING = """# A {kind} model, trained WITHOUT privacy

It may hold anything about anybody in the data it was trained on. Do not hand it out.

Classes: {classes}.
"""


def check_free(folder: Path, places: list[Path]) -> None:
    """Refuse to write over an earlier model."""
    for place in [*(each / name for each in places for name in (MODEL, CARD, CERTIFICATE)), folder / RUNS]:
        if place.exists():
            raise InvalidParameter(
                f"{place.parent} already holds a file {place.name}, which is not written over. "
                "Name another folder with -o."
            )


@dataclass(frozen=True)
class Handover:
    """What is known of a model beside its run."""

    chosen: ChosenModel
    classes: tuple[str, ...]
    features: "Extractor | None"
    ledger: "Ledger | None"

    def write(self, run: "Run", place: Path, runs: str | None = None) -> None:
        """The model, its card, what is told of the run if it lies beside it, and its certificate if paid."""
        import torch

        with disk.whole_file(place / MODEL) as waiting:  # it appears when all that goes with it is there
            torch.save(run.model.state_dict(), waiting)
            if runs is not None:
                show.keep(runs, place / RUNS)
            self._describe(run, place, waiting)

    def _describe(self, run: "Run", place: Path, model: Path) -> None:
        """The card of a model that waits, and then its certificate, which covers all files."""
        from sourdine.learning.baseline import Unprotected
        from sourdine.learning.least_squares.solve import Solved

        named, classes = self.chosen.name, ", ".join(self.classes)
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
            card = replace(card, certificate=card.certificate.with_digests([model]))
        show.keep(card.text(), place / CARD)
        if card.certificate is not None:
            files = [model, place / CARD, *filter(Path.is_file, [place / RUNS])]
            tied = card.certificate.with_digests(files, complete=True)
            show.keep(tied.to_json() + "\n", place / CERTIFICATE)


def _accuracies(runs: "list[Run]") -> list[float]:
    return [run.accuracy for run in runs if run.accuracy is not None]


def plain_runs(runs: "list[Run]", places: list[Path]) -> dict[str, object]:
    """Some runs for machines."""
    from sourdine.cli.train.plan import plain_plan
    from sourdine.learning.baseline import Repeats

    trained, private = _kinds(runs)
    accuracies = _accuracies(runs)
    return {
        "private": bool(private),
        "epsilon": plain_bracket(private[0].epsilon) if private else None,
        "epsilon_of_all": plain_bracket(Repeats(tuple(trained)).epsilon) if len(trained) > 1 else None,
        "plan": plain_plan(trained[0].plan) if trained else None,
        "secure": all(run.secure for run in private) if private else None,
        "resumed": any(run.resumed for run in trained) if private else None,
        "mean": statistics.mean(accuracies) if accuracies else None,
        "deviation": statistics.stdev(accuracies) if len(accuracies) > 1 else None,
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


def print_runs(runs: "list[Run]", folder: Path) -> None:
    """Some runs as people read them."""
    from sourdine.learning.baseline import Repeats

    trained, private = _kinds(runs)
    if private:
        for name, value in private[0].words().items():
            show.line(f"{name.capitalize():<16} {value}")
    else:
        show.line("TRAINED WITHOUT PRIVACY: the model may hold anything about anybody.")
    accuracies = _accuracies(runs)
    if len(accuracies) > 1:
        listed = ", ".join(f"{100 * each:.2f}" for each in accuracies)
        show.line(
            f"{'Accuracy':<16} {100 * statistics.mean(accuracies):.2f} % on average, standard deviation "
            f"{100 * statistics.stdev(accuracies):.2f} ({listed})"
        )
    elif accuracies:
        show.line(f"{'Accuracy':<16} {100 * accuracies[0]:.2f} %")
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
    for path in files_in(folder):
        show.line(f"  {path}")


def files_in(folder: Path) -> list[Path]:
    """What was written."""
    names = (MODEL, CARD, CERTIFICATE, RUNS)
    return sorted(path for path in folder.rglob("*") if path.name in names)
