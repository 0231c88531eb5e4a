import math

import numpy as np
import pytest

from sourdine.local.utility import LearningModel, Scores
from sourdine.local.utility.models import NO_LABEL, Always, MixedNaiveBayes, Rows, learn, quality

NUMBERS = np.array([[0.0, 1.0], [2.0, 3.0], [10.0, 4.0], [12.0, 8.0]])


def test_naive_bayes_of_numbers_is_that_of_the_books() -> None:
    made = MixedNaiveBayes.fitted(Rows(NUMBERS, np.array([0, 0, 1, 1]), (0, 0), 2))
    assert made.means.tolist() == [[1, 2], [11, 6]]
    assert made.variances == pytest.approx(np.array([[1, 1], [1, 4]]), rel=1e-6)
    assert made.guess(np.array([[5.0, 2.0], [7.0, 6.0]])).tolist() == [0, 1]
    assert MixedNaiveBayes(made.shares, made.means, made.variances).guess(NUMBERS).tolist() == [0, 0, 1, 1]


def test_naive_bayes_of_keys_counts_each_once_more() -> None:
    cells = np.array([[0.0], [0.0], [1.0], [2.0]])
    made = MixedNaiveBayes.fitted(Rows(cells, np.array([0, 0, 0, 1]), (3,), 2))
    (table,) = made.tables
    assert table.tolist() == [[3 / 6, 2 / 6, 1 / 6], [1 / 4, 1 / 4, 2 / 4]]
    scores = [
        [math.log(share * row[key]) for share, row in zip((3 / 4, 1 / 4), table, strict=True)]
        for key in range(3)
    ]
    assert made.guess(np.array([[0.0], [1.0], [2.0]])).tolist() == [int(np.argmax(each)) for each in scores]


def test_numbers_and_keys_are_independent_within_a_class() -> None:
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 300)
    features = np.column_stack([labels + rng.normal(0, 0.5, 300), (labels + (rng.random(300) < 0.2)) % 3])
    made = MixedNaiveBayes.fitted(Rows(features, labels, (0, 3), 3))
    expected = []
    for number, key in features:
        score = [
            math.log(made.shares[k])
            - (number - made.means[k, 0]) ** 2 / (2 * made.variances[k, 0])
            - math.log(made.variances[k, 0]) / 2
            + math.log(made.tables[0][k, int(key)])
            for k in range(3)
        ]
        expected.append(int(np.argmax(score)))
    assert made.guess(features).tolist() == expected
    assert (np.array(expected) == labels).mean() > 0.8


def test_a_class_that_nobody_has_is_never_guessed() -> None:
    rows = Rows(NUMBERS, np.array([0, 0, 2, 2]), (0, 0), 3)
    assert 1 not in MixedNaiveBayes.fitted(rows).guess(NUMBERS)


def test_where_all_are_of_one_class_that_is_guessed() -> None:
    for labels in (np.ones(4, np.int64), np.zeros(0, np.int64)):
        made = learn(LearningModel.NAIVE_BAYES, Rows(NUMBERS[: len(labels)], labels, (0, 0), 2))
        assert isinstance(made, Always)
        assert made.guess(NUMBERS).tolist() == [int(bool(len(labels)))] * 4


@pytest.mark.parametrize("model", [LearningModel.LOGISTIC, LearningModel.TREE])
def test_models_of_scikit_learn_take_numbers_and_keys(model: LearningModel) -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(1)
    keys = rng.integers(0, 3, 200)
    features = np.column_stack([1000 * rng.normal(size=200), keys])
    labels = ((keys == 1) | (features[:, 0] > 500)).astype(np.int64)
    made = learn(model, Rows(features, labels, (0, 3), 2))
    assert (made.guess(features) == labels).mean() > 0.9


def test_rows_without_a_label_are_left_out() -> None:
    rows = Rows(NUMBERS, np.array([0, NO_LABEL, 1, NO_LABEL]), (0, 0), 2)
    assert rows.part(np.array([1, 2, 3])).features.tolist() == [[10, 4]]


def test_accuracy_and_f1() -> None:
    truth, guess = np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0])
    assert quality(truth, guess, 2) == (0.5, 0.5)
    assert quality(np.zeros(3, np.int64), np.zeros(3, np.int64), 2) == (1.0, 0.0)
    assert quality(np.array([0, 1, 2]), np.array([0, 1, 1]), 3) == pytest.approx((2 / 3, (1 + 2 / 3 + 0) / 3))
    assert Scores.of([(0.5, 0.25), (1.0, 0.75)]).f1.tolist() == [0.25, 0.75]
