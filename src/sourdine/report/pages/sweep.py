"""The page of a sweep: accuracy against epsilon, epoch by epoch, and against each setting."""

import math
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence

from sourdine.core.figure import Figure
from sourdine.core.format import counted
from sourdine.report.charts.training import draw_curves, draw_points
from sourdine.report.pages.page import Page, Section
from sourdine.report.table import TextTable

RunRow = Mapping[str, str | int | float | None]
SWEEP_COLUMNS = (
    "learning rate",
    "batch",
    "epochs",
    "clip",
    "noise",
    "epsilon",
    "accuracy, %",
    "deviation",
    "runs",
    "seconds",
)
_MOST_CURVES = 6
_GAP = "\N{NO-BREAK SPACE}"
_SETTINGS = {
    "learning_rate": "learning rate",
    "batch_size": "batch, examples",
    "n_epochs": "epochs",
    "clip": "clipping norm",
    "noise": "noise, clipping norms",
    "hidden_units": "hidden units",
}


def sweep_page(rows: Sequence[RunRow], curves: Sequence[RunRow], *, model: str, cost: Sequence[str]) -> Page:
    """Everything that a sweep found; `cost` says in sentences what it cost."""
    best = max(rows, key=lambda row: _number(row, "accuracy"))
    table = TextTable(
        name="settings",
        title="Every setting, best first",
        columns=SWEEP_COLUMNS,
        rows=tuple(sweep_rows(rows)),
        note="Accuracy on public data, mean over the runs of a setting.",
    )
    return Page(
        title=f"{100 * _number(best, 'accuracy'):.1f} % at best, with "
        f"learning rate {best['learning_rate']:g}, batch {best['batch_size']:,}, "
        f"{counted(_number(best, 'n_epochs'), 'epoch', 'g')}{_at([best])}",
        lead=f"A {model} model, trained with {counted(len(rows), 'setting')}.",
        sections=(
            Section(title="What it cost", paragraphs=tuple(cost)),
            Section(title="Accuracy", figures=sweep_figures(rows, curves)),
            *epoch_section(curves),
            Section(title="All settings", tables=(table,)),
        ),
    )


def sweep_rows(rows: Sequence[RunRow]) -> list[tuple[str, ...]]:
    """The settings as people read them, the best first."""
    return [
        (
            f"{row['learning_rate']:g}",
            f"{row['batch_size']:,}",
            str(row["n_epochs"]),
            f"{row['clip']:g}",
            f"{row['noise']:.4g}",
            f"{row['epsilon']:.4g}",
            f"{100 * _number(row, 'accuracy'):.2f}",
            "" if row["accuracy_std"] is None else f"{100 * _number(row, 'accuracy_std'):.2f}",
            str(row["n_times_for_avg"]),
            f"{row['seconds']:.1f}",
        )
        for row in sorted(rows, key=lambda row: -_number(row, "accuracy"))
    ]


def sweep_figures(rows: Sequence[RunRow], curves: Sequence[RunRow]) -> tuple[Figure, ...]:
    """The charts of the end that a sweep has enough values for; that against epsilon always."""
    final = _last_epochs(curves)
    figures = [_against_epsilon(final)]
    figures += [_against(final, name) for name in _SETTINGS if len(_values(final, name)) > 1]
    return tuple(figures)


def epoch_section(curves: Sequence[RunRow]) -> tuple[Section, ...]:
    """The charts on the way, whose colours mean other things than those of the end."""
    varied = [name for name in ("learning_rate", "batch_size") if len(_values(curves, name)) > 1]
    figures = tuple(_by_epoch(curves, name) for name in varied)
    return (Section(title="Accuracy, epoch by epoch", figures=figures),) if figures else ()


def _against_epsilon(final: Sequence[RunRow]) -> Figure:
    """All runs at each epsilon, and those of the setting that is best there."""
    groups = _grouped(final, "epsilon")
    rows = [_mean_row(_ALL, epsilon, runs) for epsilon, runs in groups.items()]
    several = any(len(_by_setting(runs)) > 1 for runs in groups.values())
    if several:
        rows += [_mean_row(_BEST, epsilon, _best(runs)) for epsilon, runs in groups.items()]
    best = {epsilon: _mean(_best(runs)) for epsilon, runs in groups.items()}
    low, high = min(groups), max(groups)
    if low == high:
        title = f"At ε = {low:g} the best setting reaches {best[low]:.1f} %"
    else:
        title = f"The best reach {best[low]:.1f} % at ε = {low:g} and {best[high]:.1f} % at ε = {high:g}"
    return Figure(
        title=title,
        chart=draw_points(rows, across="ε of a single run", names=(_ALL, _BEST) if several else (_ALL,)),
        note=_bars(final),
    )


def _by_epoch(curves: Sequence[RunRow], name: str) -> Figure:
    """Accuracy on the way, with a line for each value of a setting."""
    values = _values(curves, name)
    shown = _spread(values, _MOST_CURVES)
    rows = []
    for value in shown:
        for epoch, runs in _grouped([row for row in curves if row[name] == value], "epoch").items():
            rows.append(_mean_row(_named(value), epoch, runs))
    last = {value: _mean([row for row in _last_epochs(curves) if row[name] == value]) for value in shown}
    best = max(last, key=lambda value: last[value])
    words = _SETTINGS[name].split(",")[0]
    return Figure(
        title=f"{words.capitalize()} {_named(best)} ends highest on average, with {last[best]:.1f} %"
        f"{_at(curves)}",
        chart=draw_curves(rows, across="epochs", names=tuple(map(_named, shown)), legend=words),
        note=f"Lines are means over all runs that reached the epoch. {_bars(curves, 'Bands')}",
    )


def _against(final: Sequence[RunRow], name: str) -> Figure:
    """Accuracy at the end against one setting, whatever the others are."""
    groups = _grouped(final, name)
    rows = [_mean_row(_ALL, value, runs) for value, runs in groups.items()]
    rows += [_mean_row(_BEST, value, _best(runs)) for value, runs in groups.items()]
    several = any(len(_by_setting(runs)) > 1 for runs in groups.values())
    best = max(groups, key=lambda value: _mean(_best(groups[value])))
    words, most = _SETTINGS[name].split(",")[0], _mean(_best(groups[best]))
    return Figure(
        title=f"The best {words} is {_named(best)}, with {most:.1f} % at its best setting"
        f"{_at(_best(groups[best]))}",
        chart=draw_points(
            rows if several else rows[: len(groups)],
            across=_SETTINGS[name],
            names=(_ALL, _BEST) if several else (_ALL,),
        ),
        note=_bars(final),
    )


_ALL, _BEST = "all runs", "the best setting"
_OF_SETTING = ("learning_rate", "batch_size", "n_epochs", "clip", "hidden_units", "noise", "epsilon")


def _at(rows: Sequence[RunRow]) -> str:
    """At which epsilon, or over which."""
    each = sorted({float(f"{_number(row, 'epsilon'):.3g}") for row in rows})
    if each[0] == each[-1]:
        return f", at ε{_GAP}={_GAP}{each[0]:g}"
    return f", over ε from {each[0]:g} to {each[-1]:g}"


def _bars(rows: Sequence[RunRow], bars: str = "Bars") -> str:
    """What bars or bands are; of single runs there are none, and a reader is told what that means."""
    if len({row["repeat"] for row in rows}) == 1 and len(_by_setting(_last_epochs(rows))) == 1:
        return "One run: how much another would differ is not known."
    once = " Each setting was run once, so small differences between settings may be chance."
    return (
        f"{bars} are one standard deviation over the runs to either side."
        f"{once if len({row['repeat'] for row in rows}) == 1 else ''}"
    )


def _last_epochs(curves: Sequence[RunRow]) -> list[RunRow]:
    """The last epoch of each run."""
    last: dict[tuple[object, ...], RunRow] = {}
    for row in curves:
        key = (*(row[name] for name in _OF_SETTING), row["repeat"])
        if key not in last or _number(row, "epoch") > _number(last[key], "epoch"):
            last[key] = row
    return list(last.values())


def _by_setting(runs: Sequence[RunRow]) -> list[list[RunRow]]:
    groups: defaultdict[tuple[object, ...], list[RunRow]] = defaultdict(list)
    for row in runs:
        groups[tuple(row[name] for name in _OF_SETTING)].append(row)
    return list(groups.values())


def _best(runs: Sequence[RunRow]) -> list[RunRow]:
    """The runs of the setting with the highest mean."""
    return max(_by_setting(runs), key=_mean)


def _grouped(rows: Sequence[RunRow], name: str) -> dict[float, list[RunRow]]:
    """Rows by a number, which is rounded so that what was asked for alike stands together."""
    groups: defaultdict[float, list[RunRow]] = defaultdict(list)
    for row in rows:
        groups[float(f"{_number(row, name):.3g}")].append(row)
    return dict(sorted(groups.items()))


def _values(rows: Sequence[RunRow], name: str) -> list[float]:
    """The values of a setting that was varied; noise that follows from an epsilon was not."""
    if name == "noise" and any(row["epsilon_asked"] is not None for row in rows):
        return []
    return sorted({_number(row, name) for row in rows if row[name] is not None})


def _spread(values: Sequence[float], most: int) -> list[float]:
    """At most so many of the values, evenly taken, with both ends."""
    if len(values) <= most:
        return list(values)
    return [values[round(place * (len(values) - 1) / (most - 1))] for place in range(most)]


def _mean_row(series: str, place: float, runs: Sequence[RunRow]) -> dict[str, str | int | float | None]:
    accuracies = [100 * _number(row, "accuracy") for row in runs]
    mean = statistics.mean(accuracies)
    spread = statistics.stdev(accuracies) if len(accuracies) > 1 else 0.0
    return {
        "series": series,
        "place": place,
        "accuracy": mean,
        "lower": max(0.0, mean - spread),
        "upper": min(100.0, mean + spread),
        "runs": len(accuracies),
    }


def _mean(runs: Sequence[RunRow]) -> float:
    return 100 * statistics.mean(_number(row, "accuracy") for row in runs)


def _number(row: RunRow, name: str) -> float:
    value = row[name]
    return math.nan if value is None else float(value)


def _named(value: float) -> str:
    return f"{value:,.6g}"
