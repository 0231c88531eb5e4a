"""The curves of private training: what each choice does to epsilon."""

import math
from dataclasses import dataclass

import numpy as np

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.dpsgd.cost import cost_of_training
from sourdine.accounting.dpsgd.training import Training, dpsgd_epsilon, step_loss
from sourdine.accounting.rdp.accountant import SOURCE_ORDERS, Conversion, Renyi
from sourdine.core.figure import Figure
from sourdine.core.format import plain, shorten_up
from sourdine.report.charts.base import COLOURS, Axis, Band, Row, Series, Slider, draw_heat, draw_lines
from sourdine.report.charts.training import draw_orders
from sourdine.report.pages.page import Page, Section, Watch, unwatched

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
