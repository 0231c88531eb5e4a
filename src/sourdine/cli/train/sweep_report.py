"""What `sourdine train sweep` writes and tells: tables, charts, and what all runs cost together."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import plain_bracket
from sourdine.cli.train.lists import SWEEP
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, plain

if TYPE_CHECKING:
    from sourdine.learning.sweep.run import Swept
    from sourdine.learning.sweep.settings import Sweep


@dataclass(frozen=True)
class SweepFiles:
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
        from sourdine.report.pages.training import sweep_page

        rows, curves = means(swept.sweep, swept.runs), epochs(swept.sweep, swept.runs)
        page = sweep_page(rows, curves, model=model, cost=cost_words(swept))
        for path, text in ((self.out, as_csv(rows)), (self.epochs, as_csv(curves)), (self.page, page.html())):
            show.keep(text, path)


def cost_words(swept: "Swept") -> tuple[str, ...]:
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
    condition = (
        "each run had taken a setting at random, if the number of runs had been drawn at random and kept "
        f"secret (after each run, stop with probability 1/{sweep.runs:,}), and if nothing but the best run "
        "were ever told (Papernot and Steinke 2022, theorem 2)"
    )
    if sweep.epsilon_of_best < sweep.epsilon.upper:
        return (
            f"It would be epsilon {sweep.epsilon_of_best:.4g} if {condition}. This sweep had a fixed number "
            "of runs, so that does not hold for it."
        )
    return f"That all runs are added up is the smaller price here: it would not be less if {condition}."


def plain_sweep(swept: "Swept") -> dict[str, object]:
    """A sweep for machines."""
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


def print_sweep(swept: "Swept", files: SweepFiles) -> None:
    """A sweep as people read it."""
    from sourdine.learning.sweep.run import means
    from sourdine.report.pages.training import SWEEP_COLUMNS, sweep_rows

    rows = means(swept.sweep, swept.runs)
    show.table(SWEEP_COLUMNS, sweep_rows(rows), numbers=SWEEP_COLUMNS)
    if swept.before:
        runs = counted(swept.sweep.runs, "run")
        show.line(f"Went on from the journal: {swept.before:,} of {runs} had been made before.")
    for sentence in cost_words(swept):
        show.say(sentence)
    for path in files.all:
        show.line(f"  {path}")
