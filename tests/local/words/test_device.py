"""A device's level hangs on its secret alone, and the same word has the same report."""

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local import GRR, Question
from sourdine.local.words import WordMemo, WordTree

QUESTION = Question(name="snack", oracle=WordTree(epsilon=1))


def secret(number: int) -> bytes:
    return number.to_bytes(32, "big")


def test_one_level_for_all_words_of_a_device() -> None:
    memo = WordMemo(QUESTION, secret(7))
    rows = np.concatenate([memo.row(word) for word in ("apple", "bread", "cheese", "Apple!")])
    levels, _, _ = memo.oracle.split(rows)
    assert set(levels.tolist()) == {memo.level}
    assert rows[0].tolist() == rows[3].tolist()
    assert rows[0].tolist() != rows[1].tolist()


def test_levels_of_many_devices_are_even() -> None:
    levels = np.bincount([WordMemo(QUESTION, secret(i)).level for i in range(4000)], minlength=4)
    assert ((levels - 1000) ** 2 / 1000).sum() < 30.7  # chi-square of 3 degrees at 1e-6


def test_another_question_is_another_level_and_another_report() -> None:
    other = Question(name="drink", oracle=WordTree(epsilon=1))
    apart = [WordMemo(QUESTION, secret(i)).level != WordMemo(other, secret(i)).level for i in range(64)]
    assert any(apart)
    assert WordMemo(QUESTION, secret(1)).row("tea").tolist() != WordMemo(other, secret(1)).row("tea").tolist()


def test_what_it_refuses() -> None:
    with pytest.raises(InvalidParameter, match="16 bytes"):
        WordMemo(QUESTION, b"short")
    with pytest.raises(InvalidParameter, match="WordTree"):
        WordMemo(Question(name="q", oracle=GRR(epsilon=1, categories=2)), secret(1))
    assert "secret=..." in repr(WordMemo(QUESTION, secret(1)))
