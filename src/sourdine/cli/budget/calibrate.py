"""`sourdine budget calibrate`: the noise, or the epochs, that a budget allows."""

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.budget.options import (
    BatchSize,
    Draw,
    Epochs,
    SamplingRate,
    Size,
    Steps,
    by_sampling_rate,
    need_poisson,
    read_delta,
    read_noise_multiplier,
    read_sampling_rate,
    read_training,
    say_training,
)
from sourdine.cli.budget.releases import (
    _MANY,
    Calibration,
    calibrate_against,
    calibrate_release,
    say_attack,
    width_for,
)
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, number, plain_bracket, say_bracket
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.accounting.attack_risk import AttackLimit
    from sourdine.accounting.dpsgd.cost import TrainingCost
    from sourdine.accounting.dpsgd.training import Training

_EPSILON = Fraction(1, 1000), 100
_RATE = Fraction(1, 10**6), Fraction(999_999, 10**6)
_WHAT = (
    "Say what to calibrate: a training run (-s, -b and -e, or --sampling-rate and --steps), or --mechanism."
)


def calibrate(
    *,
    epsilon: Annotated[str | None, typer.Option(help="The epsilon to stay within.")] = None,
    advantage: Annotated[
        str | None, typer.Option(help="Or how far an attack's true positives may exceed its false ones.")
    ] = None,
    true_positives: Annotated[
        str | None, typer.Option(help="Or the rate of true positives that no attack may exceed.")
    ] = None,
    false_positives: Annotated[
        str | None, typer.Option(help="The rate of false positives of such an attack.")
    ] = None,
    delta: Annotated[
        str | None, typer.Option("--delta", "-d", help="Its delta. [default: 1e-5; for laplace 0]")
    ] = None,
    size: Size = None,
    batch_size: BatchSize = None,
    epochs: Epochs = None,
    noise_multiplier: Annotated[
        str | None, typer.Option("--noise-multiplier", "-n", help="The noise, to ask how many epochs fit.")
    ] = None,
    sampler: Draw = "poisson",
    sampling_rate: SamplingRate = None,
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

    The budget is an epsilon, or what the best attack may achieve. With --noise-multiplier, find how many
    epochs (or steps) fit instead.

    Examples: sourdine budget calibrate --epsilon 3 -s 60000 -b 64 -e 15 ·
    sourdine budget calibrate --advantage 0.1 -s 60000 -b 64 -e 15 ·
    sourdine budget calibrate --true-positives 0.05 --false-positives 0.01 --mechanism gaussian ·
    sourdine budget calibrate --epsilon 1 -s 60000 -b 64 --noise-multiplier 1.1 ·
    sourdine budget calibrate --epsilon 1 --mechanism laplace --sensitivity 2 --count 10
    """

    run = (size, batch_size, epochs, noise_multiplier, sampling_rate, steps)
    if mechanism is not None and any(value is not None for value in run):
        raise InvalidParameter(f"A mechanism and a training run were given. {_WHAT}")
    limit = _limit(epsilon, advantage, true_positives, false_positives)
    if limit is None:
        target = number("calibrate", "epsilon", str(epsilon), *_EPSILON)
    elif any(value is not None for value in (noise_multiplier, sampling_rate, steps)):
        raise InvalidParameter(
            "What an attack may achieve sets the noise of a run (-s, -b and -e) or of a --mechanism. "
            "Leave out --noise-multiplier, --sampling-rate and --steps, or give --epsilon."
        )
    if mechanism is not None and limit is not None:
        answer = calibrate_against(
            mechanism, limit, delta=delta, sensitivity=sensitivity, count=count, granularity=granularity
        )
    elif limit is not None:
        training = read_training(
            "calibrate",
            size=size,
            batch_size=batch_size,
            noise_multiplier=1.0,
            epochs=epochs,
            sampler=sampler,
        )
        answer = _noise_against(training, limit, read_delta("calibrate", delta or "1e-5"))
    elif mechanism is not None:
        answer = calibrate_release(
            mechanism, target, delta=delta, sensitivity=sensitivity, count=count, granularity=granularity
        )
    elif by_sampling_rate(sampling_rate, size, batch_size, epochs):
        need_poisson("calibrate", sampler)
        share = read_delta("calibrate", delta or "1e-5")
        answer = _steps(
            read_sampling_rate("calibrate", str(sampling_rate)), steps, noise_multiplier, target, share
        )
    elif steps is not None or all(value is None for value in run):
        raise InvalidParameter(_WHAT)
    else:
        level = 1.0 if noise_multiplier is None else read_noise_multiplier("calibrate", noise_multiplier)
        passes = _either("epochs", epochs, noise_multiplier)
        training = read_training(
            "calibrate",
            size=size,
            batch_size=batch_size,
            noise_multiplier=level,
            epochs=passes,
            sampler=sampler,
        )
        share = read_delta("calibrate", delta or "1e-5")
        answer = (
            _noise(training, target, share) if noise_multiplier is None else _epochs(training, target, share)
        )
    if as_json:
        show.document(answer.fields)
    else:
        for name, text in answer.lines.items():
            show.line(f"{name:<11}{text}")


def _noise(training: "Training", target: Fraction, delta: float) -> Calibration:
    """The least noise of a run."""
    from sourdine.accounting.dpsgd.calibration import noise_for_training
    from sourdine.accounting.dpsgd.cost import cost_of_training
    from sourdine.core.format import shorten_up

    noise_multiplier = float(shorten_up(noise_for_training(training, float(target), delta), 6))
    run = replace(training, noise_multiplier=noise_multiplier)
    cost = cost_of_training(run, delta, width=width_for(target, run.steps))
    return _noise_answer(run, cost, delta, Calibration({}, {}))


def _epochs(training: "Training", target: Fraction, delta: float) -> Calibration:
    """How many epochs of a run fit."""
    from sourdine.accounting.dpsgd.calibration import epochs_within
    from sourdine.accounting.dpsgd.cost import cost_of_training
    from sourdine.core.format import counted

    epochs = epochs_within(training, float(target), delta)
    fields: dict[str, object] = {
        "epochs": epochs,
        "delta": delta,
        "noise_multiplier": float(training.noise_multiplier),
    }
    if epochs == 0:
        return Calibration(fields | {"epsilon": None, "steps": 0}, {"Epochs": "not even one fits"})
    run = replace(training, epochs=epochs)
    cost = cost_of_training(run, delta, width=width_for(target, run.steps))
    return Calibration(
        fields | {"epsilon": plain_bracket(cost.epsilon), "steps": cost.steps, "sampler": str(cost.sampler)},
        {
            "Epochs": f"{epochs:,}, which is {counted(cost.steps, 'step')}",
            "epsilon": say_bracket(cost.epsilon, delta),
        },
    )


def _steps(
    sampling_rate: float, steps: int | None, noise_multiplier: str | None, target: Fraction, delta: float
) -> Calibration:
    """The noise for so many steps at a rate, or the steps that fit with a noise."""
    from sourdine.accounting.dpsgd.calibration import steps_within
    from sourdine.accounting.dpsgd.cost import cost_of_steps
    from sourdine.accounting.dpsgd.training import noise_for
    from sourdine.core.format import shorten_up

    count = _either("steps", steps, noise_multiplier)
    if noise_multiplier is None:
        count = check.integer("calibrate", "steps", count, 1, _MANY)
        level = float(shorten_up(noise_for(float(target), delta, sampling_rate, count), 6))
    else:
        level = read_noise_multiplier("calibrate", noise_multiplier)
        count = steps_within(level, sampling_rate, float(target), delta)
    fields: dict[str, object] = {
        "noise_multiplier": level,
        "steps": count,
        "delta": delta,
        "sampling_rate": sampling_rate,
    }
    if count == 0:
        return Calibration(fields | {"epsilon": None}, {"Steps": "not even one fits"})
    epsilon = cost_of_steps(level, sampling_rate, count, delta, width=width_for(target, count)).epsilon
    return Calibration(
        fields | {"epsilon": plain_bracket(epsilon)},
        {"Noise": f"{level:g} clipping norms", "Steps": f"{count:,}", "epsilon": say_bracket(epsilon, delta)},
    )


def _limit(
    epsilon: str | None, advantage: str | None, true_positives: str | None, false_positives: str | None
) -> "AttackLimit | None":
    """What an attack may achieve, unless an epsilon is the budget."""
    attack = {
        "advantage": advantage,
        "true-positives": true_positives,
        "false-positives": false_positives,
    }
    if (epsilon is None) == all(text is None for text in attack.values()):
        raise InvalidParameter(
            "Give one budget: --epsilon, --advantage, or --true-positives with --false-positives. "
            "Write for example --epsilon 1, or --true-positives 0.05 --false-positives 0.01."
        )
    if epsilon is not None:
        return None
    if (true_positives is None) != (false_positives is None):
        raise InvalidParameter("--true-positives and --false-positives go together. Give both, or neither.")
    if advantage is not None and true_positives is not None:
        raise InvalidParameter("Give --advantage, or --true-positives with --false-positives, not both.")
    from sourdine.accounting.attack_risk import AttackLimit

    read = {
        name.replace("-", "_"): number("calibrate", name, text, *_RATE)
        for name, text in attack.items()
        if text is not None
    }
    return AttackLimit(**read)


def _noise_against(training: "Training", limit: "AttackLimit", delta: float) -> Calibration:
    """The least noise of a run that keeps to a limit on attacks."""
    from sourdine.accounting.attack_risk import noise_for_attack
    from sourdine.accounting.dpsgd.cost import cost_of_training, loss_of_training
    from sourdine.accounting.pld.accountant import PLD
    from sourdine.core.format import shorten_up

    noise_multiplier = float(shorten_up(noise_for_attack(training, limit), 6))
    run = replace(training, noise_multiplier=noise_multiplier)
    loss, count = loss_of_training(run)
    attack = say_attack(limit, limit.success(PLD().repeat(PLD().lift(loss), count)))
    cost = cost_of_training(run, delta)
    return _noise_answer(run, cost, delta, attack)


def _noise_answer(run: "Training", cost: "TrainingCost", delta: float, attack: Calibration) -> Calibration:
    """What is told of the noise of a run; about attacks, where a limit on them was asked for."""
    from sourdine.core.format import counted

    return Calibration(
        {
            "noise_multiplier": run.noise_multiplier,
            "epsilon": plain_bracket(cost.epsilon),
            "delta": delta,
            "steps": cost.steps,
        }
        | attack.fields
        | {
            "sampling_rate": cost.sampling_rate,
            "sampler": str(cost.sampler),
            "assumptions": list(cost.assumptions),
        },
        {
            "Noise": f"{run.noise_multiplier:g} clipping norms",
            "Run": f"{say_training(run)}; {counted(cost.steps, 'step')}",
        }
        | attack.lines
        | {"epsilon": say_bracket(cost.epsilon, delta)},
    )


def _either(name: str, count: int | None, noise_multiplier: str | None) -> int:
    """A count, which is given unless the noise is; then it is what is looked for."""
    if (count is None) == (noise_multiplier is None):
        raise InvalidParameter(f"Give --{name} to find the noise, or --noise-multiplier to find the {name}.")
    return 1 if count is None else count
