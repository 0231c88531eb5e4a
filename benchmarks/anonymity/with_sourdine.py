"""Sourdine's measures and generalisation."""

import time
from fractions import Fraction

import pandas as pd

from benchmarks.anonymity.cases import HIERARCHIES, LIMIT, MORE, QUASI, SENSITIVE, K
from benchmarks.anonymity.odd import ODD
from benchmarks.peers import Answer, Question, serve, versions
from sourdine.anonymity import (
    Demand,
    GeneralisationMethod,
    delta_disclosure,
    generalise,
    l_diversity,
    measure,
    read_hierarchies,
)


def answer(question: Question) -> Answer:
    """Seconds of a task, with what came out."""
    task, path = question["task"], question.get("path", "")
    if task == "odd":
        return {name: _odd(*case) for name, case in ODD.items()}
    if task == "many":  # straight from the file
        start = time.perf_counter()
        found = measure(path, quasi=QUASI, sensitive=[SENSITIVE], subsets=2)
        return {"seconds": time.perf_counter() - start, "records": found.records, "k": found.k}
    frame = pd.read_csv(path, sep=";")
    start = time.perf_counter()
    if task == "measure":
        found = measure(frame, quasi=QUASI, sensitive=[SENSITIVE])
        seconds = time.perf_counter() - start
        return {"seconds": seconds, "k": found.k, "l": found.l, "t": found.t, "version": _version()}
    quasi = [*QUASI, *MORE] if task == "twelve" else QUASI
    asked = question.get("demand", {})
    made = generalise(
        frame,
        Demand(k=K, l=asked.get("l", 1), t=Fraction(asked.get("t", "1"))),
        quasi=quasi,
        sensitive=[SENSITIVE],
        hierarchies=read_hierarchies(HIERARCHIES, quasi),
        suppress=Fraction(LIMIT, 100),
        method=GeneralisationMethod(question.get("method", "full")),
    )
    return {
        "seconds": time.perf_counter() - start,
        "ncp": made.loss.ncp,
        "suppressed": made.suppressed,
        "proven": made.proven,
        "evaluated": made.evaluated,
        "version": _version(),
    }


def _odd(rows: list[list[str]], index: list[int], name: str) -> str:
    frame = pd.DataFrame(rows, columns=["q", "s"], index=index)
    call = {"l": l_diversity, "delta": delta_disclosure}[name]
    return f"{float(call(frame, ['q'], ['s'])):.4g}"


def _version() -> str:
    return versions("sourdine")["sourdine"]


if __name__ == "__main__":
    serve(answer)
