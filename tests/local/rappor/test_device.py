"""One device: what it answers for ever, from where, and what it sends."""

import hashlib
import hmac
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy.special import chdtrc

from sourdine.core.errors import InvalidParameter
from sourdine.local.rappor import BasicRappor, Device, OneTimeRappor, Rappor, device
from sourdine.testing import SeededBits
from tests.narrow import some
from tests.statistics import ALARM

ORACLE = Rappor(bits=16, hashes=2, cohorts=4, f=Fraction(2, 3), p=0.5, q=0.75)
SECRET = bytes(range(32))


def test_the_permanent_response_is_derived_as_documented() -> None:
    """Every byte from the definition: a device that answers otherwise would answer twice."""
    one = Device(oracle=ORACLE, secret=SECRET, purpose="home page", cohort=3)
    truth = ORACLE.filter("abc", 3)
    parts = [b"sourdine rappor 1", b"permanent", ORACLE.identity.encode(), b"home page"]
    parts.append(bytes([0, 0, 0, 3]) + truth.tobytes())
    message = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    key = hmac.new(SECRET, message, hashlib.sha256).digest()
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(8 * 16))
    flips = [int.from_bytes(stream[8 * i : 8 * i + 8], "big") < 2**64 // 3 for i in range(16)]
    assert one.permanent("abc").tolist() == (truth ^ np.packbits(flips)).tolist()


def test_the_permanent_response_stays_what_it_was() -> None:
    """Frozen: a change here would cost every device its full price again."""
    one = Device(oracle=ORACLE, secret=SECRET)
    assert ORACLE.fingerprint == "aa83995ecdcae152"
    assert one.cohort == 0
    assert one.permanent("abc").tobytes().hex() == "d2ac"


def test_it_depends_on_everything_it_should() -> None:
    base = Device(oracle=ORACLE, secret=SECRET, cohort=0)
    other = Rappor(bits=16, hashes=2, cohorts=4, f=Fraction(2, 3), p=0.5, q=0.8125)
    flips = [
        (one.permanent(value) ^ one.oracle.filter(value, one.cohort or 0)).tobytes()
        for one, value in (
            (base, "abc"),
            (base, "xyz"),
            (Device(oracle=ORACLE, secret=SECRET, cohort=1), "abc"),
            (Device(oracle=ORACLE, secret=bytes(32), cohort=0), "abc"),
            (Device(oracle=ORACLE, secret=SECRET, cohort=0, purpose="a"), "abc"),
            (Device(oracle=other, secret=SECRET, cohort=0), "abc"),
        )
    ]
    assert len(set(flips)) == len(flips)


def test_parameters_of_one_fingerprint_do_not_share_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bit that one f turns over and a smaller one does not would give itself away."""
    monkeypatch.setattr(Rappor, "fingerprint", "0" * 16)
    made = partial(Rappor, bits=256, hashes=2, cohorts=1, p=0.5, q=0.75)
    flips = [
        Device(oracle=oracle, secret=SECRET).permanent("abc") ^ oracle.filter("abc", 0)
        for oracle in (made(f=Fraction(1, 2)), made(f=Fraction(3, 4)))
    ]
    assert (flips[0] & ~flips[1]).any()  # from one stream, what the smaller f turns over the larger does too


def test_keyed_coins_have_their_probability() -> None:
    for p in (Fraction(1, 4), Fraction(1, 3), Fraction(3, 7)):
        heads = sum(int(device.keyed_coins(bytes([i]) * 32, p, 4096).sum()) for i in range(64))
        trials = 64 * 4096
        score = (heads - trials * float(p)) ** 2 / (trials * float(p) * (1 - float(p)))
        assert chdtrc(1, score) > ALARM
        wrong = float(p) * 1.1
        assert chdtrc(1, (heads - trials * wrong) ** 2 / (trials * wrong * (1 - wrong))) < ALARM


def test_a_tie_is_settled_by_further_words(monkeypatch: pytest.MonkeyPatch) -> None:
    third = Fraction(1, 3)
    cut = 2**64 // 3

    def words(key: bytes, count: int) -> np.ndarray:
        return np.array([cut, 0, cut, cut - 1, cut, cut, cut + 1][:count], np.uint64)

    monkeypatch.setattr(device, "_words", words)
    # coin 0 ties and reads the words 4, 5 and 6: two more ties, then above; coin 2 would read on from there
    assert device.keyed_coins(b"", third, 4).tolist()[:2] == [False, True]
    assert device.keyed_coins(b"", Fraction(cut, 2**64), 1).tolist() == [False]
    assert device.keyed_coins(b"", Fraction(1), 2).tolist() == [True, True]
    assert device.keyed_coins(b"", Fraction(0), 2).tolist() == [False, False]


def test_cohorts_are_uniform() -> None:
    oracle = Rappor(bits=8, hashes=1, cohorts=5, f=0.5, p=0.5, q=0.75)
    found = [some(Device(oracle=oracle, secret=i.to_bytes(16, "big")).cohort) for i in range(5000)]
    sizes = np.bincount(found, minlength=5)
    assert chdtrc(4, float(np.sum((sizes - 1000) ** 2 / 1000))) > ALARM


def test_many_devices_have_the_law_of_the_oracle() -> None:
    """Secrets in place of coins: the share of ones at set and at other bits."""
    oracle = OneTimeRappor(bits=16, hashes=2, cohorts=1, f=Fraction(2, 3))
    rows = [Device(oracle=oracle, secret=i.to_bytes(16, "big")).report("abc") for i in range(2000)]
    bits = np.unpackbits(np.array(rows), axis=1)
    truth = np.unpackbits(oracle.filter("abc", 0)) > 0
    for place in range(16):
        expected = 2000 * (2 / 3 if truth[place] else 1 / 3)
        score = (bits[:, place].sum() - expected) ** 2 / (2000 * 2 / 9)
        assert chdtrc(1, score) > ALARM


def test_reports_vary_and_the_permanent_response_does_not() -> None:
    one = Device.new(ORACLE, bits=SeededBits(1))
    rows = [one.report("abc", SeededBits(i)) for i in range(400)]
    assert all(row.shape == (ORACLE.width,) for row in rows)
    assert {int(row[0]) for row in rows} == {one.cohort}
    held = np.unpackbits(one.permanent("abc")) > 0
    shares = np.unpackbits(np.array(rows)[:, 1:], axis=1).mean(axis=0)
    assert np.all(np.abs(shares[held] - 0.75) < 0.15)
    assert np.all(np.abs(shares[~held] - 0.5) < 0.15)


def test_a_life_has_all_its_stages() -> None:
    """The picture of the paper: the value 68, 256 bits, 4 hashes."""
    oracle = Rappor(bits=256, hashes=4, cohorts=1, f=0.5, p=0.5, q=0.75)
    one = Device(oracle=oracle, secret=SECRET)
    life = one.life("68", SeededBits(3))
    assert [len(stage) for stage in life[1:]] == [256] * 3
    assert life.filter.sum() == 4
    assert np.packbits(life.permanent).tolist() == one.permanent("68").tolist()
    assert np.packbits(life.report).tolist() == one.report("68", SeededBits(3)).tolist()
    assert 40 <= int((life.permanent != life.filter).sum()) <= 90


def test_categories_have_devices_too() -> None:
    oracle = BasicRappor(categories=10, f=0.5, p=0.5, q=0.75)
    one = Device(oracle=oracle, secret=SECRET)
    assert one.cohort == 0
    assert one.life(7).filter.nonzero()[0].tolist() == [7]
    assert one.report(7).shape == (oracle.width,)
    oracle.unpack(np.array([one.report(value) for value in range(10)]))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"secret": b"short"}, "'secret'"),
        ({"secret": "x" * 32}, "'secret'"),
        ({"cohort": 4}, "'cohort'"),
        ({"cohort": -1}, "'cohort'"),
        ({"purpose": 3}, "'purpose'"),
        ({"oracle": None}, "'oracle'"),
    ],
)
def test_bad_parameters_are_refused(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said) as caught:
        Device(**({"oracle": ORACLE, "secret": SECRET} | wrong))  # type: ignore[arg-type]
    assert "x" * 32 not in str(caught.value)
    assert "secret=" not in repr(Device(oracle=ORACLE, secret=SECRET))
