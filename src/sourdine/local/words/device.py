"""A device that reports on words: the level depends on its secret alone, and the noise on the word too."""

import hmac

import numpy as np

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.local.memoization import LEAST_SECRET, KeyedBits
from sourdine.local.oracle import Bytes
from sourdine.local.question import Question
from sourdine.local.words.tree import WordTree

_LEVEL, _NOISE = b"sourdine words level 1\0", b"sourdine words 1\0"


class WordMemo:
    """One device's reports to a question of words: the same word is always given the same report.

    All its reports are about prefixes of one length, and reveal at most epsilon for each different word,
    given when the word was the same as which one before: reports that differ tell that it changed.

    >>> question = Question(name="snack", oracle=WordTree(epsilon=1))
    >>> memo = WordMemo(question, bytes(range(32)))
    >>> bool((memo.row("apple") == memo.row("Apple")).all()), memo.level
    (True, 2)
    """

    def __init__(self, question: Question, secret: bytes) -> None:
        if not isinstance(question.oracle, WordTree):
            raise check.fail("WordMemo", "question", "be a Question by WordTree", question)
        key: object = secret
        if not isinstance(key, bytes) or len(key) < LEAST_SECRET:
            raise InvalidParameter(
                f"The 'secret' of WordMemo must be at least {LEAST_SECRET} bytes that nobody can guess. Make "
                "it once with secrets.token_bytes(32), and keep it on the device."
            )
        self.oracle, self.fingerprint = question.oracle, question.fingerprint
        self._identity, self._secret = question.identity.encode(), key

    def __repr__(self) -> str:
        return f"WordMemo({self.oracle!r}, secret=...)"

    @property
    def level(self) -> int:
        """The level of this device, from 0 on: a power of 2 of them, so the first byte has no bias."""
        return hmac.digest(self._secret, _LEVEL + self._identity, "sha256")[0] % self.oracle.depth

    def row(self, word: str) -> Bytes:
        """The report of a word, a row of bytes."""
        parts = self.oracle.parts([word])
        body = _NOISE + self._identity + parts.astype(">u2").tobytes()
        key = hmac.digest(self._secret, body, "sha256")
        return self.oracle.encode(parts, np.array([self.level]), KeyedBits(key))
