"""The most likely mixture of given distributions: expectation and maximisation, finished by Newton steps.

Over whole reports it pays where bits are reported with little noise.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sourdine.local.rappor.decode.decoding import STANDARD, Candidates, Decoding, DecodingTerms
from sourdine.local.rappor.decode.likelihood import likelihoods
from sourdine.local.rappor.decode.regression import solve_bounded
from sourdine.local.rappor.rappor import BloomOracle
from sourdine.local.rappor.responses import Rows

Floats = NDArray[np.float64]
_WARM = 20  # plain steps at first
_ROUNDS = 100
_GAP = 1e-6  # how far the mean log-likelihood may be from its highest
_NOISE = 1e-7  # of the mean log-likelihood in single precision
_RIDGE = 1e-6  # relative, for the noise of the information
_LEAST = 1e-9  # a share of 0, that can still grow


def most_likely(
    step: Callable[[Floats], tuple[Floats, float]], information: Callable[[Floats], Floats], start: Floats
) -> Floats:
    """The shares of highest mean log-likelihood.

    `step` is one of expectation and maximisation (Dempster, Laird, Rubin 1977): it returns the next shares
    and the mean log-likelihood of the present. It is slow where shares go to 0. So after some of them, the
    quadratic around the present shares is solved with no share below 0, by the information a report (Kim,
    Carbonetto, Stephens, Anitescu 2020), and taken as far as it is a gain. A step multiplies each share by
    its slope; the log-likelihood is concave, so that the largest factor less 1 bounds what is left to gain.
    """
    shares = start
    for _ in range(_WARM):
        shares = step(shares)[0]
    shares = np.maximum(shares, _LEAST)
    first, likely = step(shares)
    for _ in range(_ROUNDS):
        slope = first / shares
        if np.max(slope) - 1 < _GAP:
            break
        curve = information(shares)
        curve[np.diag_indices(len(curve))] *= 1 + _RIDGE
        none = np.zeros(len(shares))
        move = solve_bounded(curve, curve @ shares + slope - 1, none, none, shares) - shares
        for _ in range(20):
            guess = np.maximum(shares + move, _LEAST)
            after, reached = step(guess)
            if reached - likely >= (guess - shares).sum() - _NOISE:
                break
            move /= 2
        shares, first, likely = guess, after, reached
    total: Floats = first / first.sum()
    return total


def spreads(information: Floats) -> Floats:
    """Standard errors of shares that add up to 1, from the information: the sum of g g' over scores g."""
    scale = 1 / np.sqrt(np.maximum(np.diag(information), 1e-300))
    scaled = information * scale[:, None] * scale + 1e-9 * np.eye(len(information))
    inverse = np.linalg.inv(scaled) * scale[:, None] * scale
    total = inverse.sum(axis=1)
    covariance = inverse - np.outer(total, total) / total.sum()
    return np.sqrt(np.maximum(np.diag(covariance), 0.0))


_INFORMING = 1 << 16  # reports that the information is measured on: a sample of all


def decode_by_expectation(
    oracle: BloomOracle, rows: Rows, candidates: Candidates, *, terms: DecodingTerms = STANDARD
) -> Decoding:
    """The most likely shares, from reports rather than from their counts.

    Counts forget which bits came together. For one-time RAPPOR that is a loss: their standard errors are
    1.25 to 1.5 times as large. With both responses there is hardly any. Errors are from the observed
    information.
    """
    likely = likelihoods(oracle, rows, candidates)
    count = len(likely)

    def step(shares: Floats) -> tuple[Floats, float]:
        density = likely @ shares.astype(np.float32)
        more = likely.T @ (1 / density)
        return shares * more.astype(np.float64) / count, float(np.log(density.astype(np.float64)).mean())

    def information(shares: Floats) -> Floats:
        scores = some / (some @ shares.astype(np.float32))[:, None]
        return (scores.T @ scores).astype(np.float64) / len(some)

    some = likely[:: -(-count // _INFORMING)]
    shares = most_likely(step, information, np.full(likely.shape[1], 1 / likely.shape[1]))
    return Decoding.normal(
        "expectation and maximisation",
        candidates.words,
        shares[:-1],
        spreads(count * information(shares))[:-1],
        unlisted=float(shares[-1]),
        reports=count,
        terms=terms,
    )
