"""Encoding, counting and decoding a million reports: `python -m benchmarks.rappor`.

Processor time counts, since the targets are for one core: at least a million values encoded a second at 128
bits and 2 hashes, and less than 5 seconds to count and decode them with 1,000 candidates.
"""

import argparse
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from rich.console import Console

from benchmarks.finding import verdict
from sourdine.local.rappor import Rappor
from sourdine.local.rappor.decode import Candidates, Evidence, decode_by_lasso, decode_by_least_squares

REPORTS = 1_000_000
ROUNDS = 5


def main() -> None:
    """Measure, and say whether the targets are met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rappor", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one round")
    rounds = 1 if parser.parse_args().quick else ROUNDS
    half = Fraction(1, 2)
    oracle = Rappor(bits=128, hashes=2, cohorts=16, f=half, p=half, q=Fraction(3, 4))
    words = [f"v{i}" for i in range(1000)]
    codes = np.minimum(np.arange(REPORTS) % 997 // 10, 99)
    rows = oracle.encode(words, codes)
    encoding = best(lambda: oracle.encode(words, codes), rounds)
    counting = best(lambda: oracle.tally(rows), rounds)
    candidates = Candidates.of(oracle, words)
    evidence = Evidence.of(oracle, oracle.tally(rows))
    squares = best(lambda: decode_by_least_squares(evidence, candidates), rounds)
    lasso = best(lambda: decode_by_lasso(evidence, candidates), rounds)
    print(f"encode   {REPORTS / encoding / 1e6:6.1f} million values a second")
    print(f"count    {REPORTS / counting / 1e6:6.1f} million reports a second")
    print(f"decode   {squares:6.2f} s by least squares, {lasso:.2f} s by LASSO, {len(words)} candidates")
    console = Console()
    rate, seconds = REPORTS / encoding / 1e6, counting + max(squares, lasso)
    verdict(console, rate >= 1, f"{rate:.1f} million values encoded a second on one core (target 1)")
    verdict(console, seconds < 5, f"a million reports counted and decoded in {seconds:.2f} s (target 5)")


def best(act: Callable[[], object], rounds: int) -> float:
    """The least processor time of some rounds."""
    times = []
    for _ in range(rounds):
        start = time.process_time()
        act()
        times.append(time.process_time() - start)
    return min(times)


if __name__ == "__main__":
    main()
