"""What epsilon means: the source's table of beliefs, its two figures and its example, beside ours."""

import math
from fractions import Fraction

from sourdine.accounting.approximate import known
from sourdine.accounting.explain import (
    EPSILONS,
    PRIORS,
    Curve,
    explain_guarantee,
    posterior_bounds,
    posterior_table,
)
from sourdine.accounting.explain.explanation import PREMIUM
from sourdine.accounting.explain.words import money_up
from sourdine.core.display import Figure
from sourdine.core.distance import Distance
from sourdine.core.distributions import GaussianLaw
from sourdine.core.format import shorten_up
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Laplace
from sourdine.report.charts.beliefs import draw_bounds, draw_family
from sourdine.report.pages.ledger import FAMILY, GAP, belief_tables
from sourdine.report.view import Section, TextTable
from sourdine_reproduction.registry import ClaimVerdict, Result, Settings, experiment, judge
from sourdine_reproduction.statements import Standing

# greatest beliefs in per cent, as printed: a row for each belief before, a column for each epsilon
PRINTED = (
    ("1.01", "1.05", "1.10", "1.22", "1.64", "2.67", "6.95", "16.87"),
    ("2.02", "2.10", "2.21", "2.43", "3.26", "5.26", "13.10", "29.07"),
    ("5.05", "5.24", "5.50", "6.04", "7.98", "12.52", "28.00", "51.39"),
    ("10.09", "10.46", "10.94", "11.95", "15.48", "23.20", "45.09", "69.06"),
    ("25.19", "25.95", "26.92", "28.93", "35.47", "47.54", "71.12", "87.00"),
    ("50.25", "51.25", "52.50", "54.98", "62.25", "73.11", "88.08", "95.26"),
    ("75.19", "75.93", "76.83", "78.56", "83.18", "89.08", "95.68", "98.37"),
    ("90.09", "90.44", "90.86", "91.66", "93.69", "96.07", "98.52", "99.45"),
    ("95.05", "95.23", "95.45", "95.87", "96.91", "98.10", "99.29", "99.74"),
    ("98.02", "98.10", "98.19", "98.36", "98.78", "99.25", "99.72", "99.90"),
    ("99.01", "99.05", "99.09", "99.18", "99.39", "99.63", "99.86", "99.95"),
)
_ONE = math.log(3)  # the epsilon of the survey with two coins, for the figure with one epsilon
_DELTA = 1e-5
_HAIR = 1.3e-5  # by which randomized response may exceed epsilon 1 and still be (1, 1e-5)-DP


@experiment("meaning", "What epsilon means: beliefs before and after an answer")
def run(settings: Settings) -> Result:
    """Compare every printed number, and what the sources say around them."""
    return Result(
        name="meaning",
        title="What ε means",
        lead=(
            "The source bounds what somebody may believe after an answer by what they believed before and by "
            "ε. Its table, figures and example are done again here, with what has to be said otherwise."
        ),
        verdicts=(_table(), _bounds(), _premium(), _variation(), _delta(), _sum(), _density()),
        sections=(_beliefs(), _curves(), _losses()),
    )


def _table() -> ClaimVerdict:
    cells = [cell for row in PRINTED for cell in row]
    ours = [f"{100 * bounds.upper:.2f}" for row in posterior_table() for bounds in row]
    equal = sum(printed == cell for printed, cell in zip(cells, ours, strict=True))
    return judge(
        "thesis.beliefs",
        finding=f"{equal} of {len(cells)} equal to the printed digit",
        standing=Standing.REPRODUCED if equal == len(cells) else Standing.WRONG,
    )


def _bounds() -> ClaimVerdict:
    return judge(
        "thesis.bounds",
        finding="the same, with ≤",
        standing=Standing.REPRODUCED,
        why="Randomized response and Laplace noise reach both ends, so the inequalities are not strict.",
    )


def _premium() -> ClaimVerdict:
    at_most = explain_guarantee(0.01).premium
    return judge(
        "thesis.premium",
        finding=f"at most {money_up(at_most)} on average, from {PREMIUM:,}",
        standing=Standing.REPRODUCED,
        why="e^ε bounds the mean over the noise. The source rounds e^0.01 down to 1.01.",
    )


def _variation() -> ClaimVerdict:
    epsilon = 1.0
    exact = Curve.of_loss(PrivacyLoss.pure(epsilon)).advantage
    return judge(
        "thesis.variation",
        finding=f"(e^ε − 1)/(e^ε + 1); so {exact:.4f} at ε = {epsilon:g}",
        standing=Standing.WRONG,
        why="As printed it is negative. Even 1 − e^−ε, which was meant, is larger than what is true.",
    )


def _delta() -> ClaimVerdict:
    above = float(PrivacyLoss.pure(1 + _HAIR).remove.survival(1.0).p)
    return judge(
        "notes.loss",
        finding=f"can be {1 - above:.3f} at ε = 1 and δ = 1e-5",
        standing=Standing.WRONG,
        why=(
            "δ bounds an excess of probability over e^ε, not a probability. Randomized response a hair above "
            "1 is within (1, 1e-5), and its loss is above 1 nearly three times in four."
        ),
    )


def _sum() -> ClaimVerdict:
    epsilon = Fraction(1, 4)
    exact = Laplace(scale=1 / epsilon).loss(Distance.l1(1, coordinates=1)).epsilon
    return judge(
        "thesis.sum",
        finding=f"ε; so {float(exact):g} at ε = {float(epsilon):g}",
        standing=Standing.WRONG if exact == epsilon else Standing.REPRODUCED,
        why="Noise of scale 1/ε on a sum that one record moves by 1 is ε-private, as the lines before it "
        "show.",
    )


def _density() -> ClaimVerdict:
    return judge(
        "thesis.density",
        finding="(2λ)^−d exp(−‖v‖₁/λ)",
        standing=Standing.WRONG,
        why="As printed it integrates to (2λ)^(d−1), which is 1 in one dimension only.",
    )


def _beliefs() -> Section:
    rows = []
    for prior, printed, bounds in zip(PRIORS, PRINTED, posterior_table(), strict=True):
        our_cells = [f"{100 * each.upper:.2f}" for each in bounds]
        cells = [a if a == b else f"{a}, ours {b}" for a, b in zip(printed, our_cells, strict=True)]
        rows.append((f"{100 * prior}", *cells))
    return Section(
        title="The table",
        tables=(
            TextTable(
                name="printed",
                title="Greatest belief after an answer, in %, by the belief before and by ε: as printed",
                columns=("before", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)),
                rows=tuple(rows),
                note="Where ours differs in a printed digit, the cell says so.",
            ),
            *belief_tables(),
        ),
    )


def _curves() -> Section:
    bounds = posterior_bounds(0.5, _ONE)
    return Section(
        title="The figures",
        figures=(
            Figure(
                title=(
                    f"At ε = ln 3, belief moves from 50{GAP}% to between {100 * bounds.lower:.0f}{GAP}% and "
                    f"{100 * bounds.upper:.0f}{GAP}%"
                ),
                chart=draw_bounds(_ONE),
                note="The survey with two coins has this ε.",
            ),
            Figure(
                title="Small ε keep belief near the diagonal; from ε = 3 on, doubt can nearly vanish",
                chart=draw_family(FAMILY),
                note="The greatest belief lies above the diagonal, the least below.",
            ),
        ),
    )


def _losses() -> Section:
    """How often the loss exceeds epsilon, for mechanisms that are exactly (epsilon, 1e-5)-DP."""
    rows = []
    for mu in (0.25, 1.0, 4.0):
        law = GaussianLaw(mu)
        epsilon = _epsilon(law)
        rows.append((f"Gaussian noise, μ = {mu:g}", epsilon, _DELTA, float(law.survival(epsilon).p)))
    near = PrivacyLoss.pure(1 + _HAIR)
    exact = near.remove.survival(1.0)
    rows.append(("randomized response, a hair above 1", 1.0, _DELTA, float(exact.p)))
    bound = Curve.of_loss(known(1, _DELTA)).exceeding(1 - math.log1p(-0.01))
    return Section(
        title="What δ is not",
        paragraphs=(
            "One of the sources reads (ε, δ) as: the loss of an answer is at most ε with probability 1 − δ. "
            "These mechanisms are (ε, δ)-differentially private, and their losses exceed ε more often.",
            "What does follow: for every t > 0 the loss is above ε + t with probability δ/(1 − e^−t) at "
            f"most. With ε = 1 and t = 0.01 that is {shorten_up(bound, 3)}.",
        ),
        tables=(
            TextTable(
                name="losses",
                title="How often the loss exceeds ε",
                columns=("mechanism", "ε", "δ", "probability that the loss exceeds ε"),
                rows=tuple(rows),
            ),
        ),
    )


def _epsilon(law: GaussianLaw) -> float:
    """The least epsilon at delta 1e-5, by bisection on the profile."""
    low, high = 0.0, 100.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (low, middle) if float(law.profile(middle)) <= _DELTA else (middle, high)
    return high
