"""Any text is a word, spelled in a declared alphabet, and read back as it was told."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.local.words import ALPHABET
from sourdine.local.words.spelling import PARTS, check_alphabet, ends, read, spell, written
from tests.errors import refusal_of


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("Tea", "tea"),
        ("crème brûlée", "creme brulee"),
        ("", ""),
        ("42", ""),
        ("ﬁsh", "fish"),
        ("a" * 40, "a" * 12),
        ("o'Neill-Smith", "o'neill-smit"),
    ],
)
def test_what_is_told_of_a_text(typed: str, told: str) -> None:
    assert read(spell([typed], ALPHABET, 12)[0], ALPHABET) == told


def test_an_alphabet_with_marks_keeps_them() -> None:
    assert read(spell(["Äpfel é"], "äpfel e", 12)[0], "äpfel e") == "äpfel e"


@given(st.text(max_size=30))
def test_every_text_is_a_word_of_parts_that_can_be_written(text: str) -> None:
    parts = spell([text], ALPHABET, 12)
    told = read(parts[0], ALPHABET)
    assert written(ALPHABET)[parts].all()
    assert spell([told], ALPHABET, 12).tolist() == parts.tolist()  # telling a told word tells the same


def test_parts_that_words_have() -> None:
    valid = written(ALPHABET)
    assert valid.sum() == 31**3 + 31**2 + 31 + 1
    assert written("ab").sum() == 2**3 + 2**2 + 2 + 1
    assert ends(np.flatnonzero(valid)).sum() == 31**2 + 31 + 1
    assert len(valid) == PARTS


@pytest.mark.parametrize("wrong", ["", "a" * 2, "Ab", "a\n", "x" * 32, "ﬁ", 5, None])
def test_an_alphabet_that_spells_nothing_is_refused(wrong: object) -> None:
    with refusal_of("alphabet", "WordTree"):
        check_alphabet("WordTree", wrong)
