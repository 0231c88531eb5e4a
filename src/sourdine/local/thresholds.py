"""The probabilities of an oracle's draws as whole numbers, for clients that have neither floats nor balls.

A client draws as `sample` does for one answer: a uniform number of as many bits as it takes is compared
with cumulative probabilities. Those are sent beside a question, each as floor(2^256 P[X <= i]) in
hexadecimal digits, for all outcomes but the last. They are no part of the question, since epsilon fixes
them: a client with big integers computes them and compares (docs/how_to/browser_client.md).
"""

from fractions import Fraction

from sourdine.core.errors import InvalidParameter
from sourdine.core.random.packed import Odds
from sourdine.core.random.selection import plan
from sourdine.core.random.tables import WeightTerms, floors
from sourdine.local.frequency.hadamard import HadamardResponse
from sourdine.local.frequency.hashing import GRR, OLH
from sourdine.local.frequency.projective import ProjectiveGeometry
from sourdine.local.frequency.subset import SubsetSelection
from sourdine.local.frequency.unary import OUE, SUE
from sourdine.local.numeric.duchi import Duchi
from sourdine.local.numeric.piecewise import Hybrid, Piecewise, SquareWave
from sourdine.local.oracle import Oracle
from sourdine.local.rappor.basic import BasicOneTimeRappor, BasicRappor
from sourdine.local.words.tree import WordTree

_BITS = 256
Thresholds = dict[str, list[str]]


def thresholds(oracle: Oracle) -> Thresholds:
    """For each law that a report is drawn by, its cumulative probabilities in units of 2^-256.

    Subset selection adds the plan of its random sets, four whole numbers that change no probability but which
    bits are used for what. RAPPOR is drawn by the fractions in its question alone. An oracle that only Python
    draws is refused.

    >>> from sourdine.local import GRR
    >>> thresholds(GRR(epsilon=1, categories=2))["truth"][0][:16]  # 1/(1 + e) of 2^256
    '44d9585152ea1935'
    """
    match oracle:
        case GRR(epsilon=epsilon, categories=k):
            return {"truth": _odds(epsilon, Fraction(1, k - 1))}
        case OLH(epsilon=epsilon, groups=g) | WordTree(epsilon=epsilon, groups=g):
            return {"shift": _written(WeightTerms((1,) * g, (epsilon, *(0,) * (g - 1))))}
        case HadamardResponse(epsilon=epsilon, blocks=blocks):
            others = (2 * (blocks - 1),) if blocks > 1 else ()
            return {"way": _written(WeightTerms((1, 1, *others), (epsilon, *(0,) * (1 + len(others)))))}
        case ProjectiveGeometry(epsilon=epsilon):
            return {"touching": _odds(epsilon, oracle.touching)}
        case SUE(epsilon=epsilon):
            return {"noise": _digits(-epsilon / 2), "truth": _odds(epsilon / 2, Fraction(1))}
        case OUE(epsilon=epsilon):
            return {"noise": _digits(-epsilon)}
        case SubsetSelection(epsilon=epsilon, categories=k, size=d):
            return {"among": _odds(epsilon, Fraction(d, k - d)), "plan": _plan(d, k)}
        case BasicRappor() | BasicOneTimeRappor():
            return {}
        case Duchi(epsilon=epsilon):
            return {"truth": _odds(epsilon, Fraction(1))}
        case Piecewise() | SquareWave():
            return {"inside": _window(oracle)}
        case Hybrid(epsilon=epsilon):
            share = Fraction(oracle.share or 0)
            truth, slides = _odds(epsilon, Fraction(1)), WeightTerms((1 - share, share), (0, 0))
            return {"inside": _window(oracle), "slides": _written(slides), "truth": truth}
    raise InvalidParameter(
        f"{type(oracle).__name__} is drawn in Python alone. For browsers ask by another oracle of "
        "sourdine.local, such as GRR for categories or Piecewise for numbers."
    )


def _written(weights: WeightTerms) -> list[str]:
    return [f"{floor:x}" for floor in floors(weights, _BITS)]


def _odds(log_odds: Fraction, factor: Fraction) -> list[str]:
    """The law of `exact.bernoulli_odds`."""
    return _written(WeightTerms((1, factor), (0, log_odds)))


def _digits(log_odds: Fraction) -> list[str]:
    """The law of `packed.bernoulli_odds`, whose coins are true below the threshold."""
    return [f"{Odds(log_odds).first(_BITS):x}"]


def _window(oracle: Piecewise | SquareWave | Hybrid) -> list[str]:
    return _odds(oracle.epsilon, Fraction(oracle.window or 1, oracle.cells))


def _plan(size: int, categories: int) -> list[str]:
    begin = plan(size - 1, categories)
    return [str(int(each)) for each in (begin.numerator, begin.digits, begin.least, begin.most)]
