"""Sourdine's answers: the bracket of epsilon, or the noise for a target."""

from itertools import product
from time import perf_counter

import numpy as np

from benchmarks.peers import Answer, Question, serve, versions
from sourdine.accounting.dpsgd.sweep import dpsgd_epsilons
from sourdine.accounting.dpsgd.training import dpsgd_epsilon, noise_for, steps_cost
from sourdine.accounting.pld.accountant import PLD


def answer(question: Question) -> Answer:
    """The result and the seconds it took."""
    if question["task"] == "versions":
        return versions("sourdine", "numpy", "scipy")
    if question["task"] == "sweep":
        return _sweep(question)
    start = perf_counter()
    if question["task"] == "epsilon":
        bracket = dpsgd_epsilon(
            question["noise"], question["rate"], question["steps"], question["delta"], question["width"]
        )
        result: Answer = {"lower": bracket.lower, "upper": bracket.upper}
    elif question["task"] == "why":
        cost = steps_cost(question["noise"], question["rate"], question["steps"])
        result = {"why": PLD(width=question["width"]).why_wide(cost, question["delta"])}
    else:
        result = {
            "noise": noise_for(question["target"], question["delta"], question["rate"], question["steps"])
        }
    return result | {"seconds": perf_counter() - start}


def _sweep(question: Question) -> Answer:
    """Many settings at once and one after the other: the seconds of both, and whether all brackets meet."""
    axes = [question[name] for name in ("noises", "rates", "steps", "deltas")]
    dpsgd_epsilons(*(axis[0] for axis in axes))  # to warm up
    start = perf_counter()
    lower, upper = (each.ravel() for each in dpsgd_epsilons(*np.ix_(*axes)))
    middle = perf_counter()
    alone = [dpsgd_epsilon(*setting) for setting in product(*axes)]
    end = perf_counter()
    meet = all(
        each.lower <= high and low <= each.upper for low, high, each in zip(lower, upper, alone, strict=True)
    )
    return {"seconds": middle - start, "loop": end - middle, "meet": meet, "settings": len(alone)}


if __name__ == "__main__":
    serve(answer)
