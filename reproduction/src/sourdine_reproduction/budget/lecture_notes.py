"""The mechanisms and the composition of the lecture notes, with numbers put in."""

import math
from fractions import Fraction

from sourdine.accounting import PLD, Approximate, advanced_composition, group, known, noise_for, parallel
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import GaussianLaw
from sourdine.core.format import plain, shorten_up
from sourdine.core.lazy import ndtri
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Laplace
from sourdine.report.view import Cell, Section, TextTable
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

DELTA = 1e-5
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0)


def reproduce(settings: Settings) -> ExperimentPart:
    """Gaussian, Laplace, composition and groups: the printed formulas beside the right ones."""
    parts = [
        part() for part in settings.watch("the lecture notes", (_gaussian, _errors, _composition, _groups))
    ]
    section = Section(
        title="The lecture notes",
        paragraphs=(
            "The notes state the Gaussian and the Laplace mechanism, their errors, simple and parallel "
            "composition, and group privacy. Each row puts numbers into a printed formula and asks what is "
            "true. Sensitivities are 1.",
        ),
        tables=tuple(table for _, table in parts),
    )
    return ExperimentPart(tuple(verdict for verdicts, _ in parts for verdict in verdicts), section)


def printed_sigma(epsilon: float, delta: float) -> float:
    """The notes print sqrt(2 log(1.25/delta))/epsilon as the variance, so this is its root."""
    return math.sqrt(textbook_sigma(epsilon, delta))


def textbook_sigma(epsilon: float, delta: float) -> float:
    """sqrt(2 log(1.25/delta))/epsilon, proven for epsilon below 1 (Dwork and Roth 2014, theorem A.1)."""
    return math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def _gaussian() -> tuple[tuple[ClaimVerdict, ...], TextTable]:
    rows: list[tuple[Cell, ...]] = []
    worst_printed = worst_textbook = 0.0
    fails = math.inf
    for epsilon in EPSILONS:
        printed, textbook = printed_sigma(epsilon, DELTA), textbook_sigma(epsilon, DELTA)
        deltas = [float(GaussianLaw(1 / sigma).profile(epsilon)) for sigma in (printed, textbook)]
        worst_printed, worst_textbook = max(worst_printed, deltas[0]), max(worst_textbook, deltas[1])
        fails = min(fails, epsilon) if deltas[1] > DELTA else fails
        rows.append((epsilon, printed, deltas[0], textbook, deltas[1], noise_for(epsilon, DELTA, 1.0, 1)))
    verdicts = (
        judge(
            "notes.gaussian",
            finding=f"δ up to {worst_printed:.2g} instead of {plain(DELTA)}",
            standing=_false(worst_printed > DELTA),
            why="The formula is the standard deviation, not the variance. As a standard deviation, too, it "
            f"is proven for ε below 1 only: from ε = {fails:g} on, δ is up to {worst_textbook:.2g}.",
        ),
    )
    table = TextTable(
        name="gaussian",
        title=f"Gaussian noise for (ε, δ = {plain(DELTA)}): three standard deviations",
        columns=("ε", "σ, as printed", "true δ of it", "σ, textbook", "true δ of that", "least σ"),
        rows=tuple(rows),
    )
    return verdicts, table


def _errors() -> tuple[tuple[ClaimVerdict, ...], TextTable]:
    """What the largest of K errors stays within with probability 1 - beta, in units of Delta/epsilon."""
    rows: list[tuple[Cell, ...]] = []
    laplace_holds = gaussian_holds = True
    loosest = 1.0
    sigma = math.sqrt(2 * math.log(1.25 / DELTA))
    for count, beta in ((1, 0.05), (10, 0.05), (100, 0.05), (1, 0.6)):
        inside = (1 - beta) ** (1 / count)  # what each of the K errors must keep to
        bound, exact = math.log(count / beta), -math.log(1 - inside)
        printed, right = sigma * math.log(count / beta), sigma * math.sqrt(2 * math.log(count / beta))
        truth = sigma * float(ndtri((1 + inside) / 2))
        laplace_holds &= exact <= bound
        gaussian_holds &= truth <= printed
        loosest = max(loosest, printed / truth)
        rows.append((count, beta, bound, exact, printed, right, truth))
    scale = Fraction(10)  # counts at epsilon 1/10
    quantile = Laplace(scale=scale).error(0.95)
    mean = 1 / (float(scale) * math.sinh(1 / scale))  # of discrete Laplace noise, in scales
    verdicts = (
        judge(
            "notes.laplace.mean",
            finding=f"{mean:.4f} Δ/ε for counts at ε = 0.1",
            standing=Standing.REPRODUCED if mean <= 1 else Standing.WRONG,
        ),
        judge(
            "notes.laplace.largest",
            finding=f"K = 1, β = 0.05: exactly {math.log(20):.3f} Δ/ε, which is the bound",
            standing=Standing.REPRODUCED if laplace_holds else Standing.WRONG,
            why=f"For real numbers. Counts move in whole steps: at ε = 0.1 they keep to {quantile:g}, the "
            f"next whole number after {math.log(20) * scale:.2f}.",
        ),
        judge(
            "notes.gaussian.largest",
            finding=f"fails at K = 1, β = 0.6; elsewhere up to {loosest:.1f} times the truth",
            standing=_false(not gaussian_holds),
            why="The tail is σ sqrt(2 log(K/β)).",
        ),
    )
    table = TextTable(
        name="errors",
        title=f"Largest of K errors, in units of Δ/ε; Gaussian at δ = {plain(DELTA)}",
        columns=(
            "K",
            "β",
            "Laplace, bound",
            "Laplace, exact",
            "Gaussian, as printed",
            "Gaussian, corrected bound",
            "Gaussian, exact",
        ),
        rows=tuple(rows),
    )
    return verdicts, table


def _composition() -> tuple[tuple[ClaimVerdict, ...], TextTable]:
    each, slack = 0.1, 1e-6
    rows: list[tuple[Cell, ...]] = []
    optimal, whole = Approximate(), PLD()
    noise = Laplace(scale=Fraction(1000)).loss(Distance.l1(100, coordinates=1))
    hundred = math.inf
    for count in (10, 100, 1000):
        best = optimal.epsilon(optimal.repeat(optimal.lift(PrivacyLoss.pure(each)), count), slack)
        hundred = best.upper if count == 100 else hundred
        laplace = whole.epsilon(whole.repeat(whole.lift(noise), count), slack)
        advanced = float(advanced_composition(each, 0, count, slack).epsilon)
        rows.append((count, each * count, advanced, best.upper, laplace.upper))
    added, replaced = (
        float(parallel([PrivacyLoss.pure(1, neighbours=relation)] * 4).epsilon)
        for relation in (Neighbours.ADD_REMOVE, Neighbours.REPLACE)
    )
    verdicts = (
        judge(
            "notes.sum",
            finding=f"{shorten_up(hundred)} at δ = {plain(slack)}",
            standing=Standing.LOOSE if hundred < 10 else Standing.REPRODUCED,
            why="The sum is what holds at δ = 0; optimal composition uses a small δ.",
        ),
        judge(
            "notes.parallel",
            finding=f"{added:g} ε if a person is added or removed, {replaced:g} ε if one is replaced",
            standing=Standing.REPRODUCED if added == 1 else Standing.WRONG,
            why="The notes' neighbours are add-remove. A person who is replaced may touch two cells.",
        ),
    )
    table = TextTable(
        name="composition",
        title=f"k mechanisms of ε = {each:g} together, at δ = {plain(slack)}",
        columns=("k", "sum", "advanced composition", "optimal composition", "Laplace noise, whole law"),
        rows=tuple(rows),
        note="Advanced composition is worse than the sum for few mechanisms. The last column is for sums "
        "that one person moves by 100, with noise of scale 1000.",
    )
    return verdicts, table


def _groups() -> tuple[tuple[ClaimVerdict, ...], TextTable]:
    epsilon, delta = 0.1, 1e-6
    rows: list[tuple[Cell, ...]] = []
    printed = ours = 0.0
    for size in (2, 5, 10, 50):
        printed = size * math.exp(size * epsilon) * delta
        ours = float(group(known(epsilon, delta), size).profile(size * epsilon))
        rows.append((size, size * epsilon, printed, ours))
    verdict = judge(
        "notes.group",
        finding=f"{ours:.2g}",
        standing=Standing.LOOSE if ours < printed else Standing.WRONG,
        why="δ (e^{Kε} - 1)/(e^ε - 1), which is the sum before it is bounded.",
    )
    table = TextTable(
        name="groups",
        title=f"Groups of K people, when one has (ε = {epsilon:g}, δ = {plain(delta)})",
        columns=("K", "ε of the group", "δ, as printed", "δ, tight"),
        rows=tuple(rows),
    )
    return (verdict,), table


def _false(shown: bool) -> Standing:
    """A claim that numbers refute, if they do."""
    return Standing.WRONG if shown else Standing.REPRODUCED
