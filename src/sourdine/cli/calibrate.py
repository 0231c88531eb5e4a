"""`sourdine budget calibrate`: the noise, or the epochs, that a budget allows."""

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sourdine.cli import show
from sourdine.cli.bracket import plain_bracket, say_bracket
from sourdine.cli.number import number
from sourdine.cli.run import (
    AsJson,
    Batch,
    Draw,
    Epochs,
    Rate,
    Size,
    Steps,
    by_rate,
    need_poisson,
    read_delta,
    read_noise,
    read_rate,
    read_training,
    say_training,
)
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.accounting.dpsgd import Training

_EPSILON = Fraction(1, 1000), 100
_WHAT = "Say what to calibrate: a training run (-s, -b and -e, or --rate and --steps), or --mechanism."
_FAR = 10**6  # the largest sensitivity
_MANY = 10**6  # steps that are looked at closely


class _Answer(NamedTuple):
    """What was found: fields for machines, and lines of two columns for people."""

    fields: dict[str, object]
    lines: dict[str, str]


def calibrate(
    *,
    epsilon: Annotated[str, typer.Option(help="The epsilon to stay within.")],
    delta: Annotated[
        str | None, typer.Option("--delta", "-d", help="Its delta. [default: 1e-5; for laplace 0]")
    ] = None,
    size: Size = None,
    batch: Batch = None,
    epochs: Epochs = None,
    noise: Annotated[
        str | None, typer.Option("--noise", "-n", help="The noise, to ask how many epochs fit.")
    ] = None,
    sampler: Draw = "poisson",
    rate: Rate = None,
    steps: Steps = None,
    mechanism: Annotated[
        str | None, typer.Option(help="Noise for plain releases instead: laplace or gaussian.")
    ] = None,
    sensitivity: Annotated[
        str, typer.Option(help="Releases: how far one person moves an answer (laplace L1, gaussian L2).")
    ] = "1",
    count: Annotated[int, typer.Option(help="Releases: how many there are.")] = 1,
    granularity: Annotated[
        str | None, typer.Option(help="Releases of reals: their grid, a power of 2 such as 1/1024.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the least noise that stays within a budget, for a training run or for plain releases.

    With --noise, find how many epochs (or steps) fit instead.

    Examples: sourdine budget calibrate --epsilon 3 -s 60000 -b 64 -e 15 ·
    sourdine budget calibrate --epsilon 1 -s 60000 -b 64 --noise 1.1 ·
    sourdine budget calibrate --epsilon 1 --mechanism laplace --sensitivity 2 --count 10
    """

    target = number("calibrate", "epsilon", epsilon, *_EPSILON)
    run = (size, batch, epochs, noise, rate, steps)
    if mechanism is not None:
        if any(value is not None for value in run):
            raise InvalidParameter(f"A mechanism and a training run were given. {_WHAT}")
        answer = _release(
            mechanism, target, delta=delta, sensitivity=sensitivity, count=count, granularity=granularity
        )
    elif by_rate(rate, size, batch, epochs):
        need_poisson("calibrate", sampler)
        share = read_delta("calibrate", delta or "1e-5")
        answer = _steps(read_rate("calibrate", str(rate)), steps, noise, target, share)
    elif steps is not None or all(value is None for value in run):
        raise InvalidParameter(_WHAT)
    else:
        level = 1.0 if noise is None else read_noise("calibrate", noise)
        passes = _either("epochs", epochs, noise)
        training = read_training(
            "calibrate", size=size, batch=batch, noise=level, epochs=passes, sampler=sampler
        )
        share = read_delta("calibrate", delta or "1e-5")
        answer = _noise(training, target, share) if noise is None else _epochs(training, target, share)
    if as_json:
        show.document(answer.fields)
    else:
        for name, told in answer.lines.items():
            show.line(f"{name:<11}{told}")


def _noise(training: "Training", target: Fraction, delta: float) -> _Answer:
    """The least noise of a run."""
    from sourdine.accounting.training_cost import cost_of_training
    from sourdine.accounting.training_plan import noise_for_training
    from sourdine.core.digits import counted, shorten_up

    noise = float(shorten_up(noise_for_training(training, float(target), delta), 6))
    run = replace(training, noise=noise)
    cost = cost_of_training(run, delta, width=_width(target, run.steps))
    return _Answer(
        {"noise": noise, "epsilon": plain_bracket(cost.epsilon), "delta": delta, "steps": cost.steps}
        | {"rate": cost.rate, "sampler": str(cost.sampler), "assumptions": list(cost.assumptions)},
        {
            "Noise": f"{noise:g} clipping norms",
            "Run": f"{say_training(run)}; {counted(cost.steps, 'step')}",
            "epsilon": say_bracket(cost.epsilon, delta),
        },
    )


def _epochs(training: "Training", target: Fraction, delta: float) -> _Answer:
    """How many epochs of a run fit."""
    from sourdine.accounting.training_cost import cost_of_training
    from sourdine.accounting.training_plan import epochs_within
    from sourdine.core.digits import counted

    epochs = epochs_within(training, float(target), delta)
    fields: dict[str, object] = {"epochs": epochs, "delta": delta, "noise": float(training.noise)}
    if epochs == 0:
        return _Answer(fields | {"epsilon": None, "steps": 0}, {"Epochs": "not even one fits"})
    run = replace(training, epochs=epochs)
    cost = cost_of_training(run, delta, width=_width(target, run.steps))
    return _Answer(
        fields | {"epsilon": plain_bracket(cost.epsilon), "steps": cost.steps, "sampler": str(cost.sampler)},
        {
            "Epochs": f"{epochs:,}, which is {counted(cost.steps, 'step')}",
            "epsilon": say_bracket(cost.epsilon, delta),
        },
    )


def _steps(rate: float, steps: int | None, noise: str | None, target: Fraction, delta: float) -> _Answer:
    """The noise for so many steps at a rate, or the steps that fit with a noise."""
    from sourdine.accounting.training_cost import cost_of_steps
    from sourdine.accounting.training_plan import noise_for_steps, steps_within
    from sourdine.core.digits import shorten_up

    count = _either("steps", steps, noise)
    if noise is None:
        count = check.integer("calibrate", "steps", count, 1, _MANY)
        level = float(shorten_up(noise_for_steps(float(target), delta, rate, count), 6))
    else:
        level = read_noise("calibrate", noise)
        count = steps_within(level, rate, float(target), delta)
    fields: dict[str, object] = {"noise": level, "steps": count, "delta": delta, "rate": rate}
    if count == 0:
        return _Answer(fields | {"epsilon": None}, {"Steps": "not even one fits"})
    found = cost_of_steps(level, rate, count, delta, width=_width(target, count)).epsilon
    return _Answer(
        fields | {"epsilon": plain_bracket(found)},
        {"Noise": f"{level:g} clipping norms", "Steps": f"{count:,}", "epsilon": say_bracket(found, delta)},
    )


def _release(
    name: str,
    target: Fraction,
    *,
    delta: str | None,
    sensitivity: str,
    count: int,
    granularity: str | None,
) -> _Answer:
    """The mechanism with the least noise for so many releases."""
    from sourdine.accounting.calibrate import calibrate_noise
    from sourdine.accounting.pld import PLD
    from sourdine.core.distance import Distance
    from sourdine.mechanisms import Gaussian, Laplace

    if name not in ("laplace", "gaussian"):
        raise check.fail("calibrate", "mechanism", "be one of laplace, gaussian", name)
    count = check.integer("calibrate", "count", count, 1, 10**4)
    change = number("calibrate", "sensitivity", sensitivity, Fraction(1, _FAR), _FAR)
    grid = None
    if granularity is not None:
        grid = number("calibrate", "granularity", granularity, Fraction(1, 2**100), 2**100)
    elif change.denominator != 1:
        remedy = "For answers that are reals, give their grid as well: --granularity 1/1024."
        raise check.fail(
            "calibrate", "sensitivity", "be a whole number for whole answers", sensitivity, remedy
        )
    share = 0.0
    if delta is not None or name == "gaussian":
        share = read_delta("calibrate", delta or "1e-5")
    unit = change * (math.isqrt(count) if share else 1)  # where the search begins
    if name == "laplace":
        distance = Distance.l1(change, coordinates=1)
        best = calibrate_noise(
            lambda noise: Laplace(scale=noise * unit, granularity=grid), distance, target, share, count=count
        )
    else:
        distance = Distance.l2(change, coordinates=1)
        best = calibrate_noise(
            lambda noise: Gaussian(sigma=noise * unit, granularity=grid), distance, target, share, count=count
        )
    accountant = PLD(width=_width(target, count))
    found = accountant.epsilon(accountant.repeat(accountant.lift(best.loss(distance)), count), share)
    error = best.error(0.95)
    described = {key: value for key, value in best.to_json().items() if key != "mechanism" and value}
    return _Answer(
        {"mechanism": best.to_json(), "epsilon": plain_bracket(found), "delta": share, "count": count}
        | {"error": {"confidence": 0.95, "each": error}},
        {
            "Noise": f"{type(best).__name__}, "
            + ", ".join(f"{key} {float(Fraction(str(value))):.6g}" for key, value in described.items()),
            "Error": f"at most {error:g}, 95 % of the time, for each of {count:,}",
            "epsilon": say_bracket(found, share),
        },
    )


def _either(name: str, asked: int | None, noise: str | None) -> int:
    """A count, which is given unless the noise is; then it is what is looked for."""
    if (asked is None) == (noise is None):
        raise InvalidParameter(f"Give --{name} to find the noise, or --noise to find the {name}.")
    return 1 if asked is None else asked


def _width(target: Fraction, count: int) -> float:
    """As narrow as the search itself looks, so that the answer is not seen above its target."""
    return (5e-5 if count <= _MANY else 1e-2) * min(1.0, float(target))
