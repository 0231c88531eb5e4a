"""The noise of plain releases that a budget allows, or that keeps to a limit on attacks."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

from sourdine.cli.budget.options import read_delta
from sourdine.cli.shared.parse import number, plain_bracket, say_bracket
from sourdine.core import check

if TYPE_CHECKING:
    from collections.abc import Callable

    from sourdine.accounting.accountant import Bracket
    from sourdine.accounting.attack_risk import AttackLimit
    from sourdine.accounting.spend import Spend
    from sourdine.core.distance import Distance
    from sourdine.core.mechanism import Mechanism

_FAR = 10**6  # the largest sensitivity
_MANY = 10**6  # steps that are looked at closely


class Calibration(NamedTuple):
    """What was found: fields for machines, and lines of two columns for people."""

    fields: dict[str, object]
    lines: dict[str, str]


def calibrate_against(
    name: str,
    limit: "AttackLimit",
    *,
    delta: str | None,
    sensitivity: str,
    count: int,
    granularity: str | None,
) -> Calibration:
    """The mechanism with the least noise for so many releases that keeps to a limit on attacks."""
    from sourdine.accounting.attack_risk import calibrate_plan_to_attack
    from sourdine.accounting.pld.accountant import PLD
    from sourdine.accounting.spend import Spend

    task = _read_release(name, sensitivity, count, granularity)
    share = read_delta("calibrate", delta or "1e-5") if delta is not None or name == "gaussian" else 0.0

    def plan(noise: Fraction) -> "list[Spend]":
        return [
            Spend(mechanism=task.mechanism(noise * task.change), distance=task.distance, count=task.releases)
        ]

    best = calibrate_plan_to_attack(plan, limit)[0].mechanism
    cost = PLD().repeat(PLD().lift(best.loss(task.distance)), task.releases)
    attack = say_attack(limit, limit.success(cost))
    answer = _releases(best, task, PLD().epsilon(cost, share), share)
    lines = {key: value for key, value in answer.lines.items() if key != "epsilon"}
    return Calibration(
        answer.fields | attack.fields, lines | attack.lines | {"epsilon": answer.lines["epsilon"]}
    )


def say_attack(limit: "AttackLimit", success: float) -> Calibration:
    """What the best attack achieves then."""
    from sourdine.accounting.explain.words import percent_up
    from sourdine.core.format import shorten_up

    if limit.advantage is not None:
        words = f"an advantage of {shorten_up(success, 4)} at most"
        return Calibration({"advantage": success}, {"Attacks": words})
    rate = float(limit.false_positives or 0)
    words = f"{percent_up(success, 4)} true positives at most, at {100 * rate:g} % false ones"
    return Calibration({"true_positives": success, "false_positives": rate}, {"Attacks": words})


class _Task(NamedTuple):
    """Releases that were asked for, and how their noise is made."""

    mechanism: "Callable[[Fraction], Mechanism]"
    distance: "Distance"
    change: Fraction
    releases: int


def _read_release(name: str, sensitivity: str, count: int, granularity: str | None) -> _Task:
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
    if name == "laplace":
        return _Task(
            lambda noise: Laplace(scale=noise, granularity=grid),
            Distance.l1(change, coordinates=1),
            change,
            count,
        )
    return _Task(
        lambda noise: Gaussian(sigma=noise, granularity=grid),
        Distance.l2(change, coordinates=1),
        change,
        count,
    )


def calibrate_release(
    name: str,
    target: Fraction,
    *,
    delta: str | None,
    sensitivity: str,
    count: int,
    granularity: str | None,
) -> Calibration:
    """The mechanism with the least noise for so many releases."""
    from sourdine.accounting.calibration import calibrate_noise
    from sourdine.accounting.pld.accountant import PLD

    task = _read_release(name, sensitivity, count, granularity)
    share = 0.0
    if delta is not None or name == "gaussian":
        share = read_delta("calibrate", delta or "1e-5")
    unit = task.change * (math.isqrt(task.releases) if share else 1)  # where the search begins
    best = calibrate_noise(
        lambda noise: task.mechanism(noise * unit), task.distance, target, share, count=task.releases
    )
    accountant = PLD(width=width_for(target, task.releases))
    cost = accountant.repeat(accountant.lift(best.loss(task.distance)), task.releases)
    return _releases(best, task, accountant.epsilon(cost, share), share)


def _releases(best: "Mechanism", task: _Task, epsilon: "Bracket", share: float) -> Calibration:
    """What is told of releases with some noise."""
    error = best.error(0.95)
    described = {key: value for key, value in best.to_json().items() if key != "mechanism" and value}
    return Calibration(
        {
            "mechanism": best.to_json(),
            "epsilon": plain_bracket(epsilon),
            "delta": share,
            "count": task.releases,
        }
        | {"error": {"confidence": 0.95, "each": error}},
        {
            "Noise": f"{type(best).__name__}, "
            + ", ".join(f"{key} {float(Fraction(str(value))):.6g}" for key, value in described.items()),
            "Error": f"at most {error:g}, 95 % of the time, for each of {task.releases:,}",
            "epsilon": say_bracket(epsilon, share),
        },
    )


def width_for(target: Fraction, count: int) -> float:
    """As narrow as the search itself looks, so that the answer is not seen above its target."""
    return (5e-5 if count <= _MANY else 1e-2) * min(1.0, float(target))
