"""pycanon's three measures, on a frame read beforehand, and its answers where an index is out of order."""

import time

import pandas as pd
from pycanon import anonymity

from benchmarks.anonymity.cases import QUASI, SENSITIVE
from benchmarks.anonymity.odd import ODD
from benchmarks.peers import Answer, Question, serve, versions


def answer(question: Question) -> Answer:
    """Seconds of k, l and t, one call each, with what they gave; or what an odd frame gives."""
    if question["task"] == "odd":
        return {name: _odd(*case) for name, case in ODD.items()}
    frame = pd.read_csv(question["path"], sep=";")
    start = time.perf_counter()
    k = anonymity.k_anonymity(frame, QUASI)
    l = anonymity.l_diversity(frame, QUASI, [SENSITIVE])  # noqa: E741
    t = anonymity.t_closeness(frame, QUASI, [SENSITIVE])
    return {
        "seconds": time.perf_counter() - start,
        "k": int(k),
        "l": int(l),
        "t": float(t),
        "version": versions("pycanon")["pycanon"],
    }


def _odd(rows: list[list[str]], index: list[int], measure: str) -> str:
    frame = pd.DataFrame(rows, columns=["q", "s"], index=index)
    call = {"l": anonymity.l_diversity, "delta": anonymity.delta_disclosure}[measure]
    try:
        return f"{float(call(frame, ['q'], ['s'])):.4g}"
    except Exception as problem:
        return type(problem).__name__


if __name__ == "__main__":
    serve(answer)
