"""anjana's k-anonymity with suppression, on a frame read beforehand, and what its table has lost."""

import time
from pathlib import Path

import pandas as pd
from anjana.anonymity import k_anonymity

from benchmarks.anonymity.cases import HIERARCHIES, LIMIT, QUASI, K
from benchmarks.peers import Answer, Question, serve, versions


def trees(frame: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The hierarchy of each column, a column a level; numbers are numbers, as in the frame."""
    found = {}
    for name in QUASI:
        path = Path(HIERARCHIES) / f"adult_hierarchy_{name}.csv"
        tree = pd.read_csv(path, sep=";", header=None, dtype=str)
        if pd.api.types.is_numeric_dtype(frame[name]):
            tree[0] = tree[0].astype(frame[name].dtype)
        found[name] = tree
    return found


def penalty(made: pd.DataFrame, held: dict[str, pd.DataFrame], size: int) -> float:
    """The normalised certainty penalty of what came out; a record left out counts 1."""
    lost = 0.0
    for name, tree in held.items():
        leaves: dict[object, int] = {}
        for level in tree.columns:
            for label, count in tree[level].value_counts().items():
                leaves[label] = max(count, leaves.get(label, 0))
        share = {label: (count - 1) / (len(tree) - 1) for label, count in leaves.items()}
        lost += float(made[name].map(share).sum()) / len(held)
    return (lost + size - len(made)) / size


def answer(question: Question) -> Answer:
    """Seconds of a k-anonymous table with suppression, and its penalty."""
    frame = pd.read_csv(question["path"], sep=";")
    held = trees(frame)
    levels = {name: {level: tree[level] for level in tree.columns} for name, tree in held.items()}
    start = time.perf_counter()
    made = k_anonymity(frame, [], QUASI, K, LIMIT, levels)
    return {
        "seconds": time.perf_counter() - start,
        "ncp": penalty(made, held, len(frame)),
        "suppressed": len(frame) - len(made),
        "k": int(made.groupby(QUASI, observed=True).size().min()),
        "version": versions("anjana")["anjana"],
    }


if __name__ == "__main__":
    serve(answer)
