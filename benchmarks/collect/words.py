"""Words nobody listed, found again: made-up words by Zipf's law, real reports, and a search, many times.

    python -m benchmarks.collect.words --runs 20

For each number of devices and epsilon: how many of the 32 commonest words are found, in how many runs a word
is told that does not exist, how often intervals hold, and the processor time and memory of a search.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sourdine.core.random import samplers as exact
from sourdine.local.words import WordTree, find_words
from sourdine.testing import SeededBits

SIZES = ((1_000_000, 4), (1_000_000, 2), (1_000_000, 1), (100_000, 4), (100_000, 2), (100_000, 1))
FORECAST = {
    (1_000_000, 4): 25.0,
    (1_000_000, 2): 8.3,
    (1_000_000, 1): 3.7,
    (100_000, 4): 8.3,
    (100_000, 2): 2.7,
    (100_000, 1): 1.0,
}
"""Found in a simulation with normal noise, on the mean of three runs."""
WORDS, TOP, _CHUNK = 100_000, 32, 1 << 17


def made_up(count: int, dice: np.random.Generator) -> list[str]:
    """So many different words of syllables, 3 to 12 letters long."""
    starts = ["", *"bcdfghjklmnprstvwz", "st", "tr", "ch", "sh"]
    vowels, closes = [*"aeiou", "ea", "ou"], ["", "", "n", "r", "s", "l", "t"]
    words: dict[str, None] = {}
    while len(words) < count:
        syllables = int(dice.integers(1, 6))
        word = "".join(
            str(dice.choice(starts)) + str(dice.choice(vowels)) + str(dice.choice(closes))
            for _ in range(syllables)
        )
        if len(word) >= 3:
            words[word[:12]] = None
    return list(words)


def run(oracle: WordTree, words: list[str], people: int, seed: int) -> dict[str, float]:
    """One survey and its search."""
    dice = np.random.default_rng(seed)
    weights = 1 / np.arange(1, len(words) + 1)
    shares = weights / weights.sum()
    answers = dice.choice(len(words), people, p=shares)
    parts, bits = oracle.parts(words), SeededBits(seed)
    rows: NDArray[np.uint8] = np.concatenate(
        [
            oracle.encode(parts[some], exact.uniform(oracle.depth, len(some), bits), bits)
            for some in np.array_split(answers, -(-people // _CHUNK))
        ]
    )
    began = time.process_time()
    findings = find_words(oracle, rows)
    seconds = time.process_time() - began
    rank = {word: i for i, word in enumerate(words)}
    held = [
        each.lower <= shares[rank[each.word]] <= each.upper for each in findings.words if each.word in rank
    ]
    return {
        "found": sum(rank.get(each.word, TOP) < TOP for each in findings.words),
        "false": sum(each.word not in rank for each in findings.words),
        "told": len(findings.words),
        "held": sum(held),
        "seconds": seconds,
    }


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--runs", type=int, default=20)
    reader.add_argument("--devices", type=int, help="only the settings of so many")
    reader.add_argument("--epsilon", type=int, help="only the settings of this one")
    reader.add_argument("--first", type=int, default=0, help="the seed of the first run; others follow it")
    reader.add_argument("--output", type=Path)
    asked = reader.parse_args()
    words = made_up(WORDS, np.random.default_rng(1))
    lines = []
    for people, epsilon in SIZES:
        if asked.devices not in (None, people) or asked.epsilon not in (None, epsilon):
            continue
        seeds = range(asked.first, asked.first + asked.runs)
        runs = [run(WordTree(epsilon=epsilon), words, people, seed) for seed in seeds]
        found = np.array([each["found"] for each in runs])
        told = sum(each["told"] - each["false"] for each in runs)
        line = {
            "devices": people,
            "epsilon": epsilon,
            "found": round(float(found.mean()), 2),
            "standard_error": round(float(found.std(ddof=1) / np.sqrt(len(found))), 2)
            if len(found) > 1
            else 0,
            "forecast": FORECAST[people, epsilon],
            "runs_with_false_words": sum(each["false"] > 0 for each in runs),
            "false_words": sum(each["false"] for each in runs),
            "coverage": round(sum(each["held"] for each in runs) / max(told, 1), 4),
            "intervals": told,
            "seconds": round(float(np.median([each["seconds"] for each in runs])), 2),
            "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        }
        lines.append(line)
        print(json.dumps(line), flush=True)
    if asked.output:
        asked.output.write_text(json.dumps(lines, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
