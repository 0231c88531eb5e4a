"""Private boosting of single columns (DP-EBM) of interpret, with the same delta, at its defaults."""

import time
import warnings

from interpret.privacy import DPExplainableBoostingClassifier

from benchmarks.estimators.cases import DELTA, judged, split
from benchmarks.peers import Answer, Question, serve


def answer(question: Question) -> Answer:
    """Accuracy, AUC and seconds of one fit."""
    warnings.simplefilter("ignore")
    data = question["data"]
    table = split(data, int(question["run"]))
    kinds = ["nominal" if isinstance(each[0], str) else "continuous" for each in table.columns]
    start = time.process_time()
    found = DPExplainableBoostingClassifier(
        feature_types=kinds,
        epsilon=float(question["epsilon"]),
        delta=DELTA[data],
        privacy_bounds=dict(enumerate(table.bounds)),
        random_state=None,
    )
    found.fit(table.numeric(table.rows), table.classes)
    seconds = time.process_time() - start
    tests = table.numeric(table.test_rows)
    chances = found.predict_proba(tests)[:, 1]
    return judged(table, found.predict(tests), chances) | {"seconds": seconds}


if __name__ == "__main__":
    serve(answer)
