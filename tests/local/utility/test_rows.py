import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.cleaner import Cleaner, Gap
from sourdine.local.utility.models import NO_LABEL
from sourdine.local.utility.rows import PrivateRows, Split, cleaned_rows, true_rows
from sourdine.testing import SeededBits
from tests.local.cleaner.people import COLUMNS, people


def _rows(gap: Gap, each: int = 60) -> tuple[Cleaner, PrivateRows]:
    cleaner = Cleaner(COLUMNS, each=each, gap=gap)
    return cleaner, PrivateRows.read(cleaner, people(140), 0.25, 3)


def test_the_split_is_that_of_scikit_learn() -> None:
    split = Split.draw(10, 0.25, 4)
    assert (len(split.test), len(split.train)) == (3, 7)
    assert sorted([*split.test, *split.train]) == list(range(10))
    chosen = pytest.importorskip("sklearn.model_selection")
    train, test = chosen.train_test_split(np.arange(10), test_size=0.25, random_state=4)
    assert (split.train.tolist(), split.test.tolist()) == (train.tolist(), test.tolist())


@pytest.mark.parametrize(("rows", "share"), [(1, 0.5), (0, 0.5), (10, 0.95), (10, 0), (10, 1.5)])
def test_a_split_has_rows_on_both_sides(rows: int, share: float) -> None:
    with pytest.raises(InvalidParameter):
        Split.draw(rows, share, 0)


def test_untouched_rows_are_what_is_declared_of_them() -> None:
    cleaner, private = _rows(Gap.KEEP)
    truth = true_rows(cleaner, "ill", private.cells)
    age, weight, sex, floor = truth.features.T
    assert truth.keys == (0, 0, 3, 4)
    assert truth.classes == 2
    assert age[:12].tolist() == [40, 1, 2, 3, 4, 5, 6, 7, 8, 9, 40, 11]
    assert weight[:5].tolist() == pytest.approx([115, 51, 52, 53, 115])
    assert sex[:4].tolist() == [0, 1, 1, 0]
    assert floor[:4].tolist() == [0, 1, 2, 3]  # one more for what is no key
    assert truth.labels[:8].tolist() == [NO_LABEL, 0, 0, 0, 0, 1, 0, NO_LABEL]


def test_with_next_to_no_noise_cleaned_rows_are_the_rows() -> None:
    cleaner, private = _rows(Gap.KEEP)
    truth = true_rows(cleaner, "ill", private.cells)
    for rows in cleaned_rows(cleaner, "ill", private.cells, 3, SeededBits(1)):
        assert (rows.labels == truth.labels).all()
        assert np.abs(rows.features - truth.features).max(axis=0) == pytest.approx([0, 0, 0, 0], abs=60)
        assert (rows.features[:, 2:] == truth.features[:, 2:]).all()


def test_the_rule_of_the_cleaner_decides_which_rows_teach() -> None:
    cleaner, private = _rows(Gap.DROP)
    (rows,) = cleaned_rows(cleaner, "ill", private.cells, 1, SeededBits(1))
    place = np.arange(140)
    missing = (place % 4 == 0) | (place % 7 == 0) | (place % 4 == 3)
    assert ((rows.labels == NO_LABEL) == missing).all()
    cleaner, private = _rows(Gap.DRAW)
    (rows,) = cleaned_rows(cleaner, "ill", private.cells, 1, SeededBits(1))
    assert (rows.labels != NO_LABEL).all()
    assert rows.features[:, 3].max() == 2


def test_two_tables_are_one_to_learn_from_and_one_to_test_by() -> None:
    cleaner = Cleaner(COLUMNS, each=1)
    private = PrivateRows.read(cleaner, people(30), people(20), 0)
    assert (len(private.split.train), len(private.split.test)) == (30, 20)
    assert (private.cells["age"][:20] == private.cells["age"][30:]).all()
    with pytest.raises(InvalidParameter, match="without rows"):
        PrivateRows.read(cleaner, people(30), people(0), 0)
