"""Reports that are always the same for the same answer, from a secret that never leaves the device.

Whoever is asked again and again with fresh noise gives the truth away in the end. A memo draws the noise of
an answer from a keyed function of the answer, so that nothing has to be stored and no average ever helps.
"""

import hmac
from fractions import Fraction
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check, grid
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.local.numeric.oracle import NumericOracle
from sourdine.local.oracle import Bytes, FrequencyOracle, Oracle
from sourdine.local.question import Question

LEAST_SECRET = 16
_LABEL = b"sourdine memo 1\0"


class KeyedBits:
    """Words that nobody can tell from random ones without the key: AES-256 in counter mode.

    >>> bool(KeyedBits(bytes(32)).words(1) == KeyedBits(bytes(32)).words(1))
    True
    """

    secure = True

    def __init__(self, key: bytes) -> None:
        self._stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()

    def words(self, count: int, /) -> NDArray[np.uint64]:
        return np.frombuffer(self._stream.update(bytes(8 * count)), np.uint64)


class Memo:
    """One device's reports to one question: the same answer is always given the same report.

    Whoever sees all its reports ever learns at most epsilon times the number of distinct answers that were
    reported, but also which reports differ, and so that the answer changed (docs/guarantees/memo.md). Give it
    a `Question`: under a bare oracle two questions share their reports, and need a secret each.

    >>> import secrets
    >>> from sourdine.local import GRR
    >>> memo = Memo(GRR(epsilon=1, categories=10), secrets.token_bytes(32))
    >>> bool(memo.report(3) == memo.report(3))
    True
    >>> memo.total_epsilon(distinct=2)
    Fraction(2, 1)
    """

    def __init__(self, question: Oracle | Question, secret: bytes) -> None:
        oracle: object = question.oracle if isinstance(question, Question) else question
        if not isinstance(oracle, FrequencyOracle | NumericOracle):
            must, words = "be a Question or an oracle of categories or numbers", "Words have rappor.Device."
            raise check.fail("Memo", "question", must, question, words)
        key: object = secret
        if not isinstance(key, bytes) or len(key) < LEAST_SECRET:
            raise InvalidParameter(
                f"The 'secret' of Memo must be at least {LEAST_SECRET} bytes that nobody can guess. Make it "
                "once with secrets.token_bytes(32), and keep it on the device."
            )
        self.oracle, self.fingerprint = oracle, question.fingerprint
        self._identity, self._secret = question.identity.encode(), key

    def __repr__(self) -> str:
        return f"Memo({self.oracle!r}, secret=...)"

    def report(self, value: ArrayLike) -> NDArray[Any]:
        """The report of one answer, an array of one, as `sample` makes it."""
        known = self._known(value)
        array = known.astype(known.dtype.newbyteorder("<"))  # the same bytes on every machine
        body = _LABEL + self._identity + array.dtype.str.encode() + array.tobytes()
        key = hmac.digest(self._secret, body, "sha256")
        return self.oracle.sample(known, KeyedBits(key))

    def row(self, value: ArrayLike) -> Bytes:
        """The same report packed, a row of bytes."""
        return self.oracle.pack(self.report(value))

    def total_epsilon(self, *, distinct: int) -> Fraction:
        """What all reports ever reveal of an answer that took so many distinct values: epsilon times that."""
        count = check.integer("Memo.total_epsilon", "distinct", distinct, 1, 1 << 62)
        if isinstance(self.oracle, FrequencyOracle):
            count = min(count, self.oracle.categories)
        return Fraction(self.oracle.loss(self.oracle.spend.distance).epsilon) * count

    def _known(self, value: ArrayLike) -> NDArray[Any]:
        """The answer in the one form that is both hashed and sampled: equal exactly if the hash is equal."""
        if np.size(value) != 1:
            raise InvalidParameter("A Memo reports one answer at a time. Pass a single number.")
        if isinstance(self.oracle, FrequencyOracle):
            return _category(self.oracle, value).reshape(1)
        array = grid.reals(value)
        if array.dtype.kind not in "biuf":
            raise InvalidParameter("A Memo of an oracle for numbers reports a number. Pass a single one.")
        with np.errstate(over="ignore"):
            number = array.astype(np.float64).reshape(1)
        lower, upper = float(self.oracle.lower), float(self.oracle.upper)
        # clamped as the oracle would: what trembles beyond a bound must not be reported anew each time
        known: NDArray[np.float64] = np.clip(np.where(np.isnan(number), 0.0, number), lower, upper) + 0.0
        return known  # + 0.0 leaves no negative zero


def rehearsed(oracle: FrequencyOracle, answers: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
    """What many devices with memos would report, a row of answers each: a rehearsal without any secret.

    It draws one report for each device and distinct answer, so the law is that of memos with secrets of
    their own.

    >>> from sourdine.local import GRR
    >>> first, again = rehearsed(GRR(epsilon=1, categories=10), [[3, 3]])[0]
    >>> bool(first == again)
    True
    """
    known = _category(oracle, answers)
    devices = np.arange(len(known)).reshape(-1, *[1] * (known.ndim - 1))
    pairs, places = np.unique(devices * oracle.categories + known, return_inverse=True)
    reports: NDArray[Any] = oracle.sample(pairs % oracle.categories, bits)[places.reshape(-1)]
    return reports.reshape(*known.shape, *reports.shape[1:])


def _category(oracle: FrequencyOracle, values: ArrayLike) -> NDArray[np.int64]:
    return np.clip(grid.to_units("Memo", values, None), 0, oracle.categories - 1)
