"""Whatever is wrong with rows or targets, no error quotes them, and no value decides how others are read."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

from sourdine import InvalidParameter
from sourdine.estimators import Binner, LeastSquaresClassifier, LogisticRegression, NaiveBayes
from sourdine.estimators.payment import codes
from sourdine.estimators.shapes import as_given, column, matrix
from tests.estimators.cases import BOUNDS, made_up

SECRET = 123454321


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([SECRET, 2, 3], "Reshape"),
        (np.array([SECRET, 2]), "Reshape"),
        (np.array(SECRET), "Reshape"),
        ([[SECRET, 2], [3]], "Reshape"),
        (np.full((2, 4, 2), SECRET), "no table"),
        (np.array([[SECRET + 2j] * 4]), "Complex data not supported"),
        (np.array([[str(SECRET)] * 4]), "not numbers"),
        (pd.DataFrame({"a": [str(SECRET)], "b": [1], "c": [1], "d": [1]}, dtype="str"), "column 'a' holds"),
        (pl.DataFrame({"a": [1], "b": [str(SECRET)], "c": [1], "d": [1]}), "column 'b' holds"),
        (pd.DataFrame({"a": pd.Categorical([SECRET]), "b": [1], "c": [1], "d": [1]}), "column 'a' holds"),
    ],
)
def test_no_error_quotes_rows(rows: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        LeastSquaresClassifier(bounds=BOUNDS, classes=[0, 1]).fit(rows, [0])
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


@pytest.mark.parametrize("targets", [[[SECRET, 1], [1, 2]], [SECRET], np.full((2, 3), SECRET), SECRET])
def test_no_error_quotes_targets(targets: Any) -> None:
    with pytest.raises(InvalidParameter, match="one target a row") as caught:
        LeastSquaresClassifier(bounds=BOUNDS, classes=[0, 1]).fit(made_up(2)[0], targets)
    assert str(SECRET) not in str(caught.value)


def test_one_item_does_not_change_how_others_of_a_list_are_read() -> None:
    """NumPy makes texts of a whole list that has a text in it, and floats of one with a float."""
    labels: list[Any] = [0, 1, 1, 0]
    for odd in ("who", None, 2.5, [1], b"1", 10**400, SECRET, float("nan")):
        assert codes(np.array([0, 1]), column("x", [*labels, odd], np.zeros((5, 1)))).tolist() == [
            *labels,
            -1,
        ]
    for odd in ("who", None, 10**400, b"1"):
        looked = matrix(Binner((0, 1)), [[1, 2**53 + 1], [3, odd]], reset=True)
        assert looked[0].tolist() == [1, 2**53 + 1]
        LeastSquaresClassifier(bounds=(0, 5), classes=[0, 1]).fit([[1, 2], [3, odd]], [0, 1])


def test_what_is_masked_is_not_read() -> None:
    masked = np.ma.MaskedArray([[1.0, SECRET], [2.0, 3.0]], mask=[[False, True], [False, False]])
    shown: Any = as_given(masked)
    assert np.isnan(shown[0, 1])
    assert shown[1].tolist() == [2.0, 3.0]
    whole: Any = as_given(np.ma.MaskedArray([[1, SECRET]], mask=[[False, True]]))
    assert np.isnan(whole[0, 1])


@pytest.mark.parametrize(
    ("classes", "targets"),
    [
        ([0, 1], np.array(["0", "1"])),
        ([0, 1], pd.Series(["0", "1"], dtype="str")),
        ([0, 1], pl.Series(["0", "1"])),
        (["0", "1"], np.array([0, 1])),
        (["no", "yes"], np.array([False, True])),
    ],
)
def test_classes_of_another_type_are_refused(classes: Any, targets: Any) -> None:
    for kind in (LogisticRegression, NaiveBayes):
        with pytest.raises(InvalidParameter, match="Declare classes of the type of y"):
            kind(bounds=BOUNDS, classes=classes).fit(made_up(2)[0], targets)


def frames() -> list[Any]:
    """The same rows as every kind of table people have."""
    table = made_up(200)[0].round(3)
    names = ["a", "b", "c", "d"]
    return [
        table,
        table.tolist(),
        table.astype(object),
        np.asfortranarray(table),
        pd.DataFrame(table, columns=names),
        pd.DataFrame(table, columns=names).convert_dtypes(),
        pd.DataFrame(table, columns=names, dtype=object),
        pl.DataFrame(table, schema=names),
    ]


def test_every_kind_of_table_is_read_alike() -> None:
    targets = made_up(200)[1]
    weights: list[NDArray[Any]] = [
        LogisticRegression(bounds=BOUNDS, classes=[0, 1], random_state=3).fit(rows, targets).weights_
        for rows in frames()
    ]
    for kind in (
        targets.tolist(),
        targets.astype(float),
        targets == 1,
        pd.Series(targets),
        pl.Series(targets),
    ):
        model = LogisticRegression(bounds=BOUNDS, classes=[0, 1], random_state=3)
        weights.append(model.fit(frames()[0], kind).weights_)
    assert all((each == weights[0]).all() for each in weights)


def test_neither_the_order_of_rows_nor_of_memory_matters() -> None:
    table, targets = made_up(20_000)
    order = np.random.default_rng(2).permutation(len(table))
    first, second = (
        LogisticRegression(bounds=BOUNDS, classes=[0, 1], random_state=3).fit(rows, labels).weights_
        for rows, labels in ((table, targets), (np.asfortranarray(table[order]), targets[order]))
    )
    assert (first == second).all()
