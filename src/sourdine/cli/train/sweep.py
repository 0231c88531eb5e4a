"""`sourdine train sweep`: train over lists of settings, with results in CSV and charts."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import number, plain_bracket
from sourdine.cli.train.lists import SWEEP, Lists
from sourdine.cli.train.options import (
    DELTA,
    AsJson,
    Cache,
    ChosenModel,
    Classes,
    Data,
    Delta,
    Drawn,
    Grey,
    Head,
    Looked,
    Patches,
    Reduce,
    Side,
    Spec,
    Target,
    Test,
    Units,
    Weights,
    optimizer_of,
    read_parts,
)
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, plain

if TYPE_CHECKING:
    from sourdine.accounting.dpsgd.training import Sampler
    from sourdine.accounting.ledger import Ledger
    from sourdine.learning.data.labelled import Labelled
    from sourdine.learning.planning import TrainingPlan
    from sourdine.learning.result import Progress as Reached
    from sourdine.learning.result import Trained
    from sourdine.learning.sweep.run import Swept
    from sourdine.learning.sweep.settings import Setting, Sweep


def sweep(
    data: Data,
    *,
    rates: Annotated[
        str | None,
        typer.Option("--learning-rate", "--lr", help="A list, such as 0.1,0.5. Without: the usual."),
    ] = None,
    batches: Annotated[
        str | None, typer.Option("--batch", "-b", help="A list of batches, such as 64,512.")
    ] = None,
    epochs: Annotated[str | None, typer.Option("--epochs", "-e", help="A list. Without: the usual.")] = None,
    epsilons: Annotated[
        str | None, typer.Option("--epsilon", help="A list of budgets of single runs; or else --noise.")
    ] = None,
    noises: Annotated[
        str | None, typer.Option("--noise", "-n", help="A list of noises, in clipping norms.")
    ] = None,
    clips: Annotated[
        str | None, typer.Option("--clip", help="A list of clipping norms. Without: the usual.")
    ] = None,
    hidden: Annotated[str | None, typer.Option("--hidden", help="A list of hidden units, for mlp.")] = None,
    repeats: Annotated[int, typer.Option("--repeats", help="Train each setting so often.")] = 1,
    random: Annotated[
        int | None, typer.Option("--random", help="So many of all settings, drawn at random.")
    ] = None,
    model: Head = None,
    features: Looked = None,
    weights: Weights = None,
    reduce: Reduce = 1,
    patches: Patches = None,
    delta: Delta = "1e-5",
    sampler: Drawn = "poisson",
    size: Units = None,
    ledger: Annotated[Path | None, typer.Option(help="Pay for all runs from this ledger, at once.")] = None,
    cache: Cache = None,
    classes: Classes = 10,
    side: Side = 32,
    grey: Grey = False,
    spec: Spec = None,
    target: Target = None,
    test: Test = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Results, with other files of this name beside.")
    ] = Path("sweep.csv"),
    as_json: AsJson = False,
) -> None:
    """Train over lists of settings: every combination, or some at random, each several times.

    Writes means with their deviations (sweep.csv), accuracies epoch by epoch (sweep.epochs.csv), a page with
    charts (sweep.html) and a journal (sweep.journal). If it is killed, the same command goes on and repeats
    no finished run. Accuracy is told on the test part of the data, which must be public. A sweep costs what
    all its runs cost together: that is told before it begins, and paid if there is a ledger.

    Examples: sourdine train sweep mnist --model linear --lr 0.1,0.5 --batch 64,512 --epsilon 1,3 ·
    sourdine train sweep mnist --model cnn --lr 0.05,0.1,0.5 --batch 256 --noise 0.8,1,1.5 --clip 0.5,1
    --epochs 5,10 --repeats 3 --random 10 --ledger mnist.ledger -o digits.csv
    """
    chosen = ChosenModel.read(
        SWEEP,
        model=model,
        features=features,
        weights=weights,
        reduce=reduce,
        patches=patches,
        hidden=None,
        extra=None,
    )
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
    files = _Files(output)
    files.check()
    level = float(number(SWEEP, "delta", delta, *DELTA))
    drawn = _sampler(sampler)
    parts = read_parts(data, classes=classes, side=side, grey=grey, spec=spec, target=target, test=test)
    if parts.test is None:
        raise InvalidParameter(
            "A sweep compares settings by their accuracy, and there are no public examples to tell it on. "
            "Name some with --test."
        )
    from sourdine.learning.sweep.run import run_sweep
    from sourdine.learning.sweep.settings import Sweep

    units = len(parts.train) if size is None else size
    made = Sweep(
        settings=_chosen(lists.settings(units), random, files.journal),
        repeats=repeats,
        size=units,
        delta=level,
        sampler=drawn,
    )
    about = {"data": str(data.resolve()), "model": chosen.name, "random": random or "all"}
    if not as_json:
        _announce(made)
    train, judged, _ = chosen.prepared(parts, cache, single=False)
    assert judged is not None
    with (
        _sweep_bar(made) as bar,
        nullcontext() if ledger is None else _opened(ledger) as paid,
    ):
        job = _Job(chosen, train, judged, size, bar)
        swept = run_sweep(made, job.run, files.journal, about=about, ledger=paid, watch=bar.begins)
    files.write(swept, chosen.name)
    if as_json:
        show.document(_plain(swept) | {"files": [str(each) for each in files.all]})
    else:
        _print(swept, files)


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
    held = before[0].get("settings")
    same = tuple(each for each in settings if isinstance(held, list) and each.to_json() in held)
    return same or settings[:count]  # of another sweep: the journal will be refused


@dataclass(frozen=True)
class _Files:
    """Where results go."""

    out: Path

    @property
    def epochs(self) -> Path:
        """Accuracies epoch by epoch."""
        return self.out.with_suffix(".epochs.csv")

    @property
    def journal(self) -> Path:
        """What a killed sweep goes on from."""
        return self.out.with_suffix(".journal")

    @property
    def page(self) -> Path:
        """Charts."""
        return self.out.with_suffix(".html")

    @property
    def all(self) -> tuple[Path, ...]:
        """Everything, the results first."""
        return self.out, self.epochs, self.page, self.journal

    def check(self) -> None:
        """Refuse places that cannot be written, or results that are not of a sweep that can go on."""
        for path in self.all:
            show.check_place(path)
        if self.out.suffix.lower() != ".csv":
            raise check.fail(SWEEP, "output", "end in .csv", str(self.out))
        if self.journal.exists():
            return
        for path in self.all:
            if path.exists():
                raise InvalidParameter(
                    f"There is already a file {path}, which is not written over. Name another with -o."
                )

    def write(self, swept: "Swept", model: str) -> None:
        """Results, put in the place of older ones in one go each."""
        from sourdine.learning.sweep.run import as_csv, epochs, means
        from sourdine.report.pages.sweep import sweep_page

        rows, curves = means(swept.sweep, swept.runs), epochs(swept.sweep, swept.runs)
        page = sweep_page(rows, curves, model=model, cost=_cost_words(swept))
        for path, text in ((self.out, as_csv(rows)), (self.epochs, as_csv(curves)), (self.page, page.html())):
            show.keep(text, path)


class _Bar:
    """How far a sweep is, in steps of all runs; nothing of a run that is not finished is told.

    `told` is given the label of the run and the steps that are done, those of earlier runs too.
    """

    def __init__(self, sweep: "Sweep", told: Callable[[str, int], None]) -> None:
        self._sweep, self._told = sweep, told
        self._label, self._before = "sweep", 0

    def begins(self, setting: "Setting", done: int) -> None:
        """A run begins after so many finished ones."""
        steps = [each.steps for each in self._sweep.plans]
        whole, part = divmod(done, len(steps))
        self._before = whole * sum(steps) + sum(steps[:part])
        self._label = f"run {done + 1:,} of {self._sweep.runs:,} (rate {setting.learning_rate:g})"
        self._told(self._label, self._before)

    def moved(self, now: "Reached") -> None:
        """A run has taken a step."""
        self._told(self._label, self._before + now.step)


@contextmanager
def _sweep_bar(sweep: "Sweep") -> Iterator[_Bar]:
    console = Console(file=sys.stderr)
    if not console.is_terminal:
        lines = show.Lines()
        yield _Bar(sweep, lambda label, done: lines.tell(f"{label}: {done:,} of {sweep.steps:,} steps"))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("sweep", total=sweep.steps)
        yield _Bar(sweep, lambda label, done: bar.update(task, description=label, completed=done))


@dataclass(frozen=True)
class _Job:
    """The runs of a sweep, on the same examples."""

    chosen: ChosenModel
    train: "Labelled"
    test: "Labelled"
    size: int | None
    bar: _Bar
    physical: dict[int | None, int] = field(default_factory=dict)  # measured once for each size of model

    def run(self, setting: "Setting", planned: "TrainingPlan") -> "Trained":
        """A fresh model, trained by one setting."""
        from sourdine.learning.fitting import fit
        from sourdine.learning.forecast import measure
        from sourdine.learning.gradients.clipping import Flat

        recipe = self.chosen.recipe(setting.epsilon)
        hidden = self.chosen.hidden if setting.hidden is None else (setting.hidden,)
        fresh = replace(self.chosen, hidden=hidden).fresh(self.train.shape, len(self.train.classes))
        if setting.hidden not in self.physical:
            self.physical[setting.hidden] = measure(fresh, self.train.pair).physical
        return fit(
            fresh,
            self.train.pair,
            delta=planned.delta,
            noise=planned.noise,
            epochs=setting.epochs,
            batch=setting.batch,
            sampler=planned.sampler,
            size=self.size,
            clipping=Flat(norm=setting.clip),
            optimizer=optimizer_of(setting.learning_rate, recipe.momentum),
            averaging=recipe.averaging,
            physical=self.physical[setting.hidden],
            public=self.test.pair,
            watch=self.bar.moved,
        )


def _opened(path: Path) -> "Ledger":
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


def _cost_words(swept: "Swept") -> tuple[str, ...]:
    """What a sweep costs, and under which conditions less."""
    sweep = swept.sweep
    worst = max(each.epsilon.upper for each in sweep.plans)
    were = "The run was" if sweep.runs == 1 else f"All {sweep.runs:,} runs were"
    paid = (
        f"{were} paid from the ledger, line {swept.line}."
        if swept.line is not None
        else "Nothing was paid from a ledger: these results are not protected, unless somebody adds their "
        "epsilon to what else is told about the same people."
    )
    if sweep.runs == 1:
        return paid, f"The run has epsilon {worst:.4g} at delta {plain(sweep.delta)}."
    return (
        paid,
        f"Whoever sees this table has seen all {sweep.runs:,} runs, which together have epsilon "
        f"{sweep.epsilon.upper:.4g} at delta {plain(sweep.delta)}; the most that a single run has is "
        f"{worst:.4g}. Telling only the best setting counts the same, since all were looked at to choose it.",
        _best_words(sweep),
    )


def _best_words(sweep: "Sweep") -> str:
    """The price of the best of a random number of runs beside that of all runs: the smaller one is told."""
    drawn = (
        "each run had taken a setting at random, if the number of runs had been drawn at random and kept "
        f"secret (after each run, stop with probability 1/{sweep.runs:,}), and if nothing but the best run "
        "were ever told (Papernot and Steinke 2022, theorem 2)"
    )
    if sweep.epsilon_of_best < sweep.epsilon.upper:
        return (
            f"It would be epsilon {sweep.epsilon_of_best:.4g} if {drawn}. This sweep had a fixed number of "
            "runs, so that does not hold for it."
        )
    return f"That all runs are added up is the smaller price here: it would not be less if {drawn}."


def _plain(swept: "Swept") -> dict[str, object]:
    from sourdine.learning.sweep.run import means

    sweep = swept.sweep
    return {
        "runs": sweep.runs,
        "resumed": swept.before,
        "epsilon_of_all": plain_bracket(sweep.epsilon),
        "epsilon_of_best_of_random_number": sweep.epsilon_of_best,
        "delta": sweep.delta,
        "line": swept.line,
        "settings": means(sweep, swept.runs),
    }


def _print(swept: "Swept", files: _Files) -> None:
    from sourdine.learning.sweep.run import means
    from sourdine.report.pages.sweep import COLUMNS, sweep_rows

    rows = means(swept.sweep, swept.runs)
    show.table(COLUMNS, sweep_rows(rows), numbers=COLUMNS)
    if swept.before:
        runs = counted(swept.sweep.runs, "run")
        show.line(f"Went on from the journal: {swept.before:,} of {runs} had been made before.")
    for sentence in _cost_words(swept):
        show.say(sentence)
    for path in files.all:
        show.line(f"  {path}")
