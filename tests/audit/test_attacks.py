"""Published attacks on differential privacy in software, tried on our own mechanisms."""

import math
import multiprocessing
import os
import threading
import traceback
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from sourdine.audit.outcomes import kinds, title
from sourdine.core import grid
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Example, Mechanism
from sourdine.core.random.bits import SYSTEM
from sourdine.mechanisms import Gaussian, Geometric, Laplace
from sourdine.testing import SeededBits
from tests.contract import one_of_each
from tests.mutants.floats import finest_bit, float_gaussian, float_laplace
from tests.statistics import ALARM, fit

STEP = Fraction(1, 1 << 10)
ON_REALS = [Laplace(scale=Fraction(3, 2), granularity=STEP), Gaussian(sigma=Fraction(3, 2), granularity=STEP)]
ON_INTEGERS = [Laplace(scale=Fraction(10)), Gaussian(sigma=Fraction(10)), Geometric(scale=Fraction(10))]
EXAMPLES_BY_NAME = {
    f"{kind}-{i}": example for kind, found in kinds().items() for i, example in enumerate(found.examples())
}
NUMBERS_BY_NAME = {
    name: example
    for name, example in EXAMPLES_BY_NAME.items()
    if np.asarray(example.value).dtype.kind not in "US"
}
OF_NUMBERS = [pytest.param(example, id=name) for name, example in NUMBERS_BY_NAME.items()]
STRANGE_REALS = [math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, -0.0, 2.0**53]
STRANGE_INTEGERS = [0, -1, 2**53 + 1, 2**63 - 1, -(2**63)]
on_reals = pytest.mark.parametrize("mechanism", ON_REALS, ids=title)
on_integers = pytest.mark.parametrize("mechanism", ON_INTEGERS, ids=title)


def off_grid(answers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which answers are not whole multiples of the declared step."""
    return answers != np.rint(answers / float(STEP)) * float(STEP)


# Porous floats (Mironov 2012) and precision (Haney, Desfontaines, Hartman, Shrestha, Hay 2022).


@on_reals
@given(values=arrays.arrays(np.float64, 50, elements=st.floats(-1e9, 1e9)), seed=st.integers(0, 2**32))
@settings(max_examples=50)
def test_answers_are_on_the_grid_whatever_the_input(
    mechanism: Mechanism, values: NDArray[np.float64], seed: int
) -> None:
    assert not off_grid(mechanism.sample(values, SeededBits(seed))).any()


@on_reals
@pytest.mark.parametrize("value", [0.0, 1.0, 1 / 3, math.pi, 1e-300])
def test_no_answer_is_finer_than_the_grid(mechanism: Mechanism, value: float) -> None:
    answers = mechanism.sample(np.full(20_000, value), SeededBits(1))
    assert finest_bit(answers).min() == -10


@pytest.mark.parametrize("noise", [float_laplace, float_gaussian])
def test_textbook_noise_fails_the_same_checks(noise: object) -> None:
    drawn = noise(1.5, 20_000, SeededBits(1))  # type: ignore[operator]
    assert off_grid(drawn).all()
    assert np.mean(finest_bit(0.0 + drawn) < -53) > 0.1  # never happens around 1: the bit that tells
    assert np.mean(finest_bit(1.0 + drawn) < -53) == 0


# Large integers, which floats cannot tell apart.


def centred(mechanism: Mechanism) -> dict[int, float]:
    """The law of the noise, by its formula."""
    k = np.arange(-400, 401)
    weights = np.exp(-(k**2) / 200) if isinstance(mechanism, Gaussian) else np.exp(-np.abs(k) / 10)
    return dict(zip(k.tolist(), (weights / weights.sum()).tolist(), strict=True))


@on_integers
@pytest.mark.parametrize("value", [1 << 60, -(1 << 60) - 1, (1 << 53) + 1])
@pytest.mark.parametrize("kind", [np.int64, np.object_])
def test_huge_integers_get_the_same_noise(mechanism: Mechanism, value: int, kind: type) -> None:
    answers = mechanism.sample(np.full(50_000, value, dtype=kind), SeededBits(1))
    assert fit(answers - value, centred(mechanism)) > ALARM
    assert fit(answers - value - 1, centred(mechanism)) < ALARM  # one more or less would show


@on_integers
def test_unsigned_integers_get_the_same_noise(mechanism: Mechanism) -> None:
    answers = mechanism.sample(np.full(50_000, 1 << 60, dtype=np.uint64), SeededBits(1))
    assert fit(answers.astype(np.int64) - (1 << 60), centred(mechanism)) > ALARM


@on_integers
@pytest.mark.parametrize("value", [1 << 63, (1 << 64) - 1, 1 << 70, 10**400])
def test_integers_beyond_the_range_are_clipped_before_the_noise(mechanism: Mechanism, value: int) -> None:
    array = np.full(10_000, value, dtype=np.object_ if value >= 1 << 64 else np.uint64)
    answers = mechanism.sample(array, SeededBits(1))
    edge = mechanism.sample(np.full(10_000, grid.LIMIT), SeededBits(1))
    assert np.array_equal(answers, edge)
    assert len(np.unique(answers)) > 10


# NaN, infinities and other values no schema foresaw.


@on_reals
@pytest.mark.parametrize(
    ("strange", "plain"), [(math.nan, 0.0), (math.inf, 1e300), (-math.inf, -1e300), (5e-324, 0.0)]
)
def test_strange_reals_answer_like_plain_ones(mechanism: Mechanism, strange: float, plain: float) -> None:
    found, expected = (mechanism.sample(np.full(1000, x), SeededBits(1)) for x in (strange, plain))
    assert np.isfinite(found).all()
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("example", one_of_each(EXAMPLES_BY_NAME.values()))
@given(data=st.data())
@settings(max_examples=5)
def test_no_value_raises_or_escapes(example: Example, data: st.DataObject) -> None:
    """Code that has seen data is total: whatever the values are, there is a finite answer."""
    declared = np.asarray(example.value)
    if declared.dtype.kind == "f":
        elements = st.floats(width=64) | st.sampled_from([math.nan, math.inf, -math.inf, 1e308, 5e-324])
        values = data.draw(arrays.arrays(np.float64, (3, *declared.shape), elements=elements))
    elif declared.dtype.kind in "US":
        words = data.draw(st.lists(st.text(max_size=20), min_size=3, max_size=3))
        values = np.array(words, dtype=np.object_)
    else:
        values = data.draw(arrays.arrays(np.int64, (3, *declared.shape)))
    answers = example.mechanism.sample(values, SeededBits(1))
    assert len(answers) == 3
    assert np.isfinite(answers).all()


@pytest.mark.parametrize("example", OF_NUMBERS)
def test_no_strange_number_raises_or_escapes(example: Example) -> None:
    """Each of them in each place, beside ones."""
    declared = np.asarray(example.value)
    strange = STRANGE_REALS if declared.dtype.kind == "f" else STRANGE_INTEGERS
    rows = np.ones((len(strange), max(declared.size, 1), declared.size), dtype=np.asarray(strange).dtype)
    for number, value in enumerate(strange):
        rows[number, np.arange(declared.size), np.arange(declared.size)] = value
    answers = example.mechanism.sample(rows.reshape(-1, *declared.shape), SeededBits(1))
    assert len(answers) == len(strange) * declared.size
    assert np.isfinite(answers).all()


@pytest.mark.parametrize("example", OF_NUMBERS)
def test_no_integer_of_a_list_raises_by_its_size(example: Example) -> None:
    """numpy turns [1, 2**63] into floats and [1, 2**64] into objects: no error may tell."""
    one = np.full(np.shape(example.value), 1, dtype=np.object_)
    for huge in (2**63, -(2**63) - 1, 2**64, 10**400):
        other = one.copy()
        other.flat[-1:] = huge
        answers = example.mechanism.sample([one.tolist(), other.tolist()], SeededBits(1))
        assert len(answers) == 2
        assert np.isfinite(answers).all()


# Noise reused after a fork, in another process or by two threads.


def noise() -> bytes:
    """128 bits of noise or more, from the words and from a mechanism."""
    wide = Laplace(scale=Fraction(1 << 40)).sample(np.zeros(8, dtype=np.int64))
    return SYSTEM.words(2).tobytes() + SYSTEM.words(1000).tobytes()[:16] + wide.tobytes()


def different(several: list[bytes]) -> bool:
    """Whether no part of one is a part of another."""
    parts = [one[i : i + 16] for one in several for i in range(0, len(one), 16)]
    return len(set(parts)) == len(parts)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_noise_differs_after_a_fork() -> None:
    before = noise()  # whatever state there is exists by now
    ends = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(ends[1], noise())
        os._exit(0)
    ours = noise()
    os.waitpid(child, 0)
    theirs = os.read(ends[0], 4096)
    for end in ends:
        os.close(end)
    assert len(theirs) == len(ours) > 0
    assert different([before, ours, theirs])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="the system has no fork")
def test_noise_differs_between_processes() -> None:
    before = noise()
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool:
        drawn = [task.get(30) for task in [pool.apply_async(noise) for _ in range(4)]]
    assert different([before, *drawn, noise()])


def test_noise_differs_between_threads_and_keeps_its_law() -> None:
    mechanism = Laplace(scale=Fraction(113, 17))  # a law whose table no other test has built
    start = threading.Barrier(8)
    drawn: list[NDArray[np.int64]] = []
    seen: list[bytes] = []

    def work() -> None:
        start.wait()
        drawn.append(mechanism.sample(np.zeros(10_000, dtype=np.int64)))
        seen.append(noise())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert different(seen)
    k = np.arange(-300, 301)
    weights = np.exp(-np.abs(k) * 17 / 113)
    law = dict(zip(k.tolist(), (weights / weights.sum()).tolist(), strict=True))
    assert fit(np.concatenate(drawn), law) > ALARM
    assert not any(np.array_equal(one, other) for i, one in enumerate(drawn) for other in drawn[:i])


# Errors that quote data.

KINDS = [pytest.param(next(kind.examples()).mechanism, id=name) for name, kind in kinds().items()]
KINDS_OF_NUMBERS = [
    pytest.param(example.mechanism, id=name)
    for name, example in NUMBERS_BY_NAME.items()
    if name.endswith("-0")
]
SECRET = "271828182845"  # digits that no parameter, shape or bound has


@pytest.mark.parametrize("mechanism", KINDS_OF_NUMBERS)
@pytest.mark.parametrize(
    "secret", [SECRET, SECRET.encode(), {SECRET: 1}, complex(SECRET), {SECRET}], ids=repr
)
def test_what_is_no_number_is_refused_without_a_quote(mechanism: Mechanism, secret: object) -> None:
    for values in ([secret], [secret] * 3, [[secret]], [[secret] * 3], [[secret] * 5]):
        with pytest.raises(InvalidParameter) as problem:
            mechanism.sample(values)  # type: ignore[arg-type]
        assert SECRET not in "".join(traceback.format_exception(problem.value))


@pytest.mark.parametrize("mechanism", KINDS)
@given(data=st.data())
@settings(max_examples=10)
def test_no_error_quotes_a_number(mechanism: Mechanism, data: st.DataObject) -> None:
    """Mixed, misshapen and hidden in objects: whatever is refused, the numbers stay untold."""
    number = st.sampled_from([int(SECRET), -int(SECRET) << 70, float(SECRET) + 0.25, math.nan, None, True])
    rows = data.draw(st.lists(st.lists(number, max_size=6) | number, max_size=6))
    try:
        array = np.array(rows)
    except ValueError:  # numpy refuses ragged rows before we see them
        array = np.array([*rows, {}], dtype=np.object_)
    try:
        mechanism.sample(array, SeededBits(1))
    except InvalidParameter as problem:
        told = "".join(traceback.format_exception(problem))
    else:
        told = ""
    assert not any(secret in told for secret in (SECRET, str(int(SECRET) << 70)))


def test_errors_do_repeat_declared_parameters() -> None:
    """So the checks above can fail."""
    with pytest.raises(InvalidParameter, match=SECRET):
        Laplace(scale=Fraction(-int(SECRET)))
