"""The curves of private training: what each choice does to epsilon."""

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.dpsgd.cost import cost_of_training
from sourdine.accounting.dpsgd.training import Training, dpsgd_epsilon, step_loss
from sourdine.accounting.rdp.accountant import SOURCE_ORDERS, Conversion, Renyi
from sourdine.core.display import Figure
from sourdine.core.format import byte_count, counted, plain, shorten_up
from sourdine.learning.memory.lines import (
    BACKWARD,
    RESIDENT,
    Fit,
    Jump,
    added,
    our_formula,
    source_formula,
    source_total,
)
from sourdine.learning.memory.model import FIRST, Stage
from sourdine.learning.memory.table import MeasuredMemory, MemoryCase
from sourdine.report.charts.base import COLOURS, Axis, Band, Row, Series, Slider, draw_heat, draw_lines
from sourdine.report.charts.training import draw_curves, draw_memory, draw_orders, draw_points, draw_residuals
from sourdine.report.view import Page, Section, TextTable, Watch, unwatched

_CERTIFIED, _TIGHT, _OLDER = "certified bracket", "Rényi, tight conversion", "Rényi, 2017 conversion"
_METHODS = Series(field="method", names=(_CERTIFIED, _TIGHT, _OLDER))
_RENYI = Series(field="method", names=(_TIGHT, _OLDER), colours=COLOURS[1:])
_BAND = Band(lower="lower", upper="upper")
_WIDTH = 5e-3  # of the brackets: thinner than a line
_ORDERS = (*(1 + np.geomspace(0.05, 63, 200)).tolist(), 96.0, 128.0, 192.0, 256.0, 384.0, 512.0, 1024.0)
_POWERS = tuple(float(f"1e-{k}") for k in range(10, 2, -1))
_NOISE_SHARES = (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
_SLIDER_SHARES = (0.7, 1.0, 1.5, 2.0)
_FEW_SHARES = (1.0, 2.0)
_LONG = 10**6  # steps from which on a point of a curve takes a second
_HOPELESS = 100.0  # an epsilon that promises nothing, so that nobody needs to know it closely

Values = dict[str, float]


@dataclass(frozen=True, kw_only=True)
class _Curve:
    """epsilon against one parameter, at one of several values of another."""

    x: Axis
    values: tuple[float, ...]
    slider: Slider
    title: str
    note: str
    log: bool = True


@dataclass(frozen=True)
class _Point:
    """One point of every method's curve, at one place of the slider."""

    x: float
    chosen: float
    ends: dict[str, Bracket]


def curves_page(training: Training, delta: float, watch: Watch = unwatched) -> Page:
    """One page with every curve around a run with Poisson batches."""
    cost = next(cost_of_training(each, delta) for each in watch("computing the run", (training,)))
    return Page(
        title="What private training costs",
        lead=(
            f"Around one run: {training.size:,} examples, batches of {training.batch_size:,}, noise "
            f"{training.noise_multiplier:g}, epochs {training.epochs:,}, δ = {plain(delta)}. It takes "
            f"{cost.steps:,} steps and costs ε = {shorten_up(cost.epsilon.upper)}, for one example added "
            "or removed."
        ),
        sections=(
            Section(
                title="Curves",
                paragraphs=(
                    "The certified bracket is computed from the whole law of the privacy loss and holds the "
                    "least possible ε between its two ends, here too close to be told apart. The Rényi "
                    "accountant is a simpler upper bound. With the conversion of 2017 it is what older "
                    "tools print. Where the Rényi accountant finds an ε above "
                    f"{_HOPELESS:g}, which promises nothing anyway, its curves stand alone.",
                    "A dashed line stands at the run, and the titles speak of it. Move a slider to see other "
                    "runs; hover over a point to read it.",
                ),
                figures=curve_figures(training, delta, watch),
            ),
            Section(title="What these numbers assume", points=cost.assumptions),
        ),
    )


def curve_figures(training: Training, delta: float, watch: Watch = unwatched) -> tuple[Figure, ...]:
    """The curves against order, size, batch, noise, epochs, delta and its logarithm, and noise x batch."""
    plan: Values = {
        "size": training.size,
        "batch": training.batch_size,
        "noise": training.noise_multiplier,
        "epochs": training.epochs,
        "delta": delta,
    }
    few = training.steps > _LONG
    curves = _curves(plan, _FEW_SHARES if few else _SLIDER_SHARES)
    batches = _batches(plan, -1, 2) if few else _batches(plan, -2, 5)
    noises = _shares(plan, _NOISE_SHARES[::2] if few else _NOISE_SHARES)
    cells = [plan | {"noise": noise, "batch": batch} for noise in noises for batch in batches]
    places = [
        (curve, value, chosen) for curve in curves for value in curve.values for chosen in curve.slider.values
    ]
    methods = _Methods()
    points: dict[int, list[_Point]] = {}
    for curve, value, chosen in watch("computing curves", places):
        ends = methods.ends(plan | {curve.x.field: value, curve.slider.field: chosen})
        points.setdefault(id(curve), []).append(_Point(value, chosen, ends))
    heat = [(cell, methods.ends(cell)[_CERTIFIED].upper) for cell in watch("computing noise x batch", cells)]
    lines = [_lines(plan, curve, points[id(curve)]) for curve in curves]
    return (_orders(training, delta), *lines, _heat(plan, heat))


def _curves(plan: Values, shares_of_noise: tuple[float, ...]) -> tuple[_Curve, ...]:
    noise = _slider(plan, "noise", "noise", _shares(plan, shares_of_noise))
    batch = _slider(plan, "batch", "batch", _batches(plan, -1, 2))
    sizes = {max(plan["batch"], round(plan["size"] * 2.0**k)) for k in range(-4, 5)}
    epochs = {max(1, round(plan["epochs"] * share)) for share in (0.2, 0.5, 1, 2, 3, 4, 6)} | {1}
    powers = {*_POWERS, plan["delta"]}
    shares = {plan["delta"] * share for share in (0.1, 0.3, 0.6, 1, 2, 4, 7, 10)}
    return (
        _Curve(
            x=Axis(
                field="size", title="examples in the data", log=True, form=".3~s", ticks=tuple(sorted(sizes))
            ),
            values=tuple(sorted(sizes)),
            slider=noise,
            title="More data help: from {low} to {high} examples, ε goes from {first} to {last}",
            note="The batch and the epochs stay as they are, so a larger data set also takes more steps.",
        ),
        _Curve(
            x=Axis(
                field="batch", title="examples in a batch", log=True, form=",", ticks=_batches(plan, -3, 6)
            ),
            values=_batches(plan, -3, 6),
            slider=noise,
            title="Large batches cost more: from {low} to {high} examples, ε goes from {first} to {last}",
            note="The epochs stay as they are. Small batches learn from noisier sums, so the cheapest batch "
            "is seldom the best one.",
        ),
        _Curve(
            x=Axis(field="noise", title="noise, in clipping norms"),
            values=_shares(plan, (0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0)),
            slider=batch,
            title="The first noise helps most: from {low} to {high}, ε goes from {first} to {last}",
            note="Noise is the standard deviation added to a sum, divided by the clipping norm.",
        ),
        _Curve(
            x=Axis(field="epochs", title="epochs"),
            values=tuple(sorted(epochs)),
            slider=noise,
            title="The first epochs cost most: {low} costs ε = {first}, {high} cost {last}",
            note="The privacy loss of many steps adds up like a random walk: slower than the steps.",
            log=False,
        ),
        _Curve(
            x=Axis(
                field="delta", title="δ", form=".1~e", ticks=tuple(plan["delta"] * k for k in (1, 4, 7, 10))
            ),
            values=tuple(sorted(share for share in shares if share < 1)),
            slider=noise,
            title="A larger δ buys little: from {low} to {high}, ε goes from {first} to {last}",
            note="δ should lie below 1 over the number of examples, whatever it buys.",
            log=False,
        ),
        _Curve(
            x=Axis(field="delta", title="δ, on a logarithmic scale", log=True, form="~e", ticks=_POWERS),
            values=tuple(sorted(powers)),
            slider=noise,
            title="A smaller δ costs little: from {high} to {low}, ε goes from {last} to {first}",
            note="ε grows about as the square root of the logarithm of 1/δ.",
            log=False,
        ),
    )


def _orders(training: Training, delta: float) -> Figure:
    noises = _shares({"noise": training.noise_multiplier}, _SLIDER_SHARES)
    return Figure(
        title="Every Rényi order proves some ε, and only the best order counts",
        chart=draw_orders(training, delta, noises, _RENYI),
        note="Low orders pay for δ, high orders for rare large losses. The page computes this chart itself.",
    )


def _lines(plan: Values, curve: _Curve, points: list[_Point]) -> Figure:
    rows: list[Row] = [
        {
            curve.x.field: point.x,
            curve.slider.field: point.chosen,
            "method": method,
            "epsilon": _short(ends.upper),
            "lower": _short(ends.lower),
            "upper": _short(ends.upper),
        }
        for point in points
        for method, ends in point.ends.items()
        if ends.lower > 0 and ends.upper < math.inf
    ]
    here = [point.ends[_CERTIFIED].upper for point in points if point.chosen == curve.slider.start]
    return Figure(
        title=curve.title.format(
            low=_show(curve.values[0]),
            high=_show(curve.values[-1]),
            first=shorten_up(here[0], 3),
            last=shorten_up(here[-1], 3),
        ),
        chart=draw_lines(
            rows,
            x=curve.x,
            y=Axis(field="epsilon", title="ε", log=curve.log, form=".3~g"),
            series=_METHODS,
            band=_BAND,
            slider=curve.slider,
            mark=plan[curve.x.field],
        ),
        note=curve.note,
    )


def _heat(plan: Values, cells: list[tuple[Values, float]]) -> Figure:
    rows: list[Row] = [
        {"noise": cell["noise"], "batch": cell["batch"], "epsilon": _short(upper)}
        for cell, upper in cells
        if 0 < upper < math.inf
    ]
    return Figure(
        title="A larger batch can be paid for with more noise: equal colours cost the same ε",
        chart=draw_heat(
            rows,
            x=Axis(field="batch", title="examples in a batch", form=","),
            y=Axis(field="noise", title="noise, in clipping norms", form=".3~g"),
            colour=Axis(field="epsilon", title="ε (upper end)", log=True, form=".2~g"),
            mark=(plan["batch"], plan["noise"]),
        ),
        note="The frame stands at the run; the epochs and δ are those of the run.",
    )


class _Methods:
    """The three ways to an epsilon, made once for many runs."""

    def __init__(self) -> None:
        self._tight = Renyi(orders=_ORDERS)
        self._older = Renyi(orders=SOURCE_ORDERS, conversion=Conversion.MIRONOV)

    def ends(self, case: Values) -> dict[str, Bracket]:
        """What each says of a run; a single bound is both ends."""
        run, delta = _training(case), case["delta"]
        loss = step_loss(run.noise_multiplier, run.sampling_rate)
        tight, older = (
            accountant.epsilon(accountant.repeat(accountant.lift(loss), run.steps), delta).upper
            for accountant in (self._tight, self._older)
        )
        certified = Bracket(0.0, tight)  # no line is drawn from 0
        if tight <= _HOPELESS:
            certified = dpsgd_epsilon(run.noise_multiplier, run.sampling_rate, run.steps, delta, _WIDTH)
        return {_CERTIFIED: certified, _TIGHT: Bracket(tight, tight), _OLDER: Bracket(older, older)}


def _training(case: Values) -> Training:
    return Training(
        size=int(case["size"]),
        batch_size=int(case["batch"]),
        noise_multiplier=case["noise"],
        epochs=int(case["epochs"]),
    )


def _batches(plan: Values, least: int, most: int) -> tuple[float, ...]:
    """The batch times powers of two, as far as they are possible."""
    sizes = {math.floor(plan["batch"] * 2.0**k) for k in range(least, most + 1)}
    return tuple(sorted(size for size in sizes if 1 <= size <= plan["size"]))


def _shares(plan: Values, shares: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(plan["noise"] if share == 1 else float(f"{plan['noise'] * share:.6g}") for share in shares)


def _slider(plan: Values, field: str, title: str, values: tuple[float, ...]) -> Slider:
    return Slider(field=field, title=title, values=values, start=plan[field])


def _show(value: float) -> str:
    if value < 0.01:
        digits, exponent = f"{value:.2e}".split("e")
        return f"{float(digits):g}e{int(exponent)}"
    return f"{value:,.0f}" if value >= 1000 else plain(value)


def _short(number: float) -> float:
    """Enough digits for a chart."""
    return float(f"{number:.6g}")


# The page of a sweep: accuracy against epsilon, epoch by epoch, and against each setting.


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


# The page of measured memory: lines over the batch, the source's formulas beside ours, and jumps.


_MB = 1e6
_SMALL = 0.02  # jumps, as shares of the bytes: the resident set is not the same twice
_Of = Callable[[MeasuredMemory], tuple[int, int, int]]  # what is drawn of a case, its lowest and its highest
_WITH, _WITHOUT = "with privacy", "without"
_SOURCE = "Gervais 2020"
_SOURCE_WITH, _SOURCE_WITHOUT = f"{_SOURCE}, with privacy", f"{_SOURCE}, without"
_STAGES = {
    Stage.MODEL: "the model",
    Stage.BATCH: "the batch",
    Stage.GRADIENT: "loss and gradient",
    Stage.STEP: "the step",
}


def memory_page(rows: Sequence[MeasuredMemory], fitted: Sequence[Fit], jumps: Sequence[Jump]) -> Page:
    """Everything that was measured; charts are of the most hidden units and the largest images."""
    chosen = _largest(rows)
    alike = [row for row in rows if _same(row.case, chosen)]
    lines = [fit for fit in fitted if _same(fit.like, chosen)]
    sections = [_stages(rows, chosen, alike)]
    if lines:
        sections = [_memory_batches(chosen, alike, lines), *sections, _powers(lines, jumps)]
    return Page(
        title=f"Memory of training: {_finding(lines)}",
        lead=(
            f"A perceptron behind frozen convolutions (VGG{chosen.depth}) for {chosen.classes} classes, one "
            f"step of {chosen.optimizer} on random images, {len(rows)} cases, each in a process of its own. "
            "Bytes of tensors are those that torch's allocator handed out; 1 MB is a million bytes."
        ),
        sections=tuple(sections),
    )


def _finding(lines: Sequence[Fit]) -> str:
    slopes = {fit.like.private: fit.line.each for fit in lines if fit.quantity == BACKWARD}
    if len(slopes) < 2:
        return "four stages of a step"
    copy = 4 * _trained(lines[0].like)
    return (
        f"an example more takes {byte_count(slopes[True])} with privacy and {byte_count(slopes[False])} "
        f"without; a gradient of its own would take {byte_count(copy)}"
    )


def _trained(case: MemoryCase) -> int:
    """The parameters that are trained: those of the perceptron on 7 x 7 patches of 512 numbers."""
    return (25_088 + 1) * case.hidden + (case.hidden + 1) * case.classes


def _memory_batches(chosen: MemoryCase, alike: Sequence[MeasuredMemory], lines: Sequence[Fit]) -> Section:
    most = _figure(
        f"Tensors grow in a straight line with the batch ({_where(chosen)})",
        alike,
        [fit for fit in lines if fit.quantity == BACKWARD],
        lambda row: (row.most[Stage.GRADIENT],) * 3,
        "tensors at most until the gradient, MB",
    )
    figures = [most]
    if any(row.resident for row in alike):
        figures.append(
            _figure(
                "The process takes more than its tensors: Python, torch and what the system keeps",
                [row for row in alike if row.resident],
                [fit for fit in lines if fit.quantity == RESIDENT],
                lambda row: (row.middle or 0, min(row.resident), max(row.resident)),
                "resident set at most, MB",
            )
        )
    table = TextTable(
        name="lines",
        title="Lines through the measured bytes",
        columns=("bytes of", "privacy", "constant, MB", "an example, MB", "off by at most, %"),
        rows=tuple(
            (
                fit.quantity,
                _WITH if fit.like.private else _WITHOUT,
                fit.line.fixed / _MB,
                fit.line.each / _MB,
                round(100 * fit.worst, 4) if len(fit.points) > 2 else None,
            )
            for fit in lines
        ),
        note=f"Least squares, {_where(chosen)}.",
    )
    return Section(title="Against the batch", tables=(table,), figures=tuple(figures))


def _figure(title: str, rows: Sequence[MeasuredMemory], lines: Sequence[Fit], of: _Of, up: str) -> Figure:
    points: list[Row] = []
    for row in rows:
        much, low, high = (each / _MB for each in of(row))
        points.append(
            {"batch": row.case.batch, "MB": much, "low": low, "high": high, "series": _name(row.case)}
        )
    ends: list[Row] = [
        {
            "batch": batch,
            "MB": (fit.line.fixed + fit.line.each * batch) / _MB,
            "series": _name(fit.like),
        }
        for fit in lines
        for batch in (fit.points[0][0], fit.points[-1][0])
    ]
    return Figure(title=title, chart=draw_memory(points, ends, series=(_WITH, _WITHOUT), up=up))


def _stages(rows: Sequence[MeasuredMemory], chosen: MemoryCase, alike: Sequence[MeasuredMemory]) -> Section:
    """What each stage adds: measured in one case, by our formula, and by the source's."""
    lines: list[tuple[str | int | float | None, ...]] = []
    for private in (False, True):
        some = [row for row in alike if row.case.private is private]
        if not some:
            continue
        largest = max(some, key=lambda row: row.case.batch)
        for stage in FIRST:
            formula, ours = source_formula(stage, private), our_formula(rows, stage, private)
            lines.append(
                (
                    _STAGES[stage],
                    _WITH if private else _WITHOUT,
                    added(largest, stage) / _MB,
                    ours.words,
                    formula.bytes(largest.case) / _MB,
                    formula.words,
                )
            )
    largest_batch = max(row.case.batch for row in alike)
    table = TextTable(
        name="stages",
        title="What each stage adds to what is alive",
        columns=("stage", "privacy", "measured, MB", "ours", f"{_SOURCE}, MB", f"formula ({_SOURCE})"),
        rows=tuple(lines),
        note=(
            f"{_where(chosen)}, a batch of {largest_batch}. HU: hidden units, BS: batch, F: reduction. "
            "Ours are fitted to all cases with the fewest terms that leave 1 % at most. The thesis's are "
            "upper bounds for a graphics card and images of 224 pixels, without their corrections for "
            "single sizes; a slope of 108,500 HU an example is one copy of all trained parameters. Gervais "
            "(2020) is a master's thesis, whose chapters 3 and 4 are on private learning."
        ),
    )
    points: list[Row] = []
    source_points: list[Row] = []
    for row in alike:
        much = row.live[Stage.STEP] / _MB
        case = row.case
        points.append({"batch": case.batch, "MB": much, "low": much, "high": much, "series": _name(case)})
        name = _SOURCE_WITH if case.private else _SOURCE_WITHOUT
        source_points.append({"batch": case.batch, "MB": source_total(case) / _MB, "series": name})
    figure = Figure(
        title="After the step: Gervais (2020) kept a gradient for each example, here none is left",
        chart=draw_memory(
            points,
            source_points,
            series=(_WITH, _WITHOUT, _SOURCE_WITH, _SOURCE_WITHOUT),
            up="tensors after the step, MB",
        ),
    )
    return Section(title="Stage by stage, beside Gervais (2020)", tables=(table,), figures=(figure,))


def _powers(lines: Sequence[Fit], jumps: Sequence[Jump]) -> Section:
    """Whether memory jumps at powers of two, as the source saw."""
    figures = []
    for quantity, unit, scale in ((BACKWARD, "kB", 1e3), (RESIDENT, "MB", 1e6)):
        some = [fit for fit in lines if fit.quantity == quantity and len(fit.points) > 2]
        rows: list[Row] = [
            {"batch": batch, "off": off / scale, "who": _name(fit.like)}
            for fit in some
            for batch, off in fit.residuals
        ]
        if rows:
            title = f"{quantity.capitalize()}: {_largest_jump(jumps, quantity)}"
            figures.append(Figure(title=title, chart=draw_residuals(rows, up=f"above the line, {unit}")))
    return Section(
        title="Powers of two",
        paragraphs=(
            "Gervais (2020) saw memory rise at powers of two, up to twice what a stage added, and fall again "
            "after. Here a step to a power of two, and from it to the next batch, is compared with the slope "
            "of the other batches.",
        ),
        tables=_jump_table(jumps, lines),
        figures=tuple(figures),
    )


def _jump_table(jumps: Sequence[Jump], lines: Sequence[Fit]) -> tuple[TextTable, ...]:
    like = {fit.like for fit in lines}
    rows = tuple(
        (
            jump.quantity,
            _name(jump.like),
            f"{jump.before} to {jump.after}",
            jump.extra / _MB,
            100 * jump.share,
        )
        for jump in jumps
        if jump.like in like
    )
    columns = ("bytes of", "privacy", "batches", "beyond the slope, MB", "of the bytes before, %")
    return (
        (TextTable(name="jumps", title="Steps at powers of two", columns=columns, rows=rows),) if rows else ()
    )


def _largest_jump(jumps: Iterable[Jump], quantity: str) -> str:
    shares = [abs(jump.share) for jump in jumps if jump.quantity == quantity]
    if not shares:
        return "distance from the line"
    much = f"{100 * max(shares):.2g} %"
    if max(shares) == 0:
        return "no jump at powers of two"
    return f"no jump at powers of two above {much}" if max(shares) < _SMALL else f"jumps of up to {much}"


def _largest(rows: Iterable[MeasuredMemory]) -> MemoryCase:
    """The case that is charted, and those that differ in batch and privacy from it."""
    return max((row.case for row in rows), key=lambda case: (case.hidden, -case.reduce, case.batch))


def _same(case: MemoryCase, other: MemoryCase) -> bool:
    return (case.hidden, case.reduce) == (other.hidden, other.reduce)


def _name(case: MemoryCase) -> str:
    return _WITH if case.private else _WITHOUT


def _where(case: MemoryCase) -> str:
    return f"{case.hidden:,} hidden units, images of {case.side // case.reduce} pixels"
