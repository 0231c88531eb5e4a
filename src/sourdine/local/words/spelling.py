"""Words as numbers: letters of a declared alphabet, three to a part, and nothing else of what was typed.

Every text becomes a word, since a device that sent nothing would tell that its text was an odd one.
"""

import unicodedata
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check

ALPHABET = "abcdefghijklmnopqrstuvwxyz '-.@"
LETTERS = 32
"""How many letters there are, with that for the end of a word, which is 0."""
PART = 3
"""How many letters a part has."""
PARTS: int = LETTERS**PART
"""How many parts there are."""
Ints = NDArray[np.int64]


def check_alphabet(owner: str, alphabet: object) -> str:
    """An alphabet of 1 to 31 letters, each of which is spelled by itself."""
    if not isinstance(alphabet, str) or not 1 <= len(alphabet) < LETTERS:
        raise check.fail(owner, "alphabet", f"be a text of 1 to {LETTERS - 1} letters", alphabet)
    plain = all(_plain(letter) == letter and letter.isprintable() for letter in alphabet)
    if not plain or len(set(alphabet)) < len(alphabet):
        must = "have every letter once, small, and as Unicode composes it (NFKC)"
        raise check.fail(owner, "alphabet", must, alphabet)
    return alphabet


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).lower()


def spell(words: Iterable[str], alphabet: str, letters: int) -> Ints:
    """The parts of each word, a row of numbers below 32768; letters are small and those unknown are left out.

    A letter with a mark that the alphabet does not have counts without it.

    >>> spell(["Zoë!"], ALPHABET, 6).tolist()
    [[27109, 0]]
    """
    codes = {letter: i for i, letter in enumerate(alphabet, 1)}
    known: dict[str, list[int]] = {}
    rows = [
        known[word] if word in known else known.setdefault(word, _codes(word, codes, letters))
        for word in words
    ]
    spelled = np.array(rows, np.int64).reshape(len(rows), letters // PART, PART)
    return np.asarray(spelled @ LETTERS ** np.arange(PART - 1, -1, -1, dtype=np.int64))


def _codes(word: str, codes: dict[str, int], letters: int) -> list[int]:
    out: list[int] = []
    for letter in _plain(word):
        if letter in codes:
            out.append(codes[letter])
        else:
            out += [codes[each] for each in unicodedata.normalize("NFKD", letter) if each in codes]
        if len(out) >= letters:
            break
    return (out + [0] * letters)[:letters]


def read(parts: Iterable[int], alphabet: str) -> str:
    """The word of some parts.

    >>> read([27109, 0], ALPHABET)
    'zoe'
    """
    text = ""
    for part in parts:
        for place in range(PART - 1, -1, -1):
            code = int(part) // LETTERS**place % LETTERS
            text += alphabet[code - 1] if 0 < code <= len(alphabet) else ""
    return text


def written(alphabet: str) -> NDArray[np.bool_]:
    """Of all parts, which a word can have: letters of the alphabet, and after an end nothing but ends."""
    digits = np.arange(PARTS)[:, None] // LETTERS ** np.arange(PART - 1, -1, -1) % LETTERS
    ended = np.logical_or.accumulate(digits == 0, axis=1)
    return np.asarray((digits <= len(alphabet)).all(axis=1) & ~(ended & (digits > 0)).any(axis=1))


def ends(part: Ints) -> NDArray[np.bool_]:
    """Whether a word that has this part is over with it."""
    return np.asarray(part % LETTERS == 0)
