"""A device that reports again and again: its permanent response is derived from a secret, never stored."""

import hashlib
import hmac
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits, keystream
from sourdine.local.rappor.oracle import RapporOracle
from sourdine.local.rappor.responses import Rows, instantaneous, trimmed

LEAST_SECRET = 16
_SPAN = 1 << 64


class Life(NamedTuple):
    """The stages of one report: the filter of the value, the permanent bits, and the bits that are sent."""

    cohort: int
    filter: NDArray[np.bool_]
    permanent: NDArray[np.bool_]
    report: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Device:
    """One device's side of RAPPOR.

    The permanent response to a filter is drawn from a stream keyed by the secret, the oracle's identity, the
    purpose, the cohort and the filter: asked again it is the same, and nothing needs to be remembered.
    It is as private as the oracle says if HMAC-SHA256 and AES-256 are pseudorandom to whoever lacks the
    secret. A new secret, purpose or parameter means a new permanent response, at the full price again. The
    draw is fixed for all versions of this package, since a change would also be a new response.

    >>> from sourdine.local.rappor import Rappor
    >>> oracle = Rappor(bits=16, hashes=2, cohorts=4, f=0.5, p=0.5, q=0.75)
    >>> device = Device(oracle=oracle, secret=bytes(32))
    >>> bool((device.permanent("abc") == device.permanent("abc")).all())
    True
    """

    oracle: RapporOracle
    secret: bytes = field(repr=False)
    purpose: str = ""
    cohort: int | None = None

    def __post_init__(self) -> None:
        oracle: object = self.oracle
        if not isinstance(oracle, RapporOracle):
            raise check.fail("Device", "oracle", "be a variant of RAPPOR", oracle)
        secret: object = self.secret
        if not isinstance(secret, bytes) or len(secret) < LEAST_SECRET:
            raise InvalidParameter(
                f"The 'secret' of Device must be at least {LEAST_SECRET} bytes. Without a secret that nobody "
                "can guess there is no protection. Use Device.new, and keep its secret."
            )
        purpose: object = self.purpose
        if not isinstance(purpose, str):
            raise check.fail("Device", "purpose", "be a text", purpose)
        last = self.oracle.groups - 1
        cohort = self._derived_cohort() if self.cohort is None else self.cohort
        object.__setattr__(self, "cohort", check.integer("Device", "cohort", cohort, 0, last))

    @classmethod
    def new(cls, oracle: RapporOracle, *, purpose: str = "", bits: Bits = SYSTEM) -> Self:
        """A device with a fresh secret of 32 bytes, to be kept for as long as it reports."""
        return cls(oracle=oracle, secret=bits.words(4).tobytes(), purpose=purpose)

    def permanent(self, value: object) -> Rows:
        """The packed permanent response to a value's filter."""
        return self._flipped(self.oracle.filter(value, self._cohort))

    def report(self, value: object, bits: Bits = SYSTEM) -> Rows:
        """One packed report on a value."""
        return self._sent(self._answer(self.permanent(value), bits))

    def life(self, value: object, bits: Bits = SYSTEM) -> Life:
        """All stages of one report: a picture for teaching, since it holds the truth.

        >>> from sourdine.local.rappor import Rappor
        >>> oracle = Rappor(bits=256, hashes=4, cohorts=1, f=0.5, p=0.5, q=0.75)
        >>> int(Device(oracle=oracle, secret=bytes(32)).life("68").filter.sum())
        4
        """
        truth = self.oracle.filter(value, self._cohort)
        response = self._flipped(truth)
        stages = (truth, response, self._answer(response, bits))
        size = self.oracle.size
        return Life(self._cohort, *(np.unpackbits(row, count=size).view(np.bool_) for row in stages))

    @property
    def _cohort(self) -> int:
        return int(self.cohort or 0)

    def _sent(self, row: Rows) -> Rows:
        sent: Rows = self.oracle.with_cohorts(row[None], np.array([self._cohort]))[0]
        return sent

    def _answer(self, response: Rows, bits: Bits) -> Rows:
        return trimmed(instantaneous(response, self.oracle.coins, bits), self.oracle.size)

    def _flipped(self, truth: Rows) -> Rows:
        key = self._key(b"permanent", self._cohort.to_bytes(4, "big") + truth.tobytes())
        flips = keyed_coins(key, self.oracle.coins.flip, self.oracle.size)
        return truth ^ np.packbits(flips)

    def _derived_cohort(self) -> int:
        """Uniform: the first word of a stream below the largest multiple of the number of cohorts."""
        groups = self.oracle.groups
        key = self._key(b"cohort", b"")
        size = 1
        while True:
            word = int(_words(key, size)[-1])
            if word < _SPAN - _SPAN % groups:
                return word % groups
            size += 1

    def _key(self, what: bytes, about: bytes) -> bytes:
        """A key of its own for each thing drawn; lengths in front keep texts apart."""
        purpose = self.purpose.encode("utf-8", "surrogatepass")
        parts = (b"sourdine rappor 1", what, self.oracle.identity.encode(), purpose, about)
        message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.new(self.secret, message, hashlib.sha256).digest()


def keyed_coins(key: bytes, p: Fraction, count: int) -> NDArray[np.bool_]:
    """So many coins of a rational probability from a keyed stream, exact if the stream is uniform.

    The stream is AES-256-CTR from block 0, in words of 64 bits, most significant byte first. Coin i is
    whether the number that begins with word i is below p; where the word equals floor(2^64 p), the next
    words after the first `count` tell, in the order of the coins.
    """
    words = _words(key, count)
    scaled = p * _SPAN
    cut = int(scaled)
    out: NDArray[np.bool_] = words < np.uint64(cut) if cut < _SPAN else np.ones(count, np.bool_)
    used = count
    for i in np.flatnonzero(words == np.uint64(min(cut, _SPAN - 1))):
        rest = scaled - cut
        while rest:
            used += 1
            word, (cut_more, rest) = int(_words(key, used)[-1]), divmod(rest * _SPAN, 1)
            if word != cut_more:
                out[i] = word < cut_more
                break
    return out


def _words(key: bytes, count: int) -> NDArray[np.uint64]:
    return keystream(key, 8 * count).view(">u8").astype(np.uint64)
