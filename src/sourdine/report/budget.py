"""The curves of private training: what each choice does to epsilon."""

import math
from dataclasses import dataclass

from sourdine.accounting.dpsgd import Training
from sourdine.accounting.training_cost import TrainingCost, cost_of_training
from sourdine.core.digits import shorten_up
from sourdine.report.charts import COLOURS, Axis, Band, Row, Series, Slider, draw_heat, draw_lines
from sourdine.report.orders import draw_orders
from sourdine.report.page import Figure, Page, Section
from sourdine.report.watch import Watch, unwatched

_CERTIFIED, _TIGHT, _OLDER = "certified bracket", "Rényi, tight conversion", "Rényi, 2017 conversion"
_METHODS = Series(field="method", names=(_CERTIFIED, _TIGHT, _OLDER))
_RENYI = Series(field="method", names=(_TIGHT, _OLDER), colours=COLOURS[1:])
_BAND = Band(lower="lower", upper="upper")
_WIDTH = 5e-3  # of the brackets: thinner than a line
_SLIDER_SHARES = (0.7, 1.0, 1.3, 1.6, 1.9)

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


def curves_page(training: Training, delta: float, watch: Watch = unwatched) -> Page:
    """One page with every curve around a run with Poisson batches."""
    cost = cost_of_training(training, delta)
    return Page(
        title="What private training costs",
        lead=(
            f"Around one run: {training.size:,} examples, batches of {training.batch:,}, noise "
            f"{training.noise:g}, epochs {training.epochs:,}, δ = {delta:g}. It takes {cost.steps:,} steps "
            f"and costs ε = {shorten_up(cost.epsilon.upper)}, for one example added or removed."
        ),
        sections=(
            Section(
                title="Curves",
                paragraphs=(
                    "The certified bracket is computed from the whole law of the privacy loss and holds the "
                    "least possible ε between its two ends, here too close to be told apart. The Rényi "
                    "accountant is a simpler upper bound. With the conversion of 2017 it is what older "
                    "tools print.",
                    "A dashed line stands at the run. Move a slider to see other runs; hover over a point "
                    "to read it.",
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
        "batch": training.batch,
        "noise": training.noise,
        "epochs": training.epochs,
        "delta": delta,
    }
    curves = _curves(plan)
    batches, noises = _batches(plan, -2, 5), _shares(plan, (0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0))
    cells = [plan | {"noise": noise, "batch": batch} for noise in noises for batch in batches]
    cases = cells + [
        plan | {curve.x.field: value, curve.slider.field: chosen}
        for curve in curves
        for value in curve.values
        for chosen in curve.slider.values
    ]
    costs = iter([_cost(case) for case in watch("computing curves", cases)])
    heat = _heat(plan, [(cell, next(costs)) for cell in cells])
    lines = []
    for curve in curves:
        found = [(value, chosen, next(costs)) for value in curve.values for chosen in curve.slider.values]
        lines.append(_lines(plan, curve, found))
    return (_orders(training, delta), *lines, heat)


def _curves(plan: Values) -> tuple[_Curve, ...]:
    noise = _slider(plan, "noise", "noise", _shares(plan, _SLIDER_SHARES))
    batch = _slider(plan, "batch", "batch", _batches(plan, -1, 3))
    sizes = {max(plan["batch"], round(plan["size"] * 2.0**k)) for k in range(-4, 5)}
    epochs = {max(1, round(plan["epochs"] * share)) for share in (0.2, 0.5, 1, 2, 3, 4, 6)} | {1}
    powers = {10.0 ** -(k / 2) for k in range(6, 21, 2)} | {plan["delta"]}
    shares = {plan["delta"] * share for share in (0.1, 0.3, 0.6, 1, 2, 4, 7, 10)}
    return (
        _Curve(
            x=Axis(field="size", title="examples in the data", log=True, form="~s"),
            values=tuple(sorted(sizes)),
            slider=noise,
            title="More data help: from {low:,} to {high:,} examples, ε goes from {first} to {last}",
            note="The batch and the epochs stay as they are, so a larger data set also takes more steps.",
        ),
        _Curve(
            x=Axis(
                field="batch", title="examples in a batch", log=True, form=",", ticks=_batches(plan, -3, 6)
            ),
            values=_batches(plan, -3, 6),
            slider=noise,
            title="Large batches cost more: from {low:,} to {high:,} examples, ε goes from {first} to {last}",
            note="The epochs stay as they are. Small batches learn from noisier sums, so the cheapest batch "
            "is seldom the best one.",
        ),
        _Curve(
            x=Axis(field="noise", title="noise, in clipping norms"),
            values=_shares(plan, (0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.7, 2.0, 2.5, 3.0)),
            slider=batch,
            title="The first noise helps most: from {low:g} to {high:g}, ε goes from {first} to {last}",
            note="Noise is the standard deviation added to a sum, divided by the clipping norm.",
        ),
        _Curve(
            x=Axis(field="epochs", title="epochs"),
            values=tuple(sorted(epochs)),
            slider=noise,
            title="The first epochs cost most: {low:,} costs ε = {first}, {high:,} cost {last}",
            note="The privacy loss of many steps adds up like a random walk: slower than the steps.",
            log=False,
        ),
        _Curve(
            x=Axis(
                field="delta", title="δ", form=".1~e", ticks=tuple(plan["delta"] * k for k in (1, 4, 7, 10))
            ),
            values=tuple(sorted(share for share in shares if share < 1)),
            slider=noise,
            title="A larger δ buys little: from {low:.2g} to {high:.2g}, ε goes from {first} to {last}",
            note="δ should lie below 1 over the number of examples, whatever it buys.",
            log=False,
        ),
        _Curve(
            x=Axis(field="delta", title="δ, on a logarithmic scale", log=True, form="~e"),
            values=tuple(sorted(powers)),
            slider=noise,
            title="A smaller δ costs little: from {high:.2g} to {low:.2g}, ε goes from {last} to {first}",
            note="ε grows about as the square root of the logarithm of 1/δ.",
            log=False,
        ),
    )


def _orders(training: Training, delta: float) -> Figure:
    noises = _shares({"noise": training.noise}, _SLIDER_SHARES)
    return Figure(
        title="Every Rényi order proves some ε, and only the best order counts",
        chart=draw_orders(training, delta, noises, _RENYI),
        note="Low orders pay for δ, high orders for rare large losses. The page computes this chart itself.",
    )


def _lines(plan: Values, curve: _Curve, found: list[tuple[float, float, TrainingCost]]) -> Figure:
    rows: list[Row] = []
    for value, chosen, cost in found:
        place = {curve.x.field: value, curve.slider.field: chosen}
        ends = (
            (_CERTIFIED, cost.epsilon.lower, cost.epsilon.upper),
            (_TIGHT, cost.renyi.epsilon, cost.renyi.epsilon),
            (_OLDER, cost.source.epsilon, cost.source.epsilon),
        )
        rows += [
            {**place, "method": method, "epsilon": _short(high), "lower": _short(low), "upper": _short(high)}
            for method, low, high in ends
            if low > 0 and math.isfinite(high)
        ]
    here = [cost.epsilon.upper for _, chosen, cost in found if chosen == curve.slider.start]
    return Figure(
        title=curve.title.format(
            low=curve.values[0],
            high=curve.values[-1],
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
            at=plan[curve.x.field],
        ),
        note=curve.note,
    )


def _heat(plan: Values, found: list[tuple[Values, TrainingCost]]) -> Figure:
    rows: list[Row] = [
        {"noise": cell["noise"], "batch": cell["batch"], "epsilon": _short(cost.epsilon.upper)}
        for cell, cost in found
        if math.isfinite(cost.epsilon.upper) and cost.epsilon.upper > 0
    ]
    return Figure(
        title="A larger batch can be paid for with more noise: equal colours cost the same ε",
        chart=draw_heat(
            rows,
            x=Axis(field="batch", title="examples in a batch", form=","),
            y=Axis(field="noise", title="noise, in clipping norms", form=".3~g"),
            colour=Axis(field="epsilon", title="ε (upper end)", log=True, form=".2~g"),
            at=(plan["batch"], plan["noise"]),
        ),
        note="The frame stands at the run; the epochs and δ are those of the run.",
    )


def _cost(case: Values) -> TrainingCost:
    training = Training(
        size=int(case["size"]), batch=int(case["batch"]), noise=case["noise"], epochs=int(case["epochs"])
    )
    return cost_of_training(training, case["delta"], width=_WIDTH)


def _batches(plan: Values, least: int, most: int) -> tuple[float, ...]:
    """The batch times powers of two, as far as they are possible."""
    sizes = {math.floor(plan["batch"] * 2.0**k) for k in range(least, most + 1)}
    return tuple(sorted(size for size in sizes if 1 <= size <= plan["size"]))


def _shares(plan: Values, shares: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(plan["noise"] if share == 1 else float(f"{plan['noise'] * share:.6g}") for share in shares)


def _slider(plan: Values, field: str, title: str, values: tuple[float, ...]) -> Slider:
    return Slider(field=field, title=title, values=values, start=plan[field])


def _short(number: float) -> float:
    """Enough digits for a chart."""
    return float(f"{number:.6g}")
