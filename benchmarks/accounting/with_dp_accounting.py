"""dp_accounting's answers, by its privacy loss distributions (interval 1e-4, its default) or Renyi."""

from time import perf_counter

import dp_accounting
from dp_accounting import pld, rdp

from benchmarks.peers import Answer, Question, serve, versions


def event(question: Question, noise: float) -> dp_accounting.DpEvent:
    """The run as dp_accounting describes it."""
    step = dp_accounting.PoissonSampledDpEvent(question["rate"], dp_accounting.GaussianDpEvent(noise))
    return dp_accounting.SelfComposedDpEvent(step, question["steps"])


def answer(question: Question) -> Answer:
    """The result and the seconds it took."""
    if question["task"] == "versions":
        return versions("dp-accounting")
    make = rdp.RdpAccountant if question["task"] == "renyi" else pld.PLDAccountant
    start = perf_counter()
    if question["task"] == "calibrate":
        noise = dp_accounting.calibrate_dp_mechanism(
            make,
            lambda noise: event(question, noise),
            question["target"],
            question["delta"],
            dp_accounting.LowerEndpointAndGuess(0.3, 1.0),
            tol=1e-5,
        )
        result = {"noise": noise}
    else:
        epsilon = make().compose(event(question, question["noise"])).get_epsilon(question["delta"])
        result = {"upper": epsilon}
    return result | {"seconds": perf_counter() - start}


if __name__ == "__main__":
    serve(answer)
