"""The rows of a table as learners take them: as they are, and as they were cleaned, several times over."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.quality import ABSENT
from sourdine.frames.source import AS_IT_IS
from sourdine.local.cleaner.cells import Cleaned, CleanedCells, Gap
from sourdine.local.cleaner.cleaner import Cleaner
from sourdine.local.utility.models import NO_LABEL, Floats, Places, Rows

MOST_SEED = (1 << 32) - 1
_AT_ONCE = 1 << 21  # rows that are cleaned together


@dataclass(frozen=True, eq=False)
class Split:
    """The rows to learn from, and those to test by."""

    train: Places
    test: Places

    @classmethod
    def draw(cls, rows: int, share: float, seed: int) -> "Split":
        """A share of the rows, rounded up, to test by, in an order of a seed: that of scikit-learn.

        It is the very split that `train_test_split(test_size=share, random_state=seed)` makes, so that
        published figures can be compared. The rows are nobody's secret here, and the split protects nobody.

        >>> Split.draw(10, 0.2, 0).test.tolist()
        [2, 8]
        """
        part = float(check.inside("a split", "share", share, 0, 1))
        many = math.ceil(part * rows)  # in floats, as there: the tenth of ten rows is one
        if not 0 < many < rows:
            raise InvalidParameter(
                "The table has too few rows to learn from some and test by others. Give more rows, or "
                "another share."
            )
        seed = check.integer("a split", "seed", seed, 0, MOST_SEED)
        order: Places = np.random.RandomState(seed).permutation(rows)
        return cls(order[many:], order[:many])


@dataclass(frozen=True, eq=False)
class PrivateRows:
    """The cells of a table as places on grids and among keys, and which rows are for what."""

    cells: Mapping[str, Places]
    split: Split

    @classmethod
    def read(
        cls,
        cleaner: Cleaner,
        table: object,
        test: float | object,
        seed: int,
        text: TextFormat | Mapping[str, object] = AS_IT_IS,
    ) -> "PrivateRows":
        """Of one table, of which a share is to test by; or of two."""
        first = cleaner.read(cleaner.open(table, text))
        size = _size(first)
        if isinstance(test, int | float):
            return cls(first, Split.draw(size, test, seed))
        second = cleaner.read(cleaner.open(test, text))
        if not size or not _size(second):
            raise InvalidParameter("A table without rows teaches and tests nothing. Give one that has some.")
        both = {name: np.concatenate([each, second[name]]) for name, each in first.items()}
        return cls(both, Split(np.arange(size), np.arange(size, size + _size(second))))


def true_rows(cleaner: Cleaner, label: str, private: Mapping[str, Places]) -> Rows:
    """Untouched rows, read as declared: within bounds, on grids, with declared values for missing ones.

    A number that is missing and for which nothing stands is the middle of its range, and a key is one more.
    """
    features, labels = [], private[label]
    for cells in cleaner.cells:
        places = private[cells.name]
        if cells.name != label:
            absent = places == ABSENT
            values = cells.at(np.where(absent, _middle(cells), places)) if cells.labels is None else places
            features.append(_column(cells, np.ma.MaskedArray(values, mask=absent)))
    return _rows(cleaner, label, features, np.where(labels == ABSENT, NO_LABEL, labels))


def cleaned_rows(
    cleaner: Cleaner, label: str, private: Mapping[str, Places], repeats: int, bits: Bits
) -> Iterator[Rows]:
    """The rows as they are after each of several cleanings.

    Where a rule drops a record, its row has no label. A cell that stays missing is the middle of its range,
    or one more key.
    """
    size = _size(private)
    while repeats:
        many = min(repeats, max(1, _AT_ONCE // max(1, size)))
        columns = {
            cells.name: cells.sample(np.tile(private[cells.name], many), bits) for cells in cleaner.cells
        }
        whole = _decided(cleaner, label, columns, bits)
        for start in range(0, many * size, size):
            part = slice(start, start + size)
            yield Rows(whole.features[part], whole.labels[part], whole.keys, whole.classes)
        repeats -= many


def _decided(cleaner: Cleaner, label: str, columns: Mapping[str, Cleaned], bits: Bits) -> Rows:
    features = []
    out = np.zeros(_size(columns), np.bool_)
    labels = np.zeros(_size(columns), np.int64)
    for cells in cleaner.cells:
        column = columns[cells.name]
        if cells.keeps_missing and cells.gap is Gap.DRAW:
            column = cells.drawn(column, bits)
        elif cells.gap is Gap.DROP or cells.name == label:
            out |= np.ma.getmaskarray(column)
        if cells.name == label:
            labels = column.filled(0).astype(np.int64)
        else:
            features.append(_column(cells, column))
    return _rows(cleaner, label, features, np.where(out, NO_LABEL, labels))


def _column(cells: CleanedCells, column: Cleaned) -> Floats:
    """One feature, with something wherever a cell is missing."""
    instead = cells.places if cells.labels is not None else cells.at(np.array([_middle(cells)]))[0]
    return np.where(np.ma.getmaskarray(column), instead, np.ma.getdata(column)).astype(np.float64)


def _middle(cells: CleanedCells) -> int:
    return (cells.places - 1) // 2


def _rows(cleaner: Cleaner, label: str, features: Sequence[Floats], labels: Places) -> Rows:
    keys = tuple(
        0 if cells.labels is None else cells.places + 1 for cells in cleaner.cells if cells.name != label
    )
    (classes,) = (cells.places for cells in cleaner.cells if cells.name == label)
    return Rows(np.column_stack(features), labels, keys, classes)


def _size(columns: Mapping[str, Places] | Mapping[str, Cleaned]) -> int:
    return len(next(iter(columns.values())))
