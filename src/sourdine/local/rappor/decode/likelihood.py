"""How likely each report is for each candidate, beside one that sets no bit at all."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb

from sourdine.core.errors import InvalidParameter
from sourdine.local.rappor.basic import BasicOracle
from sourdine.local.rappor.bloom import packed_filters
from sourdine.local.rappor.decode.decoding import Candidates
from sourdine.local.rappor.rappor import BloomOracle
from sourdine.local.rappor.responses import Rows

Floats = NDArray[np.float32]
_MOST = 1 << 28  # numbers that are held in memory


def likelihoods(oracle: BloomOracle | BasicOracle, rows: Rows, candidates: Candidates | None) -> Floats:
    """Reports by candidates, and a column for words that are no candidates at the end.

    Each bit that a candidate sets multiplies by q*/p* where it is reported as 1 and (1-q*)/(1-p*) where it is
    not. A word that is no candidate sets bits anywhere: the mean of that over all filters, by `unlisted`.
    Categories are all listed, so that the last column is 0 there.
    """
    rows = oracle.unpack(np.asarray(rows, np.uint8).reshape(-1, oracle.width))
    if not len(rows):
        raise InvalidParameter("There are no reports to decode. Collect some first.")
    width = (oracle.categories if isinstance(oracle, BasicOracle) else _count(oracle, candidates)) + 1
    if len(rows) * width > _MOST:
        raise InvalidParameter(
            f"{len(rows)} reports of {width - 1} candidates are more than fit in memory at once. Decode the "
            "counts by least squares, and then some reports with the words that were found."
        )
    one, zero = oracle.channel
    yes, no = np.log(one / zero), np.log((1 - one) / (1 - zero))
    out = np.empty((len(rows), width), np.float32)
    if isinstance(oracle, BasicOracle):
        bits = np.unpackbits(rows, axis=1, count=oracle.size)
        out[:, :-1] = np.exp(np.where(bits, yes, no))
        out[:, -1] = 0
        return out
    assert candidates is not None
    cohorts, packed = oracle.split(rows)
    filters = np.unpackbits(packed_filters(candidates.positions, oracle.bits), axis=2, count=oracle.bits)
    anywhere = unlisted(oracle.bits, oracle.hashes, float(np.exp(yes)), float(np.exp(no)))
    for cohort in np.unique(cohorts):
        these = np.flatnonzero(cohorts == cohort)
        set_ = np.unpackbits(packed[these], axis=1, count=oracle.bits) > 0
        logs = np.where(set_, np.float32(yes), np.float32(no))
        out[these, :-1] = np.exp(logs @ filters[:, cohort].T.astype(np.float32))
        out[these, -1] = anywhere[set_.sum(axis=1)]
    return out


def unlisted(bits: int, hashes: int, yes: float, no: float) -> NDArray[np.float64]:
    """The mean likelihood of a word whose hashes fall anywhere, by the number u of ones in the report.

    With h hashes on k bits, d different ones are set with the probability of throwing h balls into k boxes
    and hitting d; of those, j are among the u ones with the hypergeometric probability.
    """
    hit = np.zeros(hashes + 1)
    hit[0] = 1.0
    for _ in range(hashes):
        again = hit * np.arange(hashes + 1) / bits
        again[1:] += hit[:-1] * (1 - np.arange(hashes) / bits)
        hit = again
    ones = np.arange(bits + 1)
    out = np.zeros(bits + 1)
    for d in range(1, hashes + 1):
        for j in range(d + 1):
            ways = comb(ones, j) * comb(bits - ones, d - j) / comb(bits, d)
            out += hit[d] * ways * yes**j * no ** (d - j)
    return out


def _count(oracle: BloomOracle, candidates: Candidates | None) -> int:
    if candidates is None:
        raise InvalidParameter("Reports of words need candidates to decode. List the words to look for.")
    candidates.fits(oracle)
    return len(candidates.words)
