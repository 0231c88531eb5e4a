"""How often intervals of local reports hold the truth, and how wide they are.

    python -m tests.campaigns.local_intervals --quick

Nothing is simulated but for votes in shared blocks from many people: how many reports support a category is a
sum of two binomials, whose law is summed here by convolution. The worst number of people that hold the
category counts. Beside ours are the score intervals of Wilson 1927, and the least mean width that any
interval of this confidence can have (Pratt 1961), the number of people being equally likely to be any.
"""

import argparse
from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.signal import fftconvolve
from scipy.special import ndtri
from scipy.stats import binom

from benchmarks.finding import verdict
from sourdine.local import FrequencyOracle, HadamardResponse
from sourdine.local.choose import FREQUENCY, frequency_oracle
from sourdine.local.intervals.inversion import people_behind

CONFIDENCE = 0.95
LEAST = CONFIDENCE - 0.01  # what every case must reach
CATEGORIES, EPSILONS = (2, 5, 20, 100, 1000), (0.1, 0.5, 1.0, 1.6, 2.0, 4.0, 8.0, 12.0)
PEOPLE = (30, 300, 10_000)
FEW = (0, 1, 2, 3, 5, 10, 22, 50, 100, 300, 1000, 3000, 5000, 9000, 10_000)  # of many people
DRAWS = 20_000
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Case:
    """Coverage of ours and of the score interval at its worst, and mean widths."""

    def __init__(self, ours: Floats, score: Floats, width: float, score_width: float, optimum: float) -> None:
        self.ours, self.score = float(ours.min()), float(score.min())
        self.width, self.score_width, self.optimum = width, score_width, optimum


def holders(people: int) -> Ints:
    """Numbers of people with the category that are looked at: all of few people."""
    return np.arange(people + 1) if people <= 300 else np.array([m for m in FEW if m <= people])


def law(p: float, q: float, m: int, people: int) -> Floats:
    """P[S = s] for S = Bin(m, p) + Bin(people - m, q), from 0 on."""
    first, second = (
        binom.pmf(np.arange(count + 1), count, rate) for count, rate in ((m, p), (people - m, q))
    )
    return np.maximum(np.asarray(fftconvolve(first, second)), 0.0)


def score(value: Floats, none: Floats | float, slope: float, level: float) -> tuple[Floats, Floats]:
    """The interval of shares f with (value - f)^2 <= z^2 (none + slope f), within 0 and 1."""
    square = float(ndtri((1 + level) / 2)) ** 2
    middle = value + square * slope / 2
    reach = np.sqrt(np.maximum(middle**2 - value**2 + square * none, 0.0))
    return np.clip(middle - reach, 0, 1), np.clip(middle + reach, 0, 1)


@cache
def coins(p: float, q: float, people: int) -> Case:
    """The case of a channel."""
    seen, tried = np.arange(people + 1), holders(people)
    found = people_behind(p, q, seen, people, CONFIDENCE)
    none, all_ = (rate * (1 - rate) / (people * (p - q) ** 2) for rate in (q, p))
    low, high = score((seen / people - q) / (p - q), none, all_ - none, CONFIDENCE)
    laws = np.array([law(p, q, int(m), people) for m in tried])
    m = tried[:, None]
    ours = (laws * ((found.lower <= m) & (m <= found.upper))).sum(axis=1)
    theirs = (laws * ((low <= m / people + 1e-12) & (m / people <= high + 1e-12))).sum(axis=1)
    seen_law = laws.mean(axis=0)
    optimum = pratt(laws, seen_law) / people if len(tried) == people + 1 else np.nan
    width = float(seen_law @ (found.upper - found.lower)) / people
    return Case(ours, theirs, width, float(seen_law @ (high - low)), optimum)


def pratt(laws: Floats, seen: Floats) -> float:
    """The least mean of how many numbers an interval holds, less one: by Neyman and Pearson, each in turn."""
    total = 0.0
    for each in laws:
        order = np.argsort(-each / np.maximum(seen, 1e-300))
        gained = np.cumsum(each[order])
        last = min(int(np.searchsorted(gained, CONFIDENCE)), len(gained) - 1)
        end = order[last]
        part = 1 - max(0.0, gained[last] - CONFIDENCE) / max(each[end], 1e-300)
        total += float(seen[order[:last]].sum() + part * seen[end])
    return total - 1


def votes(oracle: HadamardResponse, people: int) -> Case:
    """The case of several blocks, simulated: shares of the category and of all of its block."""
    made = oracle._votes
    steps, generator = made.steps, np.random.default_rng(20_240_501)
    alone = bool(oracle._alone.all())
    ours, theirs, widths, score_widths = [], [], [], []
    for share in (0.0, 0.01, 0.1, 0.5, 0.9, 1.0):
        for block in (share,) if alone else (share, (share + 1) / 2, 1.0):
            m, inside = round(share * people), round(block * people)
            counts = (m, inside - m, people - inside)
            drawn = np.sum(
                [
                    generator.multinomial(n, [step.up, step.down, 1 - step.up - step.down], DRAWS)
                    for n, step in zip(counts, steps, strict=True)
                ],
                axis=0,
            )
            signs, totals = drawn[:, 0] - drawn[:, 1], drawn[:, 0] + drawn[:, 1]
            found = made.people(signs, totals, np.full(DRAWS, alone), people, CONFIDENCE)
            mass = np.clip((totals / people - made.other) / (made.own - made.other), 0, 1)
            none = (mass * made.own + (1 - mass) * made.other) / (made.lean**2 * people)
            low, high = score(signs / (people * made.lean), none, -1 / people, CONFIDENCE)
            ours.append(float(((found.lower <= m) & (m <= found.upper)).mean()))
            theirs.append(float(((low <= m / people + 1e-12) & (m / people <= high + 1e-12)).mean()))
            widths.append(float((found.upper - found.lower).mean()) / people)
            score_widths.append(float((high - low).mean()))
    return Case(
        np.array(ours), np.array(theirs), float(np.mean(widths)), float(np.mean(score_widths)), np.nan
    )


def case(oracle: FrequencyOracle, people: int) -> Case:
    """How an oracle does with so many people."""
    if isinstance(oracle, HadamardResponse) and oracle.blocks > 1:
        return votes(oracle, people)
    return coins(*(float(each) for each in oracle.channel), people)


def oracles(
    categories: tuple[int, ...], epsilons: tuple[float, ...]
) -> Iterator[tuple[str, FrequencyOracle]]:
    """Every oracle with every number of categories and epsilon."""
    for name in FREQUENCY:
        for k in categories:
            for epsilon in epsilons:
                yield name, frequency_oracle(name, epsilon=epsilon, categories=k)[0]


def report(console: Console, quick: bool = False) -> None:
    """The worst case of each oracle and number of people, then the worst of all."""
    categories, epsilons = ((2, 20, 1000), (0.1, 1.6, 8.0, 12.0)) if quick else (CATEGORIES, EPSILONS)
    shown = Table(title=f"Intervals of {100 * CONFIDENCE:g} %: coverage at its worst, and mean widths")
    columns = (
        "oracle",
        "people",
        "worst",
        "at k",
        "at epsilon",
        "score interval",
        "width/score",
        "width/best",
    )
    for name in columns:
        shown.add_column(name, justify="left" if name == "oracle" else "right")
    worst = 1.0
    for oracle_name in FREQUENCY:
        made = [oracle for name, oracle in oracles(categories, epsilons) if name == oracle_name]
        for people in PEOPLE:
            found = [(case(oracle, people), oracle) for oracle in made]
            least, at = min(found, key=lambda each: each[0].ours)
            wide = [each.width / each.score_width for each, _ in found if each.score_width > 1e-6]
            best = [each.width / each.optimum for each, _ in found if each.optimum > 1e-6]
            theirs = min(each.score for each, _ in found)
            ratio = f"{np.mean(best):.3f}" if best else ""
            epsilon = f"{float(at.epsilon):g}"
            shown.add_row(
                oracle_name, f"{people:,}", f"{least.ours:.4f}", str(at.categories), epsilon,
                f"{theirs:.4f}", f"{np.median(wide):.3f}", ratio,
            )  # fmt: skip
            worst = min(worst, least.ours)
    console.print(shown)
    told = f"intervals hold the truth {worst:.4f} of the time at their worst (target {LEAST:g})"
    verdict(console, worst >= LEAST, told)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns.local_intervals", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer categories and epsilons")
    report(Console(width=118), parser.parse_args().quick)


if __name__ == "__main__":
    main()
