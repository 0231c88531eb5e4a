"""Encoding, counting and decoding a million reports: `python -m benchmarks.rappor`.

Processor time counts, since the targets are for one core: at least a million values encoded a second at 128
bits and 2 hashes, and less than 5 seconds to count and decode them with 1,000 candidates.
"""

import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from sourdine.local.rappor import Rappor
from sourdine.local.rappor.decode import Candidates, Evidence, decode_by_lasso, decode_by_least_squares

REPORTS = 1_000_000
ROUNDS = 5


def main() -> None:
    """Measure, and say whether the targets are met."""
    half = Fraction(1, 2)
    oracle = Rappor(bits=128, hashes=2, cohorts=16, f=half, p=half, q=Fraction(3, 4))
    words = [f"v{i}" for i in range(1000)]
    codes = np.minimum(np.arange(REPORTS) % 997 // 10, 99)
    rows = oracle.encode(words, codes)
    encoding = best(lambda: oracle.encode(words, codes))
    counting = best(lambda: oracle.tally(rows))
    candidates = Candidates.of(oracle, words)
    evidence = Evidence.of(oracle, oracle.tally(rows))
    squares = best(lambda: decode_by_least_squares(evidence, candidates))
    lasso = best(lambda: decode_by_lasso(evidence, candidates))
    print(f"encode   {REPORTS / encoding / 1e6:6.1f} million values a second")
    print(f"count    {REPORTS / counting / 1e6:6.1f} million reports a second")
    print(f"decode   {squares:6.2f} s by least squares, {lasso:.2f} s by LASSO, {len(words)} candidates")
    print("encoding target met" if REPORTS / encoding >= 1e6 else "encoding target MISSED")
    print("decoding target met" if counting + max(squares, lasso) < 5 else "decoding target MISSED")


def best(act: Callable[[], object]) -> float:
    """The least processor time of some rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        act()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()
