"""Sourdine's answers: the bracket of epsilon, or the noise for a target."""

from time import perf_counter

from benchmarks.peers import Answer, Question, serve, versions
from sourdine.accounting.dpsgd.training import dpsgd_epsilon, noise_for, steps_cost
from sourdine.accounting.pld.accountant import PLD


def answer(question: Question) -> Answer:
    """The result and the seconds it took."""
    if question["task"] == "versions":
        return versions("sourdine", "numpy", "scipy")
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


if __name__ == "__main__":
    serve(answer)
