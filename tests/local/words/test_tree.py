"""The oracle of words: its reports on the wire, what they favour, and what it refuses."""

import math
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local import OLH, Question
from sourdine.local.shuffle import amplified_epsilon
from sourdine.local.words import WordTree
from sourdine.testing import SeededBits

TEN = ["tea", "coffee", "water", "cocoa", "juice"] * 2


def test_reports_survive_the_wire_and_say_their_level() -> None:
    oracle = WordTree(epsilon=1)
    rows = oracle.pack(oracle.sample(TEN * 20, SeededBits(1)))
    assert oracle.sound(rows).all()
    levels, responses, seeds = oracle.split(rows)
    assert set(levels.tolist()) == {0, 1, 2, 3}
    assert responses.max() < oracle.groups
    assert (seeds[levels == 0][:, 1:] == 0).all()
    counts = oracle.tally(rows)
    assert counts.sums.tolist() == np.bincount(levels).tolist()
    assert oracle.possible(counts)


def test_rows_that_no_device_sends() -> None:
    oracle = WordTree(epsilon=2)  # 8 groups, seeds below 2^15
    good = oracle.pack(oracle.sample(["tea"], SeededBits(2)))[0]
    beyond, level, seed = good.copy(), good.copy(), good.copy()
    beyond[0], beyond[-1] = 0, 1  # a seed for a part that the prefix does not have
    level[0] = 4 * oracle.groups
    seed[1] = 255
    assert oracle.sound(np.stack([good, beyond, level, seed])).tolist() == [True, False, False, False]
    with pytest.raises(InvalidParameter, match="Report 2"):
        oracle.unpack(np.stack([good, level]))


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 1, 2, 3, 4])
def test_the_groups_are_those_of_least_variance(epsilon: Fraction) -> None:
    def variance(g: int) -> float:
        p = math.exp(epsilon) / (math.exp(epsilon) + g - 1)
        return (1 / g) * (1 - 1 / g) / (p - 1 / g) ** 2

    assert WordTree(epsilon=epsilon).groups == min((2, 4, 8, 16, 32), key=variance)


def test_supports_are_pairwise_as_stated() -> None:
    """A report speaks for the word's own prefix with p and for any other with 1/g, at every level."""
    oracle = WordTree(epsilon=2)
    levels, responses, seeds = oracle.split(
        oracle.pack(oracle.sample(["strawberries"] * 40_000, SeededBits(3)))
    )
    for word, chance in (("strawberries", oracle.channel.p), ("blackberries", 1 / 8)):
        parts = np.broadcast_to(oracle.parts([word]), seeds.shape)
        dots = np.bitwise_xor.reduce(
            oracle.space.dot(seeds.ravel(), parts.ravel()).reshape(seeds.shape), axis=1
        )
        for level in range(4):
            said = (dots == responses)[levels == level]
            assert abs(said.mean() - chance) < 5 * math.sqrt(chance * (1 - chance) / len(said))


def test_a_shuffle_hides_words_at_least_as_local_hashing_does() -> None:
    tree, flat = WordTree(epsilon=2), OLH(epsilon=2, categories=32**3, groups=8)
    assert amplified_epsilon(tree, 10_000, 1e-6) == pytest.approx(
        amplified_epsilon(flat, 10_000, 1e-6), rel=1e-6
    )
    alike = tree.favours[-1]  # words that differ in their last part alone
    assert alike.alone == pytest.approx(tree.favours[0].alone / 4)


def test_it_reads_itself_and_a_question_takes_any_word() -> None:
    question = Question(name="snack", oracle=WordTree(epsilon=4, letters=6, alphabet="abcä"))
    assert Question.from_json(question.to_json()) == question
    assert question.values(["abc", "???"]).tolist() == ["abc", "???"]


@pytest.mark.parametrize(
    ("field", "wrong"), [("letters", 9), ("letters", 24), ("groups", 3), ("groups", 64), ("epsilon", 0)]
)
def test_what_it_refuses(field: str, wrong: int) -> None:
    given: dict[str, object] = {"epsilon": 1, field: wrong}
    with pytest.raises(InvalidParameter, match=field):
        WordTree(**given)  # type: ignore[arg-type]


def test_numbers_are_no_words_and_counts_tell_none() -> None:
    oracle = WordTree(epsilon=1)
    with pytest.raises(InvalidParameter, match="must be words"):
        oracle.sample([1, 2])
    with pytest.raises(InvalidParameter, match="single reports"):
        oracle.estimate(oracle.tally(oracle.sample(["tea"], SeededBits(1))))
