"""pure-ldp: one value a call, then all estimates."""

import time

import numpy as np
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.hadamard_response import HadamardResponseClient, HadamardResponseServer
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

from benchmarks.local.cases import EPSILON, answers, truth
from benchmarks.peers import Answer, Question, serve, versions


def pair(oracle: str, categories: int) -> tuple[object, object] | None:
    """A fresh client and server."""
    settings = {"epsilon": EPSILON, "d": categories, "index_mapper": lambda value: value}
    if oracle == "kary":
        return DEClient(**settings), DEServer(**settings)
    if oracle.endswith("unary"):
        best = oracle.startswith("optimal")
        return UEClient(use_oue=best, **settings), UEServer(use_oue=best, **settings)
    if oracle == "local hashing":
        return LHClient(use_olh=True, **settings), LHServer(use_olh=True, **settings)
    if oracle == "hadamard":
        server = HadamardResponseServer(**settings)
        return HadamardResponseClient(hash_funcs=server.get_hash_funcs(), **settings), server
    return None


def answer(question: Question) -> Answer:
    """One oracle on so many people, if it is there."""
    people, categories = int(question["people"]), int(question["categories"])
    both = pair(question["oracle"], categories)
    if both is None:
        return {"missing": True}
    client, server = both
    values = [int(value) for value in answers(people, categories)]
    start = time.perf_counter()
    reports = [client.privatise(value) for value in values]  # type: ignore[attr-defined]
    sent = time.perf_counter()
    server.aggregate_all(reports)  # type: ignore[attr-defined]
    found = server.estimate_all(range(categories), suppress_warnings=True)  # type: ignore[attr-defined]
    read = time.perf_counter()
    error = float(np.sqrt(np.mean((np.asarray(found) / people - truth(people, categories)) ** 2)))
    return {
        "client": sent - start,
        "server": read - sent,
        "error": error,
        "version": versions("pure-ldp")["pure-ldp"],
    }


if __name__ == "__main__":
    serve(answer)
