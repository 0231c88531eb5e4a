"""Supports as a plain count has them, of prefixes and of words that are over."""

import numpy as np
import pytest

from sourdine.local import OLH
from sourdine.local.words import WordTree
from sourdine.local.words.supports import PartReports
from tests.local.words.test_search import reports


@pytest.mark.parametrize("groups", [2, 4, 8, 16, 32])
def test_supports_are_those_of_a_plain_count(groups: int) -> None:
    oracle = WordTree(epsilon=1, groups=groups)
    levels, responses, seeds = oracle.split(reports(oracle, {"strawberry": 300, "tea": 100}, 1))
    chosen = levels == 2
    sheet = PartReports.of(oracle, responses[chosen], seeds[chosen], 2)
    prefix = oracle.parts(["strawberry"])[0]
    supports = sheet.supports(prefix[:2], np.arange(32**3))
    for part in (int(prefix[2]), 0, 1, 77, 32**3 - 1):
        parts = np.broadcast_to(np.array([*prefix[:2], part]), (chosen.sum(), 3))
        dots = oracle.space.dot(seeds[chosen][:, :3].ravel(), parts.ravel()).reshape(-1, 3)
        assert supports[part] == (np.bitwise_xor.reduce(dots, axis=1) == responses[chosen]).sum()


def test_the_first_level_is_local_hashing() -> None:
    oracle = WordTree(epsilon=2, letters=3)
    flat = OLH(epsilon=2, categories=32**3, groups=8)
    levels, responses, seeds = oracle.split(reports(oracle, {"tea": 500}, 2))
    sheet = PartReports.of(oracle, responses, seeds, 0)
    counts = flat.tally(seeds[:, 0] * 8 + responses)
    assert sheet.supports(np.zeros(0, np.int64), np.arange(32**3)).tolist() == flat.supports(counts).tolist()
    assert not levels.any()


@pytest.mark.parametrize("groups", [2, 4, 8, 16, 32])
def test_reports_of_longer_prefixes_speak_for_words_that_are_over(groups: int) -> None:
    oracle = WordTree(epsilon=1, groups=groups)
    levels, responses, seeds = oracle.split(reports(oracle, {"coffee": 200, "beans": 300}, 1))
    chosen = levels >= 1
    sheet = PartReports.of(oracle, responses[chosen], seeds[chosen], 1)
    word = oracle.parts(["beans"])[0]
    supports = sheet.supports(word[:1], np.arange(0, 32**3, 32))
    for part in (int(word[1]), 0, 32, 31 * 32):
        parts = np.broadcast_to(np.array([word[0], part, 0, 0]), (chosen.sum(), 4))
        dots = oracle.space.dot(seeds[chosen].ravel(), parts.ravel()).reshape(-1, 4)
        assert supports[part // 32] == (np.bitwise_xor.reduce(dots, axis=1) == responses[chosen]).sum()
