"""The search: words found, none made up, intervals that hold."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from sourdine.core.random import samplers as exact
from sourdine.local.words import WordTree, find_words, least_share
from sourdine.local.words.search import _threshold
from sourdine.testing import SeededBits


def reports(oracle: WordTree, words: dict[str, int], seed: int) -> np.ndarray:
    answers = np.repeat(np.arange(len(words)), list(words.values()))
    bits = SeededBits(seed)
    return oracle.encode(
        oracle.parts(list(words))[answers], exact.uniform(oracle.depth, len(answers), bits), bits
    )


def test_common_words_are_found_and_no_others() -> None:
    oracle = WordTree(epsilon=4, letters=6)
    common = {"tea": 5000, "coffee": 4000, "water": 2500}
    words = common | {f"{chr(97 + i % 26)}{chr(97 + i // 26)}rare": 1 for i in range(500)}
    found = find_words(oracle, reports(oracle, words, 3))
    assert [each.word for each in found.words] == list(common)
    assert all(each.lower > 0 for each in found.words)
    assert found.whole == pytest.approx(6000, rel=0.1)
    over = 31**2 + 31 + 1  # parts with the end of a word
    assert found.candidates == over + 64 * (31**3 + over)


def test_without_reports_nothing_is_found() -> None:
    oracle = WordTree(epsilon=1, letters=3)
    none = find_words(oracle, np.zeros((0, oracle.width), np.uint8))
    assert none.words == ()
    assert none.reports == none.whole == 0


@pytest.mark.parametrize(
    ("reports_", "chance", "rate"), [(1000, 1 / 8, 2.5e-8), (250_000, 1 / 32, 1e-9), (5, 0.5, 0.1)]
)
def test_the_threshold_is_the_least_that_chance_seldom_reaches(
    reports_: int, chance: float, rate: float
) -> None:
    least = _threshold(reports_, chance, rate)
    assert binom.sf(least - 1, reports_, chance) <= rate
    assert binom.sf(least - 2, reports_, chance) > rate


def test_the_forecast_is_the_threshold_of_the_search() -> None:
    oracle = WordTree(epsilon=2, letters=3)
    assert least_share(oracle, 400) == find_words(oracle, reports(oracle, {"tea": 400}, 4)).threshold


@pytest.mark.slow
def test_words_that_nobody_has_are_told_at_most_as_often_as_stated() -> None:
    """Everybody has a word of their own: at a rate of 1/2, at most half of the searches tell one."""
    oracle = WordTree(epsilon=4, letters=3)
    dice = np.random.default_rng(1)
    told = 0
    for seed in range(60):
        words = {"".join(chr(97 + i) for i in dice.integers(0, 26, 3)): 1 for _ in range(400)}
        findings = find_words(oracle, reports(oracle, words, seed), false_rate=0.5)
        told += any(each.word not in words for each in findings.words)
    assert told <= 30 + 4.75 * math.sqrt(60 * 0.25)


@pytest.mark.slow
def test_intervals_hold_given_that_a_word_is_found() -> None:
    """Words just at the threshold, where estimates of those found are far too high."""
    oracle = WordTree(epsilon=2, letters=3)
    share = least_share(oracle, 4000)
    held = told = 0
    high = []
    for seed in range(400):
        dice = np.random.default_rng(seed)
        have = int((dice.random(4000) < share).sum())  # a sample of a population with this share
        words = {"tea": have, "": 4000 - have}
        for each in find_words(oracle, reports(oracle, words, seed)).words:
            if each.word == "tea":
                told, held = told + 1, held + (each.lower <= share <= each.upper)
                high.append(each.value)
    assert told > 100
    assert np.mean(high) > 1.05 * share
    assert held >= 0.95 * told - 4.75 * math.sqrt(0.95 * 0.05 * told)
