"""Our classifiers, with real noise."""

import time
from typing import Any

from sklearn.pipeline import make_pipeline

from benchmarks.estimators.cases import DELTA, judged, split
from benchmarks.peers import Answer, Question, serve
from sourdine.estimators import Binner, LeastSquaresClassifier, LogisticRegression, NaiveBayes


def model(name: str, data: str, columns: list[Any], **budget: float) -> Any:
    """One of them, as a user would declare it for this table."""
    given: dict[str, Any] = {"classes": [0, 1], **budget}
    if name == "naive Bayes":
        return NaiveBayes(bounds=columns, bins=4 if data == "pima" else 8, **given)
    kind = LeastSquaresClassifier if name == "least squares" else LogisticRegression
    if data == "adult":
        return make_pipeline(Binner(columns), kind(norm=1, **given))
    return kind(bounds=columns, norm=1.5, **given)


def answer(question: Question) -> Answer:
    """Accuracy, AUC and seconds of one fit."""
    data, epsilon = question["data"], float(question["epsilon"])
    table = split(data, int(question["run"]))
    start = time.process_time()
    found = model(question["model"], data, table.columns, epsilon=epsilon, delta=DELTA[data])
    found.fit(table.rows, table.classes)
    seconds = time.process_time() - start
    chances = found.predict_proba(table.test_rows)[:, 1]
    return judged(table, found.predict(table.test_rows), chances) | {"seconds": seconds}


if __name__ == "__main__":
    serve(answer)
