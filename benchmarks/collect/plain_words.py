"""What a plain search for words finds, simulated often: the forecast beside `benchmarks.collect.words`.

    python -m benchmarks.collect.plain_words --runs 200

Prefixes of 3, 6, 9 and 12 letters, a quarter of the devices for each, the 64 best kept by their deviation
alone, and words told that deviate beyond chance at a rate of 5 % over all candidates. Noise is normal. Of
prefixes that nobody has only the 64 largest deviations are drawn, as order statistics of so many.
"""

import argparse
import json
import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from benchmarks.collect.words import FORECAST, SIZES, TOP, WORDS, made_up
from sourdine.local.words import WordTree

_PARTS, _LEVELS, _KEEP, _RATE = 32**3, 4, 64, 0.05
_FORECAST_RUNS = 3


class PlainSearch:
    """The prefixes of a list of words, the commoner ones first."""

    def __init__(self, words: list[str]) -> None:
        parts = WordTree(epsilon=1).parts(words).astype(np.int64)
        weights = 1 / np.arange(1, len(words) + 1)
        self._shares = weights / weights.sum()
        codes = np.zeros(len(words), np.int64)
        self._prefix: list[NDArray[np.int64]] = []  # of each word, by level
        self._before: list[NDArray[np.int64]] = []  # of each prefix, the shorter one
        known = np.zeros(1, np.int64)
        for level in range(_LEVELS):
            codes = codes * _PARTS + parts[:, level]
            every, places = np.unique(codes, return_inverse=True)
            self._before.append(np.searchsorted(known, every // _PARTS))
            self._prefix.append(places)
            known = every

    def found(self, people: int, epsilon: int, dice: np.random.Generator) -> int:
        """How many of the commonest words one search finds."""
        channel = WordTree(epsilon=epsilon).channel
        count = people // _LEVELS
        spread = math.sqrt(channel.q * (1 - channel.q) / count) / (channel.p - channel.q)
        kept = np.zeros(1, np.int64)
        followed = 1
        for level in range(_LEVELS):
            holders = dice.multinomial(count, self._shares)
            share = np.bincount(self._prefix[level], holders) / count
            real = np.flatnonzero(np.isin(self._before[level], kept))
            deviations = share[real] / spread + dice.normal(size=len(real))
            candidates = followed * _PARTS
            if level + 1 == _LEVELS:
                told = real[deviations > -ndtri(_RATE / candidates)]
                return int(np.isin(self._prefix[level][:TOP], told).sum())
            chances = np.cumsum(dice.exponential(size=_KEEP)) / (candidates - len(real))
            order = np.argsort(-np.concatenate([deviations, -ndtri(chances)]))[:_KEEP]
            kept, followed = real[order[order < len(real)]], _KEEP
        raise AssertionError


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--runs", type=int, default=200)
    reader.add_argument("--seed", type=int, default=1)
    asked = reader.parse_args()
    search = PlainSearch(made_up(WORDS, np.random.default_rng(1)))
    dice = np.random.default_rng(asked.seed)
    for people, epsilon in SIZES:
        found = np.array([search.found(people, epsilon, dice) for _ in range(asked.runs)])
        deviation = float(found.std(ddof=1))
        line = {
            "devices": people,
            "epsilon": epsilon,
            "found": round(float(found.mean()), 2),
            "standard_error": round(deviation / math.sqrt(asked.runs), 3),
            "forecast": FORECAST[people, epsilon],
            "standard_error_of_forecast": round(deviation / math.sqrt(_FORECAST_RUNS), 2),
        }
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
