"""Ours, and independent columns: `python -m benchmarks.synthetic.with_sourdine QUESTION`."""

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import sourdine as sd
from benchmarks.synthetic.adult import DELTA, EDGES, KEYS, NAMES, SIZES, TARGET, cells
from sourdine.tables.synthetic import SyntheticRelease

COLUMNS: dict[str, Any] = {
    name: {"type": "integer", "lower": EDGES[name][0], "upper": EDGES[name][-1] - (name == "education_num")}
    if name in EDGES
    else {"type": "category", "keys": KEYS[name].split()}
    for name in NAMES
}


def main() -> None:
    question = json.loads(sys.argv[1])
    _, records = cells("train")
    people = sd.Table(pl.DataFrame(records), unit="person", columns=COLUMNS, size=len(records))
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "people.ledger"
        sd.Ledger.create(ledger, epsilon=question["epsilon"], delta=DELTA, unit="person").close()
        started, before = time.perf_counter(), time.process_time()
        if question["method"] == "independent":
            rows = independent(people, question["epsilon"])
        else:
            release = people.synthesize(
                epsilon=question["epsilon"],
                delta=DELTA,
                ledger=ledger,
                target=TARGET if question["method"] == "target" else None,
                bins={name: edges for name, edges in EDGES.items() if name != "education_num"},
            )
            rows = codes(release)
        seconds, processor = time.perf_counter() - started, time.process_time() - before
    np.save(question["path"], rows)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "processor": processor, "memory": memory}))


def codes(release: SyntheticRelease) -> Any:
    """The cells of the rows; a missing value, which Adult does not have, counts as the last one."""
    columns = [
        np.minimum(release.values.cells[name], size - 1) for name, size in zip(NAMES, SIZES, strict=True)
    ]
    return np.stack(columns, axis=1)


def independent(people: sd.Table, epsilon: float) -> Any:
    """All of the budget for counts of single columns, and each column drawn by itself."""
    from sourdine.tables.synthetic.synthesis import carry_out

    drawn = []
    for name in NAMES:  # each column is a table of its own, at its share of rho
        bins = {name: EDGES[name]} if name in EDGES and name != "education_num" else {}
        plan = people.synthetic_plan(
            epsilon=epsilon / len(NAMES) ** 0.5, delta=DELTA, columns=[name], bins=bins, rows=32_561
        )
        drawn.append(carry_out(plan, people.source).values.cells[name])
    return np.stack([np.minimum(each, size - 1) for each, size in zip(drawn, SIZES, strict=True)], axis=1)


if __name__ == "__main__":
    main()
