"""The reports of local mechanisms, by what their estimates take for granted.

Which codes speak for a category, and the channel from values to codes, are what estimates are computed from.
A sampler that keeps to them makes reports that are estimated rightly.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.audit.textbook.dice import Dice, pick
from sourdine.local.estimate import Counts
from sourdine.local.frequency.hadamard import HadamardResponse
from sourdine.local.frequency.subset import SubsetSelection
from sourdine.local.frequency.supports import CodedOracle
from sourdine.local.frequency.unary import OUE, SUE, Unary
from sourdine.local.numeric.duchi import Duchi
from sourdine.local.numeric.oracle import ResolvedOracle
from sourdine.local.numeric.window import WindowOracle
from sourdine.local.rappor.basic import BasicOneTimeRappor, BasicRappor
from sourdine.local.rappor.rappor import OneTimeRappor, Rappor
from sourdine.local.words.tree import WordTree

Answers = NDArray[Any]


def draw_coded(mechanism: CodedOracle, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """A code that speaks for the category comes e^epsilon times as often as any other."""
    return _each(value, count, lambda truth: pick(_odds(mechanism, truth), count, dice))


def _odds(mechanism: CodedOracle, truth: int) -> NDArray[np.float64]:
    codes = np.arange(mechanism.codes)
    if isinstance(
        mechanism, HadamardResponse
    ):  # rows of signs, by the parity of the bits shared with columns
        left_out = mechanism.blocks * mechanism.columns - mechanism.codes  # column 0, of one block
        block, column = np.divmod(codes + left_out, mechanism.columns)
        row = 1 + truth // mechanism.blocks
        odd = np.array([bin(row & int(each)).count("1") % 2 for each in column])
        speaks = (block == truth % mechanism.blocks) & (odd == 0)
    else:
        alone = (Counts(mechanism.fingerprint, 1, one) for one in np.eye(mechanism.codes, dtype=np.int64))
        speaks = np.array([mechanism.supports(each)[truth] > 0 for each in alone])
    return np.where(speaks, math.exp(float(mechanism.epsilon)), 1.0)


def draw_unary(mechanism: Unary, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """Independent bits (Wang, Blocki, Li, Jha 2017): p for the true category, q for any other."""
    p, q = _chances(mechanism)

    def reports(truth: int) -> Answers:
        chances = np.full(mechanism.categories, q)
        chances[truth] = p
        return np.packbits(dice.random((count, len(chances))) < chances, axis=-1)

    return _each(value, count, reports)


def _chances(mechanism: Unary) -> tuple[float, float]:
    """p and q by the definition of each encoding, not by its own channel."""
    epsilon, kind = float(mechanism.epsilon), type(mechanism)
    if kind is SUE:
        half = 1 / (1 + math.exp(-epsilon / 2))
        return half, 1 - half
    if kind is OUE:
        return 0.5, 1 / (1 + math.exp(epsilon))
    raise NotImplementedError(f"{kind.__name__} has no chances in draw_unary. Write its p and q there.")


def draw_subset(mechanism: SubsetSelection, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """With the true category in it or not, all sets of the size are equally likely."""
    k, size = mechanism.categories, mechanism.size
    odds = math.exp(float(mechanism.epsilon)) * size

    def reports(truth: int) -> Answers:
        among = dice.random(count) < odds / (odds + k - size)
        order = dice.random((count, k))
        order[:, truth] = np.where(among, -1.0, 2.0)
        report = np.zeros((count, k), bool)
        np.put_along_axis(report, np.argsort(order, axis=-1)[:, :size], True, axis=-1)
        return np.packbits(report, axis=-1)

    return _each(value, count, reports)


def draw_duchi(mechanism: Duchi, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """The upper end as often as the value is near it, then a two-way randomized response."""
    upper = dice.random(count) < _share(mechanism, value)
    truthful = dice.random(count) < 1 / (1 + math.exp(-float(mechanism.epsilon)))
    return np.asarray(upper == truthful, np.int64)


def draw_resolved(mechanism: ResolvedOracle, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """The channel's row of a place; between two places, one of them by chance where the oracle rounds so."""
    place = _share(mechanism, value) * mechanism.cells
    below, rest = int(place), place - int(place)
    if not isinstance(mechanism, WindowOracle) or mechanism.parts == 1:
        below, rest = round(place), 0.0
    rows = mechanism.channel
    return pick((1 - rest) * rows[below] + rest * rows[min(below + 1, mechanism.cells)], count, dice)


def _share(mechanism: Duchi | ResolvedOracle, value: ArrayLike) -> float:
    """Where a value lies between the bounds."""
    return (float(np.asarray(value)) - float(mechanism.lower)) / float(mechanism.upper - mechanism.lower)


def draw_rappor(mechanism: Rappor | OneTimeRappor, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """A cohort by chance, and the Bloom filter of that cohort through both responses."""
    filters = np.stack(
        [
            np.unpackbits(mechanism.filter(value, cohort), count=mechanism.bits)
            for cohort in range(mechanism.cohorts)
        ]
    )
    cohort = dice.integers(0, mechanism.cohorts, count)
    rows = np.packbits(_answered(mechanism, filters[cohort], dice), axis=-1)
    return mechanism.with_cohorts(rows, cohort)


def draw_basic_rappor(
    mechanism: BasicRappor | BasicOneTimeRappor, value: ArrayLike, count: int, dice: Dice
) -> Answers:
    """One bit a category."""
    only = np.arange(mechanism.categories) == int(np.asarray(value))
    return np.packbits(_answered(mechanism, np.broadcast_to(only, (count, len(only))), dice), axis=-1)


def _answered(
    mechanism: Rappor | OneTimeRappor | BasicRappor | BasicOneTimeRappor, bits: NDArray[Any], dice: Dice
) -> NDArray[np.bool_]:
    """Erlingsson, Pihur, Korolova 2014: with chance f a fair coin for ever, then p or q anew."""
    lasting = np.where(dice.random(bits.shape) < float(mechanism.f), dice.random(bits.shape) < 0.5, bits > 0)
    if isinstance(mechanism, OneTimeRappor | BasicOneTimeRappor):
        return lasting
    return dice.random(bits.shape) < np.where(lasting, float(mechanism.q), float(mechanism.p))


def draw_words(mechanism: WordTree, value: ArrayLike, count: int, dice: Dice) -> Answers:
    """A prefix of random length, a random vector for each of its parts, and k-ary response to the product."""
    g, levels = mechanism.groups, mechanism.depth
    (parts,) = mechanism.parts([str(np.asarray(value))])
    level = dice.integers(0, levels, count)
    seeds = dice.integers(0, mechanism.seeds, (count, levels)) * (np.arange(levels) <= level[:, None])
    truth = np.zeros(count, np.int64)
    for i, part in enumerate(parts):
        truth ^= mechanism.space.dot(seeds[:, i], np.full(count, part))
    truthful = dice.random(count) < mechanism.channel.p
    other = (truth + dice.integers(1, g, count)) % g
    first = (level * g + np.where(truthful, truth, other)).astype(np.uint8)
    return np.concatenate([first[:, None], seeds.astype(">u2").view(np.uint8).reshape(count, -1)], axis=1)


def _each(value: ArrayLike, count: int, reports: Any) -> Answers:
    """One answer a value, or an answer for each of several."""
    truths = np.asarray(value)
    if truths.ndim == 0:
        return np.asarray(reports(int(truths)))
    return np.stack([reports(int(truth)) for truth in truths], axis=1)
