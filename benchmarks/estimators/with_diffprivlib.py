"""diffprivlib's classifiers (pure epsilon), on numbers between -1 and 1, and categories one-hot."""

import time
import warnings
from typing import Any

import numpy as np
from diffprivlib.models import GaussianNB, LogisticRegression, RandomForestClassifier

from benchmarks.estimators.cases import Split, judged, split
from benchmarks.peers import Answer, Question, serve


def prepared(table: Split, rows: Any, one_hot: bool) -> Any:
    """Numbers between -1 and 1; with `one_hot`, a column for each category, else numbers alone."""
    numbers, out = table.numeric(rows), []
    for values, each, (lower, upper) in zip(numbers.T, table.columns, table.bounds, strict=True):
        if not isinstance(each[0], str):
            out.append(np.clip((2 * values - lower - upper) / (upper - lower), -1, 1)[:, None])
        elif one_hot:
            out.append((values[:, None] == np.arange(len(each))).astype(float))
    return np.concatenate(out, axis=1)


def answer(question: Question) -> Answer:
    """Accuracy, AUC and seconds of one fit; of two ways to give it the columns, that which is asked for."""
    warnings.simplefilter("ignore")
    table, epsilon = split(question["data"], int(question["run"])), float(question["epsilon"])
    one_hot = bool(question["one_hot"])
    rows = prepared(table, table.rows, one_hot)
    start = time.process_time()
    if question["model"] == "naive Bayes":
        found: Any = GaussianNB(epsilon=epsilon, bounds=(-1, 1), priors=None)
    elif question["model"] == "forest":
        found = RandomForestClassifier(
            n_estimators=10, max_depth=5, epsilon=epsilon, bounds=(-1, 1), classes=[0, 1]
        )
    else:
        widest = sum(1 for _ in table.columns) if one_hot else rows.shape[1]
        found = LogisticRegression(epsilon=epsilon, data_norm=float(np.sqrt(widest)), max_iter=500)
    found.fit(rows, table.classes)
    seconds = time.process_time() - start
    tests = prepared(table, table.test_rows, one_hot)
    chances = np.nan_to_num(found.predict_proba(tests)[:, 1])
    return judged(table, found.predict(tests), chances) | {"seconds": seconds}


if __name__ == "__main__":
    serve(answer)
