"""Prints the results: ratios first, then the verdicts."""

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.finding import better, verdict
from benchmarks.noise.cases import (
    CASES,
    LIBRARIES,
    NUMPY,
    OPENDP,
    PEERS,
    SOURDINE,
    TIMING_CASES,
    Case,
    Law,
    Library,
)
from benchmarks.noise.measure import LARGEST, Results

LEAST_TIMES_OPENDP = 100.0
LEAST_TIMES_NUMPY = 0.5
MOST_CORRELATION = 0.05


def show(results: Results, console: Console) -> None:
    """The tables and the verdicts."""
    console.print(_speed_table(results))
    console.print(_sizes(results), style="dim", highlight=False)
    console.print(_timing_table(results))
    for met, text in verdicts(results):
        verdict(console, met, text)
    slower = [(ratio, case.label) for case in CASES if (ratio := _ratio(results, case, NUMPY)) and ratio < 1]
    for ratio, label in slower:
        better(console, f"{label}: {ratio:.2f} of the rate of numpy, which is neither exact nor private")


def verdicts(results: Results) -> list[tuple[bool, str]]:
    """Whether each target is met, and what was found."""
    targets = [case for case in CASES if case.target]
    laplace = [case for case in targets if case.law is Law.LAPLACE]
    ours = [timing for timing in results.timings if timing.library == SOURDINE.name]
    widest = max(ours, key=lambda timing: abs(timing.correlation))
    return [
        _at_least(results, targets, OPENDP, LEAST_TIMES_OPENDP, "OpenDP"),
        _at_least(results, laplace, NUMPY, LEAST_TIMES_NUMPY, "numpy's float Laplace"),
        (
            abs(widest.correlation) < MOST_CORRELATION,
            f"{abs(widest.correlation):.3f} rank correlation of time with noise, {widest.case} "
            f"(target {MOST_CORRELATION})",
        ),
    ]


def _at_least(
    results: Results, cases: list[Case], other: Library, target: float, name: str
) -> tuple[bool, str]:
    ratio, worst = min((_ratio(results, case, other) or 0.0, case.label) for case in cases)
    among = ", ".join(case.label for case in cases)
    text = f"{ratio:.3g} times the rate of {name} at {worst}, the worst of {among} (target {target:g})"
    return ratio >= target, text


def _ratio(results: Results, case: Case, *others: Library) -> float | None:
    """Sourdine's rate over the best of the others'."""
    ours = results.best(SOURDINE, case)
    rates = [speed.rate for other in others if (speed := results.best(other, case))]
    return ours.rate / max(rates) if ours and rates else None


def _speed_table(results: Results) -> Table:
    table = _table("Noises a second")
    table.add_column("case")
    for library in LIBRARIES:
        table.add_column(library.name, justify="right")
    for name in ("x best peer", "x numpy"):
        table.add_column(name, justify="right", style="bold cyan")
    for case in CASES:
        rates = (results.best(library, case) for library in LIBRARIES)
        peers, limit = _ratio(results, case, *PEERS), _ratio(results, case, NUMPY)
        table.add_row(
            case.label,
            *(_number(speed.rate) if speed else "-" for speed in rates),
            f"{peers:,.0f}" if peers else "-",
            f"{limit:.2f}" if limit else "-",
            style=None if case.target else "dim",
        )
    return table


def _timing_table(results: Results) -> Table:
    table = _table("Does the time of one draw tell its noise? " + ", ".join(c.label for c in TIMING_CASES))
    table.caption = (
        f"{results.timings[0].calls:,} draws each; correlation of ranks, ± 3 standard errors of chance;\n"
        "1 in n: median time of the largest noises, one in n, over that of all"
    )
    for name in ("library", "mechanism"):
        table.add_column(name)
    table.add_column("median", justify="right")
    for name in ("correlation", *(f"1 in {rarity}" for rarity in LARGEST)):
        table.add_column(name, justify="right", style="bold cyan")
    for timing in results.timings:
        table.add_row(
            timing.library,
            timing.mechanism,
            f"{timing.microseconds:.1f} µs",
            f"{timing.correlation:+.3f} ± {3 / timing.calls**0.5:.3f}",
            *(f"{timing.largest[rarity]:.2f}" for rarity in LARGEST),
        )
    return table


def _table(title: str) -> Table:
    return Table(title=title, box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, collapse_padding=True)


def _sizes(results: Results) -> str:
    """How much each library drew at once, how often, in which version; and the set-up left out of it."""
    lines = []
    for library in LIBRARIES:
        speeds = [speed for speed in results.speeds if speed.library == library.name]
        sizes = sorted({speed.draws for speed in speeds}, reverse=True)
        drawn = " or ".join(f"{size:,}" for size in sizes)
        packages = ", ".join(f"{name} {number}" for name, number in results.versions[library.name].items())
        lines.append(f"{library.name}: {drawn} noises a time, best of {speeds[0].repetitions} ({packages})")
    first = ", ".join(f"{label} {1000 * seconds:.0f} ms" for label, seconds in results.first.items())
    lines.append(f"Sourdine's first noise in a fresh process, after import: {first}")
    return "\n".join(lines)


def _number(rate: float) -> str:
    return f"{rate / 1e6:,.1f} M" if rate >= 1e6 else f"{rate:,.0f}"
