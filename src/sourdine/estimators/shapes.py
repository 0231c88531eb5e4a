"""Rows and targets as arrays, by their shapes, names and types alone: no error here tells of a value.

scikit-learn looks at them, since it knows frames of every kind. Some of its errors quote what they are about,
or how many rows there are; they are said anew, without.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from sourdine.core.errors import InvalidParameter
from sourdine.estimators.rows import MOST_ROWS

Array = NDArray[Any]

_HARMLESS = (  # errors of scikit-learn about columns, their names and kinds
    "Sparse data was passed",
    "The feature names",
    "Feature names",
    "X has ",
    "Found array with 0 feature",
    "0 feature(s)",
)
_TEXTS = ("str", "cat", "enum")


def as_given(values: object) -> object:
    """A list with each item as it is, and what is masked as NaN.

    NumPy would make texts of all numbers as soon as a text stands beside them, and would show what lies under
    a mask.
    """
    if isinstance(values, list | tuple | range):
        return np.array(values, dtype=np.object_) if len(values) else values
    if isinstance(values, np.ma.MaskedArray):
        kept = np.array(values.data, np.float64 if values.dtype.kind in "fiub" else np.object_)
        kept[np.ma.getmaskarray(values)] = np.nan
        return kept
    return values


def matrix(estimator: BaseEstimator, rows: object, *, reset: bool) -> Array:
    """Rows one below the other; with `reset` the names and number of columns are kept by the estimator."""
    try:
        given = as_given(rows)
        if not estimator.__sklearn_tags__().input_tags.string:
            _refuse_texts(type(estimator).__name__, given)
        looked: Array = validate_data(
            estimator, given, dtype=None, ensure_all_finite=False, ensure_min_samples=0, reset=reset
        )
    except InvalidParameter:
        raise
    except (TypeError, ValueError) as problem:
        if str(problem).startswith(_HARMLESS):
            raise
        raise InvalidParameter(_without_values(str(problem))) from None
    return looked


def used_matrix(estimator: BaseEstimator, rows: object) -> Array:
    """Rows that a fitted model is used on."""
    check_is_fitted(estimator, "spends_")
    return matrix(estimator, rows, reset=False)


def fitted_pair(estimator: BaseEstimator, rows: object, targets: object) -> tuple[Array, Array | None]:
    """Rows and targets to fit to; nothing of their values is known afterwards."""
    owner = type(estimator).__name__
    looked = matrix(estimator, rows, reset=True)
    if len(looked) > MOST_ROWS:
        raise InvalidParameter(f"{owner} takes at most 2^28 rows at once.")
    if targets is None:
        if estimator.__sklearn_tags__().target_tags.required:
            raise InvalidParameter(
                f"{owner} requires y to be passed, but the target y is None. "
                "Pass a class or a number for each row."
            )
        return looked, None
    return looked, column(owner, targets, looked)


def column(owner: str, targets: object, rows: Array) -> Array:
    """Targets, one for each row."""
    try:
        labels: Array = column_or_1d(as_given(targets), warn=True)
    except (TypeError, ValueError):
        raise InvalidParameter(
            f"{owner} takes one target a row, and y is a table of several, or none at all: y should be a 1d "
            "array. Pass one column."
        ) from None
    if len(labels) != len(rows):
        raise InvalidParameter(
            f"{owner} takes one target a row, and X and y differ in how many they have. Take both from the "
            "same table."
        )
    return labels


def refuse_other_kind(owner: str, classes: Array, targets: object) -> None:
    """Texts where classes are numbers, or numbers where they are texts: no row would count.

    The type of the targets says so, if it has one: items of a list or an array of objects are not looked at.
    """
    kind = getattr(getattr(targets, "dtype", None), "kind", "O")
    texts = kind in "US" or _is_text(getattr(targets, "dtype", None))
    numbers = kind in "iufb"
    if (texts and classes.dtype.kind in "iufb") or (numbers and classes.dtype.kind == "U"):
        raise InvalidParameter(
            f"The classes of {owner} are {'texts' if numbers else 'numbers'}, and y holds "
            f"{'numbers' if numbers else 'texts'}: no row would have a class that was declared. Declare "
            "classes of the type of y."
        )


def _refuse_texts(owner: str, rows: object) -> None:
    """Columns of a frame that hold texts by their type; an array of objects is read item by item."""
    names, kinds = getattr(rows, "columns", None), getattr(rows, "dtypes", None)
    if names is None or kinds is None:
        return
    texts = [str(name) for name, kind in zip(names, list(kinds), strict=True) if _is_text(kind)]
    if texts:
        raise InvalidParameter(
            f"{owner} takes numbers, and the column {texts[0]!r} holds texts. Leave it out, or declare its "
            "categories: Binner and NaiveBayes take them."
        )


def _is_text(kind: object) -> bool:
    """Whether a type of pandas or Polars is one of texts or categories."""
    return kind is not None and str(kind).lower().startswith(_TEXTS)


def _without_values(said: str) -> str:
    """What scikit-learn said, without what it quoted."""
    if said.startswith("Complex data"):
        return "Complex data not supported. Pass real numbers."
    if said.startswith("Expected 2D"):
        return (
            "A table is wanted, with a row a record, and X has not two dimensions. Reshape your data: "
            "X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row."
        )
    return "X is no table of rows that all have the same columns. Pass a matrix or a frame."
