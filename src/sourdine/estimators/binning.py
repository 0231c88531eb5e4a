"""Columns in bins, one number a bin: declared, so that it costs nothing."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.estimators.rows import Floats, one_pair, real_rows
from sourdine.estimators.shapes import matrix

_MOST_BINS = 1 << 12


@dataclass(frozen=True)
class BinRule:
    """One column: its bins between bounds, at declared edges, or one for each of its categories."""

    edges: tuple[float, ...] = ()
    categories: tuple[object, ...] = ()

    @property
    def bins(self) -> int:
        """How many there are."""
        return len(self.categories) or len(self.edges) - 1

    def places(self, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """The bin of each value, values outside the bounds in the first or last; -1 for what is in none."""
        if self.categories:
            lookup = {each: place for place, each in enumerate(self.categories)}
            return np.array([_found(lookup, item) for item in values.tolist()], np.int64)
        plain = values.astype(np.object_) if values.dtype.kind in "US" else values
        numbers = real_rows(plain[:, None], 1)[:, 0]
        inner = np.searchsorted(np.array(self.edges[1:-1]), numbers, side="right")
        return np.where(np.isnan(numbers), -1, inner)

    def names(self, column: str) -> list[str]:
        """A name for each bin."""
        if self.categories:
            return [f"{column}={each}" for each in self.categories]
        starts = [f"{edge:g}" for edge in self.edges]
        return [f"{column}={start}..{end}" for start, end in itertools.pairwise(starts)]


def _found(lookup: dict[object, int], item: object) -> int:
    try:
        return lookup.get(item, -1)
    except TypeError:  # a list or such is no category
        return -1


def bin_rules(owner: str, bounds: object, bins: object, width: int) -> tuple[BinRule, ...]:
    """The rules of a declaration, one a column.

    A column is declared by a pair of bounds, cut into so many equal bins; by three numbers or more, which are
    the edges of its bins; or by a list of texts, its categories.

    >>> [rule.bins for rule in bin_rules("Example", [(0, 10), (0, 1, 5, 100), ["no", "yes"]], 5, 3)]
    [5, 3, 2]
    """
    if bounds is None:
        raise InvalidParameter(
            f"{owner} has no bounds. They are never read from the data, which would tell of them. Declare "
            "what each column can hold, as in bounds=[(0, 100), ['no', 'yes']]."
        )
    if not isinstance(bounds, Sequence | np.ndarray) or isinstance(bounds, str):
        raise check.fail(owner, "bounds", "be a pair of numbers, or a declaration for each column", bounds)
    listed = list(bounds)
    if len(listed) == 2 and not any(isinstance(each, Sequence | np.ndarray) for each in listed):
        listed = [tuple(listed)] * width
    if len(listed) != width:
        raise InvalidParameter(
            f"{len(listed):,} columns are declared, and there are {width:,}. Declare each column, in their "
            "order, or one pair of bounds for all."
        )
    counts = list(bins) if isinstance(bins, Sequence | np.ndarray) else [bins] * width
    if len(counts) != width:
        raise check.fail(owner, "bins", "be a number, or one for each column", bins)
    return tuple(_rule(owner, each, count) for each, count in zip(listed, counts, strict=True))


def _rule(owner: str, column: object, count: object) -> BinRule:
    listed = list(column) if isinstance(column, Sequence | np.ndarray) and not isinstance(column, str) else []
    if len(listed) < 2:
        raise check.fail(owner, "bounds", "be pairs, edges or categories", column)
    if any(isinstance(each, str) for each in listed):
        if len(set(listed)) < len(listed) or len(listed) > _MOST_BINS:
            raise check.fail(owner, "bounds", "name each category once, at most 4,096 of them", column)
        return BinRule(categories=tuple(listed))
    if len(listed) == 2:
        lower, upper = one_pair(owner, listed)
        many = check.integer(owner, "bins", count, 1, _MOST_BINS)
        return BinRule(edges=tuple(np.linspace(lower, upper, many + 1).tolist()))
    edges = tuple(float(check.rational(owner, "bounds", each)) for each in listed)
    if any(first >= second for first, second in itertools.pairwise(edges)):
        raise check.fail(owner, "bounds", "rise", column)
    return BinRule(edges=edges)


class Binner(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns as bins: for each column one number a bin, all 0 but that of the value's bin.

    Everything is declared, so it costs nothing and `fit` reads no value. The number is 1 / sqrt(columns), so
    that a row has length 1: give what follows `norm=1`. What lies outside the bounds counts in the first or
    last bin; what is no number, or no category, has no bin, so that its column is all 0.

    >>> Binner(bounds=[(0, 10), ["no", "yes"]], bins=2).fit_transform([[1, "yes"], [9, "no"]]).round(1)
    array([[0.7, 0. , 0. , 0.7],
           [0. , 0.7, 0.7, 0. ]])
    """

    def __init__(
        self,
        bounds: tuple[float, float] | Sequence[Sequence[object]] | None = None,
        bins: int | Sequence[int] = 10,
    ) -> None:
        self.bounds = bounds
        self.bins = bins

    def fit(self, X: object, y: object = None) -> Self:
        """Check the declaration against the number of columns; values are not read."""
        looked = matrix(self, X, reset=True)
        self.rules_ = bin_rules("Binner", self.bounds, self.bins, looked.shape[1])
        return self

    def transform(self, X: object) -> Floats:
        """The bins of every row; each row is read by itself."""
        check_is_fitted(self)
        looked = matrix(self, X, reset=False)
        width = sum(rule.bins for rule in self.rules_)
        out, start = np.zeros((len(looked), width)), 0
        for rule, values in zip(self.rules_, looked.T, strict=True):
            places = rule.places(values)
            (known,) = np.nonzero(places >= 0)
            out[known, start + places[known]] = 1 / np.sqrt(len(self.rules_))
            start += rule.bins
        return out

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> NDArray[np.object_]:
        """A name for each number of a row."""
        check_is_fitted(self)
        known = getattr(self, "feature_names_in_", None)
        given = input_features if known is None else known
        columns = [f"x{place}" for place in range(len(self.rules_))] if given is None else list(given)
        names = [
            name for rule, column in zip(self.rules_, columns, strict=True) for name in rule.names(column)
        ]
        return np.array(names, dtype=np.object_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.requires_fit = True
        return tags
