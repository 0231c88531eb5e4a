"""Memos: the same answer the same report, the right law over devices, and nothing of the secret."""

import hashlib
import hmac
import json
import math
import secrets
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from sourdine.core.errors import InvalidParameter
from sourdine.local import (
    GRR,
    OLH,
    Duchi,
    FrequencyOracle,
    HadamardResponse,
    Memo,
    ProjectiveGeometry,
    Question,
    SubsetSelection,
)
from sourdine.local.memoization import KeyedBits, rehearsed
from sourdine.local.rappor import Rappor
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.laws import LAWS
from tests.statistics import ALARM, fit

SECRET = bytes(range(32))
ORACLE = ProjectiveGeometry(epsilon=1, categories=20, order=4)
KINDS = (GRR, OLH, ProjectiveGeometry, HadamardResponse)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_has_one_report(kind: type[FrequencyOracle]) -> None:
    oracle = kind(epsilon=1, categories=50)  # type: ignore[call-arg]
    memo, again, other = Memo(oracle, SECRET), Memo(oracle, SECRET), Memo(oracle, SECRET[::-1])
    reports = [memo.report(value) for value in range(50)]
    assert reports == [again.report(value) for value in range(50)]
    assert reports != [other.report(value) for value in range(50)]
    assert oracle.tally(np.concatenate(reports)).reports == 50
    assert np.array_equal(memo.row(3), oracle.pack(memo.report(3)))


@pytest.mark.parametrize("value", [0, 13])
def test_reports_of_many_devices_follow_the_law(value: int) -> None:
    keys = [hashlib.sha256(f"{value} {i}".encode()).digest() for i in range(1500)]
    reports = np.concatenate([Memo(ORACLE, key).report(value) for key in keys])
    assert fit(reports, LAWS[ProjectiveGeometry](ORACLE, value)) > ALARM
    assert fit(reports, LAWS[ProjectiveGeometry](ORACLE, value + 1)) < ALARM


def test_reports_of_two_answers_of_one_device_are_independent() -> None:
    oracle = GRR(epsilon=1, categories=2)
    memos = [Memo(oracle, hashlib.sha256(str(i).encode()).digest()) for i in range(1500)]
    pairs = np.array([int(memo.report(0)[0]) + 2 * int(memo.report(1)[0]) for memo in memos])
    lie = 1 / (1 + math.e)
    law = {a + 2 * b: (lie if a else 1 - lie) * (1 - lie if b else lie) for a in (0, 1) for b in (0, 1)}
    assert fit(pairs, law) > ALARM


def test_the_noise_is_a_keyed_stream_of_the_question_and_the_answer() -> None:
    """Built again from its parts, as a device in another language would."""
    question = Question(name="coffee", oracle=ORACLE)
    first = replace(question, format=1)
    assert first.identity.startswith(first.fingerprint)
    assert len(question.identity) == 64
    body = b"sourdine memo 1\0" + question.identity.encode() + b"<i8" + (7).to_bytes(8, "little")
    key = hmac.new(SECRET, body, hashlib.sha256).digest()
    stream = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(4096))
    bits = KeyedBits(key)
    words = np.concatenate([bits.words(count) for count in (2, 6, 1, 3)])
    assert np.array_equal(words, np.frombuffer(stream, np.uint64)[:12])
    assert np.array_equal(Memo(question, SECRET).report(7), ORACLE.sample([7], KeyedBits(key)))


def test_reports_never_change_from_one_version_to_the_next() -> None:
    """A second report of the same answer would be paid for twice."""
    found = [Memo(ORACLE, SECRET).report(value).tolist() for value in range(8)]
    assert found == [[16], [3], [20], [8], [18], [2], [6], [19]]


def test_reports_do_not_change_with_the_format_of_a_question() -> None:
    """Else a question that is built anew by a later version would draw a second report on one answer."""
    question = Question(name="coffee", oracle=ORACLE)
    first = replace(question, format=1)
    assert question.fingerprint != first.fingerprint
    assert question.identity == first.identity
    assert [Memo(question, SECRET).report(value) for value in range(8)] == [
        Memo(first, SECRET).report(value) for value in range(8)
    ]


def test_questions_do_not_share_reports() -> None:
    oracle = GRR(epsilon=1, categories=1000)
    one, two = (Memo(Question(name=name, oracle=oracle), SECRET) for name in ("coffee", "tea"))
    assert [one.report(x) for x in range(20)] != [two.report(x) for x in range(20)]


def test_questions_of_one_fingerprint_do_not_share_their_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two specifications of 16 digits in common are found in 2^32 tries, and one coin would betray both."""
    monkeypatch.setattr(Question, "fingerprint", "0" * 16)
    test_questions_do_not_share_reports()
    monkeypatch.setattr(GRR, "fingerprint", "0" * 16)
    one, two = (Memo(GRR(epsilon=epsilon, categories=1000), SECRET) for epsilon in (1, 2))
    assert [one.report(x) for x in range(20)] != [two.report(x) for x in range(20)]


def test_answers_are_known_after_they_are_clamped() -> None:
    memo = Memo(ORACLE, SECRET)
    last = memo.report(19)
    for value in (20, 10**30, np.int32(50), np.array([2**62]), [19]):
        assert memo.report(value) == last
    assert memo.report(-5) == memo.report(0) == memo.report(False)


def test_the_total_grows_with_the_distinct_answers_and_no_further_than_all_of_them() -> None:
    memo = Memo(GRR(epsilon=Fraction(1, 2), categories=4), SECRET)
    assert [memo.total_epsilon(distinct=count) for count in (1, 2, 4, 9)] == [
        Fraction(1, 2),
        1,
        2,
        2,
    ]
    with refusal_of("distinct", "Memo.total_epsilon"):
        memo.total_epsilon(distinct=0)


@pytest.mark.parametrize("secret", [b"", b"short", "x" * 32, None, bytearray(32)])
def test_a_secret_that_can_be_guessed_is_refused_and_never_shown(secret: object) -> None:
    with pytest.raises(InvalidParameter, match="at least 16 bytes") as caught:
        Memo(ORACLE, secret)  # type: ignore[arg-type]
    assert "short" not in str(caught.value)
    assert "xxx" not in str(caught.value)


def test_a_memo_does_not_show_its_secret() -> None:
    secret = secrets.token_bytes(32)
    assert str(secret)[2:-1] not in repr(Memo(ORACLE, secret))
    assert "ProjectiveGeometry" in repr(Memo(ORACLE, secret))


def test_what_is_no_oracle_or_no_single_answer_is_refused() -> None:
    with refusal_of("question", "Memo"):
        Memo("coffee", SECRET)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="one answer at a time"):
        Memo(ORACLE, SECRET).report([1, 2])
    with refusal_of("question", "Memo"):
        Memo(Rappor(bits=16, hashes=2, cohorts=1, f=0.5, p=0.5, q=0.75), SECRET)


@pytest.mark.parametrize("value", ["private words", b"private words", 1j])
def test_what_is_no_number_is_refused_and_never_quoted(value: object) -> None:
    with pytest.raises(InvalidParameter, match="reports a number") as caught:
        Memo(Duchi(epsilon=1, lower=0, upper=1), SECRET).report(value)  # type: ignore[arg-type]
    assert "private" not in str(caught.value)


def test_a_missing_number_is_reported_like_nan() -> None:
    memo = Memo(Duchi(epsilon=1, lower=0, upper=1), SECRET)
    assert (memo.report(None) == memo.report(float("nan"))).all()  # type: ignore[arg-type]


def test_a_rehearsal_gives_each_device_one_report_an_answer() -> None:
    answers = np.array([[3, 3, 5, 3]] * 20_000)
    reports = rehearsed(ORACLE, answers, SeededBits(1))
    assert reports.shape == answers.shape
    assert (reports[:, 0] == reports[:, 1]).all()
    assert (reports[:, 0] == reports[:, 3]).all()
    law = LAWS[ProjectiveGeometry]
    assert fit(reports[:, 0], law(ORACLE, 3)) > ALARM
    assert fit(reports[:, 2], law(ORACLE, 5)) > ALARM
    joint = {a + 21 * b: p * q for a, p in law(ORACLE, 3).items() for b, q in law(ORACLE, 5).items()}
    assert fit(reports[:, 0] + 21 * reports[:, 2], joint) > ALARM


def test_a_memo_works_from_a_specification_in_a_file() -> None:
    question = Question(name="coffee", oracle=ORACLE)
    read = Question.from_json(json.loads(json.dumps(question.to_json())))
    assert Memo(read, SECRET).report(4) == Memo(question, SECRET).report(4)


def test_numbers_have_one_report_each() -> None:
    memo = Memo(Duchi(epsilon=1, lower=-1, upper=1), SECRET)
    for value in (0.3, -0.0, math.nan, math.inf, -5, 10**400):
        assert memo.report(value) == memo.report(value)
    assert memo.report(0) == memo.report(-0.0) == memo.report(np.float32(0))
    assert memo.report(math.nan) == memo.report(-math.nan)
    wide = Memo(Duchi(epsilon=Fraction(1, 100), lower=0, upper=10), SECRET)
    beyond = [int(wide.report(value)[0]) for value in (10, *np.linspace(11, 500, 50), math.inf, 10**400)]
    assert len(set(beyond)) == 1  # whoever trembles beyond a bound is not reported anew
    assert len({int(memo.report(value)[0]) for value in np.linspace(-1, 1, 50)}) == 2
    assert memo.total_epsilon(distinct=3) == 3


def test_rows_of_bits_have_one_report_each() -> None:
    memo = Memo(SubsetSelection(epsilon=1, categories=50), SECRET)
    assert np.array_equal(memo.report(7), memo.report(7))
    assert not np.array_equal(memo.report(7), memo.report(8))
    reports = rehearsed(memo.oracle, [[7, 7, 8]], SeededBits(1))  # type: ignore[arg-type]
    assert reports.shape == (1, 3, 7)
    assert np.array_equal(reports[0, 0], reports[0, 1])
