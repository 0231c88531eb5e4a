"""`sourdine train sweep`: train over lists of settings, with results in CSV and charts."""

from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.option_groups import with_groups
from sourdine.cli.shared.parse import AsJson
from sourdine.cli.train.lists import SWEEP, Lists
from sourdine.cli.train.model import ChosenModel, ModelOptions
from sourdine.cli.train.options import (
    Cache,
    Data,
    DataOptions,
    Delta,
    SamplerName,
    Test,
    Units,
    optimizer_of,
    read_delta,
)
from sourdine.cli.train.progress import SweepBar, sweep_bar
from sourdine.cli.train.sweep_report import SweepFiles, plain_sweep, print_sweep
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, plain

if TYPE_CHECKING:
    from sourdine.accounting.dpsgd.training import Sampler
    from sourdine.accounting.ledger import Ledger
    from sourdine.learning.data.labelled import Labelled
    from sourdine.learning.pricing import PricedPlan
    from sourdine.learning.result import Trained
    from sourdine.learning.sweep.settings import Setting, Sweep


@with_groups
def sweep(
    data: Data,
    *,
    rates: Annotated[
        str | None,
        typer.Option("--learning-rate", "--lr", help="A list, such as 0.1,0.5. Without: the usual."),
    ] = None,
    batches: Annotated[
        str | None, typer.Option("--batch-size", "-b", help="A list of batches, such as 64,512.")
    ] = None,
    epochs: Annotated[str | None, typer.Option("--epochs", "-e", help="A list. Without: the usual.")] = None,
    epsilons: Annotated[
        str | None,
        typer.Option("--epsilon", help="A list of budgets of single runs; or else --noise-multiplier."),
    ] = None,
    noises: Annotated[
        str | None, typer.Option("--noise-multiplier", "-n", help="A list of noises, in clipping norms.")
    ] = None,
    clips: Annotated[
        str | None, typer.Option("--clip", help="A list of clipping norms. Without: the usual.")
    ] = None,
    hidden: Annotated[str | None, typer.Option("--hidden", help="A list of hidden units, for mlp.")] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="How many times to train each setting.")] = 1,
    random: Annotated[
        int | None, typer.Option("--random", help="So many of all settings, drawn at random.")
    ] = None,
    model: ModelOptions,
    delta: Delta = "1e-5",
    sampler: SamplerName = "poisson",
    size: Units = None,
    ledger: Annotated[str | None, typer.Option(help="Pay for all runs from this ledger, at once.")] = None,
    cache: Cache = None,
    reading: DataOptions,
    test: Test = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Results, with other files of this name beside.")
    ] = Path("sweep.csv"),
    as_json: AsJson = False,
) -> None:
    """Train over lists of settings: every combination, or some at random, each several times.

    Writes means with their deviations (sweep.csv), accuracies epoch by epoch (sweep.epochs.csv), a page with
    charts (sweep.html) and a journal (sweep.journal). If it is killed, the same command goes on and repeats
    no finished run. Accuracy is reported on the test part of the data, which must be public. A sweep costs
    what all its runs cost together: the price is shown before it begins, and paid if there is a ledger.

    Examples: sourdine train sweep mnist --model linear --lr 0.1,0.5 --batch-size 64,512 --epsilon 1,3 ·
    sourdine train sweep mnist --model cnn --lr 0.05,0.1,0.5 --batch-size 256 --noise-multiplier 0.8,1,1.5
    --clip 0.5,1 --epochs 5,10 --repeats 3 --random 10 --ledger mnist.ledger -o digits.csv
    """
    chosen = model.choose(SWEEP)
    if chosen.kind is None:
        raise check.fail(SWEEP, "model", "be trained in steps, with settings to vary", "least-squares")
    lists = Lists.read(
        chosen,
        rates=rates,
        batches=batches,
        epochs=epochs,
        epsilons=epsilons,
        noises=noises,
        clips=clips,
        hidden=hidden,
    )
    files = SweepFiles(output)
    files.check()
    level = read_delta(SWEEP, delta)
    scheme = _sampler(sampler)
    parts = reading.read(data, test)
    if parts.test is None:
        raise InvalidParameter(
            "A sweep compares settings by their accuracy, and there are no public examples to tell it on. "
            "Name some with --test."
        )
    from sourdine.learning.sweep.run import run_sweep
    from sourdine.learning.sweep.settings import Sweep

    units = len(parts.train) if size is None else size
    plan = Sweep(
        settings=_chosen(lists.settings(units), random, files.journal),
        repeats=repeats,
        size=units,
        delta=level,
        sampler=scheme,
    )
    about = {"data": str(data.resolve()), "model": chosen.name, "random": random or "all"}
    if not as_json:
        _announce(plan)
    train, judged, _ = chosen.prepared(parts, cache, single=False)
    assert judged is not None
    with (
        sweep_bar(plan) as bar,
        nullcontext() if ledger is None else _opened(ledger) as paid,
    ):
        job = _Job(chosen, train, judged, size, bar)
        swept = run_sweep(plan, job.run, files.journal, about=about, ledger=paid, progress=bar.begins)
    files.write(swept, chosen.name)
    if as_json:
        show.document(plain_sweep(swept) | {"files": [str(each) for each in files.all]})
    else:
        print_sweep(swept, files)


def _sampler(text: str) -> "Sampler":
    from sourdine.accounting.dpsgd.training import Sampler

    if text not in (kinds := [str(each) for each in Sampler]):
        raise check.fail(SWEEP, "sampler", f"be one of {', '.join(kinds)}", text)
    return Sampler(text)


def _chosen(settings: "tuple[Setting, ...]", count: int | None, journal: Path) -> "tuple[Setting, ...]":
    """All of them, or some at random; those that a journal has drawn before are taken again."""
    if count is None:
        return settings
    from sourdine.learning.sweep.run import Journal
    from sourdine.learning.sweep.settings import some_of

    count = check.integer(SWEEP, "random", count, 1, len(settings))
    before = Journal(journal).load()
    if before is None:
        return some_of(settings, count)
    earlier = before[0].get("settings")
    same = tuple(each for each in settings if isinstance(earlier, list) and each.to_json() in earlier)
    return same or settings[:count]  # of another sweep: the journal will be refused


@dataclass(frozen=True)
class _Job:
    """The runs of a sweep, on the same examples."""

    chosen: ChosenModel
    train: "Labelled"
    test: "Labelled"
    size: int | None
    bar: SweepBar
    physical: dict[int | None, int] = field(default_factory=dict)  # measured once for each size of model

    def run(self, setting: "Setting", planned: "PricedPlan") -> "Trained":
        """A fresh model, trained by one setting."""
        from sourdine.learning.execution import Execution
        from sourdine.learning.fitting import fit
        from sourdine.learning.forecast import measure
        from sourdine.learning.gradients.clipping import Flat
        from sourdine.learning.planning import TrainingPlan

        recipe = self.chosen.recipe(setting.epsilon)
        hidden = self.chosen.hidden if setting.hidden is None else (setting.hidden,)
        fresh = replace(self.chosen, hidden=hidden).fresh(self.train.shape, len(self.train.classes))
        if setting.hidden not in self.physical:
            self.physical[setting.hidden] = measure(fresh, self.train.pair).physical_batch_size
        plan = TrainingPlan(
            delta=planned.delta,
            noise_multiplier=planned.noise_multiplier,
            epochs=setting.epochs,
            batch_size=setting.batch_size,
            sampler=planned.sampler,
            size=self.size,
        )
        return fit(
            fresh,
            self.train.pair,
            plan,
            clipping=Flat(norm=setting.clip),
            optimizer=optimizer_of(setting.learning_rate, recipe.momentum),
            averaging=recipe.averaging,
            public=self.test.pair,
            execution=Execution(physical_batch_size=self.physical[setting.hidden]),
            progress=self.bar.moved,
        )


def _opened(path: str) -> "Ledger":
    from sourdine.accounting.ledger import Ledger

    return Ledger.open(path)


def _announce(sweep: "Sweep") -> None:
    """What the sweep will cost, before it begins."""
    runs, settings = counted(sweep.runs, "run"), counted(len(sweep.settings), "setting")
    show.line(f"{runs}: {settings}, {sweep.repeats:,} of each.")
    whole = "It has" if sweep.runs == 1 else "All runs together have"
    show.say(f"{whole} epsilon {sweep.epsilon.upper:.4g} at delta {plain(sweep.delta)}.")
    if warning := sweep.plans[0].warning:  # delta and size are those of every run
        show.say(warning, mark="WARNING: ")
