"""multi-freq-ldpy: one compiled call a value; it cuts its estimates at 0 and scales them to sum to 1."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client

from benchmarks.local.cases import EPSILON, answers, truth
from benchmarks.peers import Answer, Question, serve, versions

Call = Callable[..., Any]
ORACLES: dict[str, tuple[Call, Call]] = {
    "kary": (GRR_Client, GRR_Aggregator_MI),
    "symmetric unary": (
        lambda value, k, epsilon: UE_Client(value, k, epsilon, False),
        lambda reports, k, epsilon: UE_Aggregator_MI(reports, epsilon, False),
    ),
    "optimal unary": (
        lambda value, k, epsilon: UE_Client(value, k, epsilon, True),
        lambda reports, k, epsilon: UE_Aggregator_MI(reports, epsilon, True),
    ),
    "local hashing": (LH_Client, LH_Aggregator_MI),
    "subset": (SS_Client, SS_Aggregator_MI),
}


def answer(question: Question) -> Answer:
    """One oracle on so many people, if it is there."""
    if question["oracle"] not in ORACLES:
        return {"missing": True}
    client, server = ORACLES[question["oracle"]]
    people, categories = int(question["people"]), int(question["categories"])
    values = [int(value) for value in answers(people, categories)]
    client(values[0], categories, EPSILON)  # compiled at the first call
    start = time.perf_counter()
    reports = [client(value, categories, EPSILON) for value in values]
    sent = time.perf_counter()
    found = server(reports, categories, EPSILON)
    read = time.perf_counter()
    return {
        "client": sent - start,
        "server": read - sent,
        "shaped": float(np.sqrt(np.mean((np.asarray(found) - truth(people, categories)) ** 2))),
        "version": versions("multi-freq-ldpy")["multi-freq-ldpy"],
    }


if __name__ == "__main__":
    serve(answer)
