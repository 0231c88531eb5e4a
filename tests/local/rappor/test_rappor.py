"""The oracles: reports in and out, counts, estimates, and what is refused."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sourdine.audit import bound_epsilon
from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Example
from sourdine.local import Question, lines
from sourdine.local.rappor import BasicOneTimeRappor, BasicRappor, OneTimeRappor, Rappor
from sourdine.local.rappor.oracle import RapporOracle
from sourdine.testing import SeededBits
from tests.errors import refusal_of
from tests.rappor_laws import basic, bloom

KINDS = (Rappor, OneTimeRappor, BasicRappor, BasicOneTimeRappor)
ORACLE = Rappor(bits=12, hashes=2, cohorts=3, f=Fraction(1, 4), p=Fraction(1, 3), q=Fraction(3, 4))


@pytest.mark.parametrize("kind", KINDS)
def test_the_audit_passes_and_comes_close(kind: type[RapporOracle]) -> None:
    """Both responses: the permanent alone (one-time), and a whole report."""
    for example in kind.examples():
        found = bound_epsilon(example, samples=200_000, bits=SeededBits(5))
        assert not found.exceeded
        assert found.audited > 0.6 * found.claimed


def test_the_audit_catches_a_client_that_never_turns_true_bits_over() -> None:
    """A known fault of a peer: ones are always kept, so that a zero betrays its value."""

    class Faulty(OneTimeRappor):
        def respond(self, filters: np.ndarray, bits: object) -> np.ndarray:
            return super().respond(filters, bits) | filters  # type: ignore[arg-type]

    honest = next(OneTimeRappor.examples())
    faulty = Example(
        mechanism=Faulty(bits=8, hashes=2, cohorts=2, f=Fraction(1, 2)),
        value=honest.value,
        neighbour=honest.neighbour,
        distance=Distance.hamming(),
        code=honest.code,
    )
    assert bound_epsilon(faulty, samples=200_000, bits=SeededBits(5)).exceeded


def test_cohorts_are_told_and_bits_follow_them() -> None:
    """Nearly no noise: every report shows the filter of its own cohort."""
    clear = OneTimeRappor(bits=12, hashes=2, cohorts=300, f=Fraction(1, 1 << 20))
    cohorts, packed = clear.split(clear.sample(np.array(["abc"] * 500), SeededBits(1)))
    assert clear.head == 2
    assert 0 <= cohorts.min() < 30
    assert 270 <= cohorts.max() < 300
    bits = np.unpackbits(packed, axis=1, count=12)
    for cohort, row in zip(cohorts.tolist(), bits, strict=True):
        assert set(np.flatnonzero(row).tolist()) == bloom("abc", cohort, 12, 2)


def test_shapes_are_kept_and_words_may_be_text_bytes_or_anything() -> None:
    assert ORACLE.sample([["a", "b"], ["c", "d"]]).shape == (2, 2, ORACLE.width)
    assert ORACLE.sample(np.array([b"a"])).shape == (1, ORACLE.width)
    assert ORACLE.sample(np.array([None, 3, "x"], dtype=object)).shape == (3, ORACLE.width)
    assert ORACLE.sample(np.array([], dtype=str)).shape == (0, ORACLE.width)
    with pytest.raises(InvalidParameter, match="words"):
        ORACLE.sample([1.5, 2.5])
    for oracle in (BasicRappor(categories=9, f=0, p=0.25, q=0.5), BasicOneTimeRappor(categories=9, f=0.5)):
        assert oracle.sample([[-5, 0], [8, 1 << 40]]).shape == (2, 2, 2)


def test_categories_of_any_size_are_clipped_and_none_are_no_mistake() -> None:
    """numpy makes floats of integers of which one needs 64 bits and one a sign; an error would tell."""
    oracle = BasicRappor(categories=3, f=Fraction(1, 2), p=Fraction(1, 4), q=Fraction(3, 4))
    plain = oracle.sample([2, 0], SeededBits(1))
    for wild in ([2**63, -1], [2**64 - 1, -5], [10**30, -(10**30)]):
        assert np.array_equal(oracle.sample(wild, SeededBits(1)), plain)
    assert oracle.sample([]).shape == (0, 1)


def test_encoding_by_codes_is_sampling_of_words() -> None:
    words = ["a", "b", "c"]
    codes = np.array([0, 1, 2, 0, 1, 2, 2, 2])
    by_code = ORACLE.encode(words, codes, bits=SeededBits(4))
    assert by_code.tolist() == ORACLE.sample(np.array(words)[codes], SeededBits(4)).tolist()
    given = ORACLE.encode(words, codes, cohorts=codes, bits=SeededBits(4))
    assert ORACLE.split(given)[0].tolist() == codes.tolist()
    with pytest.raises(InvalidParameter, match="'words'"):
        ORACLE.encode([], codes)
    for wrong in ([3] * 8, [0] * 7, [-1] * 8):
        with pytest.raises(InvalidParameter, match="'cohorts'"):
            ORACLE.encode(words, codes, cohorts=wrong)


def test_counts_are_sums_by_cohort_and_bit() -> None:
    rows = ORACLE.sample(np.array(["a", "b"] * 500), SeededBits(2))
    table = ORACLE.table(ORACLE.tally(rows))
    expected = np.zeros((3, 13), int)
    for row in rows:
        bits = [(int(row[1 + i // 8]) >> (7 - i % 8)) & 1 for i in range(12)]
        expected[row[0]] += np.array([1, *bits])
    assert table.tolist() == expected.tolist()
    both = ORACLE.tally(rows[:300]) + ORACLE.tally(rows[300:])
    assert ORACLE.table(both).tolist() == expected.tolist()


def test_shares_of_bits_are_unbiased() -> None:
    """Over every report of one bit pattern, by the law of each bit."""
    oracle = Rappor(bits=2, hashes=1, cohorts=2, f=Fraction(1, 4), p=Fraction(1, 3), q=Fraction(3, 4))
    one, zero = float(oracle.coins.one), float(oracle.coins.zero)
    mean = np.zeros(2)
    for bits in itertools.product((0, 1), repeat=2):
        mass = (one if bits[0] else 1 - one) * (zero if bits[1] else 1 - zero)
        row = np.array([[1, bits[0] << 7 | bits[1] << 6]], np.uint8)
        found = oracle.estimate(oracle.tally(row))
        mean += mass * found.value[1]
        assert found.variance[0].tolist() == [np.inf, np.inf]
    assert mean == pytest.approx([1, 0])


def test_categories_are_estimated_without_bias() -> None:
    for oracle in (
        BasicRappor(categories=3, f=0.25, p=0.25, q=0.75),
        BasicOneTimeRappor(categories=3, f=0.5),
    ):
        for truth in range(3):
            mean = sum(
                mass * oracle.estimate(oracle.tally(np.array([[code]], np.uint8))).value
                for code, mass in basic(oracle, truth).items()
            )
            assert mean == pytest.approx(np.eye(3)[truth])
        assert oracle.epsilon >= oracle.epsilon_one


def test_reports_travel_with_the_fingerprint_of_their_specification() -> None:
    question = Question(name="home page", oracle=ORACLE)
    assert Question.from_json(question.to_json()) == question
    rows = ORACLE.pack(ORACLE.sample(np.array(["a", "b", "c"]), SeededBits(1)))
    text = lines.written(question.fingerprint, rows)
    assert lines.read(text, question.fingerprint, ORACLE).tolist() == rows.tolist()
    other = Question(name="home page", oracle=Rappor(bits=16, hashes=2, cohorts=3, f=0.25, p=0.25, q=0.75))
    assert other.oracle.width == ORACLE.width
    with pytest.raises(InvalidParameter, match=r"Line 1 .* another specification"):
        lines.read(text, other.fingerprint, other.oracle)
    labelled = Question(name="size", oracle=BasicRappor(categories=2, f=0, p=0.25, q=0.5), labels=("s", "l"))
    assert Question.from_json(labelled.to_json()) == labelled


def test_foreign_reports_and_counts_are_refused() -> None:
    rows = ORACLE.sample(np.array(["a", "b", "c"]), SeededBits(1))
    spoilt = rows.copy()
    spoilt[1, 0] = 3
    with pytest.raises(InvalidParameter, match="Report 2 is none"):
        ORACLE.tally(spoilt)
    spoilt = rows.copy()
    spoilt[2, -1] |= 1
    with pytest.raises(InvalidParameter, match="Report 3 is none"):
        ORACLE.unpack(spoilt)
    for wrong in (rows[:, :2], rows.astype(int)):
        with pytest.raises(InvalidParameter, match="rows of 3 bytes"):
            ORACLE.tally(wrong)
    other = Rappor(bits=12, hashes=2, cohorts=3, f=Fraction(1, 4), p=Fraction(1, 3), q=Fraction(4, 5))
    with pytest.raises(InvalidParameter, match="other parameters"):
        other.table(ORACLE.tally(rows))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("bits", 257),
        ("bits", 1),
        ("hashes", 17),
        ("hashes", 0),
        ("cohorts", 0),
        ("f", 1),
        ("f", -0.1),
        ("p", 0),
        ("q", 1),
        ("q", Fraction(1, 3)),
    ],
)
def test_bad_parameters_are_refused(field: str, value: object) -> None:
    good = {"bits": 12, "hashes": 2, "cohorts": 3, "f": 0.25, "p": Fraction(1, 3), "q": 0.75}
    with refusal_of(field, "Rappor"):
        Rappor(**(good | {field: value}))  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [10, 100_000])
def test_the_error_of_a_bit_is_covered(size: int) -> None:
    oracle = BasicRappor(categories=2, f=0.25, p=0.25, q=0.75)
    found = oracle.estimate(oracle.tally(oracle.sample(np.zeros(size, int), SeededBits(8))))
    assert abs(found.value[0] - 1) <= oracle.error(0.999, size)
    with pytest.raises(InvalidParameter, match="'reports'"):
        oracle.error(0.95, 0)
    with pytest.raises(InvalidParameter, match="'reports'"):
        oracle.epsilon_after(0)
