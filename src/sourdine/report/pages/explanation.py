"""The page that says what a guarantee means."""

import math
from dataclasses import dataclass
from typing import ClassVar

from sourdine.accounting.approximate import known
from sourdine.accounting.explain import (
    DEPLOYMENTS,
    EPSILONS,
    PRIORS,
    Curve,
    Explanation,
    posterior_table,
    sentences,
)
from sourdine.accounting.explain.deployments import UNITS_DIFFER
from sourdine.accounting.explain.explanation import COVER, FALSE_POSITIVES, PREMIUM, explain_guarantee
from sourdine.accounting.explain.words import (
    at_most,
    best_guess,
    money_up,
    moved,
    percent_down,
    percent_up,
    say_beliefs,
)
from sourdine.core.figure import Figure
from sourdine.core.format import plain, shorten_down, shorten_up
from sourdine.report.charts.beliefs import draw_beliefs, draw_family, draw_roc
from sourdine.report.pages.page import Page, Section
from sourdine.report.table import Cell, TextTable

FAMILY = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0)
_LEAST, _MOST = 0.01, 10.0  # the ends of the slider for epsilon
_PRIOR = 50
_FEW = 0.01
GAP = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True, kw_only=True)
class ExplanationPage(Page):
    """A page with sentences on top, and sliders for epsilon and for the belief before."""

    template: ClassVar[str] = "explanation.html"
    words: tuple[str, ...]
    live: str  # the sentence that follows the sliders: BEFORE, MOST and LEAST stand for numbers
    measure: str  # what the first slider sets
    own: str  # what it says of this guarantee, and what of others
    other: str
    start: float  # log10 of epsilon, like both ends
    lowest: float
    highest: float
    prior: int  # in per cent


def explanation_page(explanation: Explanation) -> ExplanationPage:
    """One page about one guarantee."""
    reach = min(max(explanation.reach, _LEAST), 1e3)
    return ExplanationPage(
        title=f"What ε = {shorten_up(explanation.epsilon.upper)} means",
        lead=_lead(explanation),
        sections=(
            _beliefs(explanation, reach),
            _belief_tables(explanation),
            _attacks(explanation),
            _premium(explanation),
            _deployed(),
            *_assumptions(explanation),
        ),
        words=sentences(explanation),
        live=say_beliefs(explanation, "BEFORE chances in 100", "MOST in 100", "LEAST in 100"),
        measure="ε for beliefs" if explanation.chance else "ε",
        own=_own(explanation),
        other=f"Another ε. All else on this page stays about {_claim(explanation)}.",
        start=math.log10(reach),
        lowest=math.log10(_LEAST),
        highest=math.log10(max(_MOST, reach)),
        prior=_PRIOR,
    )


def belief_tables() -> tuple[TextTable, TextTable]:
    """The greatest and the least beliefs, for the priors and epsilons of the source."""
    return (
        _belief_table("greatest", [[bounds.upper for bounds in row] for row in posterior_table()]),
        _belief_table("least", [[bounds.lower for bounds in row] for row in posterior_table()]),
    )


def _belief_table(name: str, beliefs: list[list[float]]) -> TextTable:
    return TextTable(
        name=name,
        title=f"{name.capitalize()} belief after an answer, in %, by the belief before and by ε",
        columns=("before", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)),
        rows=tuple(
            (f"{100 * prior}", *(f"{100 * belief:.2f}" for belief in row))
            for prior, row in zip(PRIORS, beliefs, strict=True)
        ),
        note="Rounded to the nearest hundredth. Without a δ; with one, at the ε that bounds beliefs.",
    )


def _claim(explanation: Explanation) -> str:
    delta = f", δ = {plain(explanation.delta)}" if explanation.delta else ""
    return f"ε = {shorten_up(explanation.epsilon.upper)}{delta}"


def _own(explanation: Explanation) -> str:
    """Where the slider starts; with a delta that is not the epsilon of the title."""
    if not explanation.chance:
        return f"This guarantee: {_claim(explanation)}."
    return (
        f"This guarantee: {_claim(explanation)}. In all but {at_most(explanation.chance)} cases at most, it "
        f"moves beliefs no further than ε = {shorten_up(explanation.reach, 3)} without a δ."
    )


def _lead(explanation: Explanation) -> str:
    lower = shorten_down(explanation.epsilon.lower)
    bracket = f" The least possible ε is at least {lower}." if explanation.epsilon.width else ""
    return (
        f"{explanation.subject[0].upper()}{explanation.subject[1:]}. It promises {_claim(explanation)} for "
        f"one {explanation.unit} ({explanation.neighbours} neighbours).{bracket}"
    )


def _beliefs(explanation: Explanation, reach: float) -> Section:
    here = explanation.posterior(0.5)
    rare = ""
    if explanation.chance:
        rare = (
            f" With a δ no bound holds for every answer. In all but {at_most(explanation.chance)} cases at "
            f"most, beliefs move as with ε = {shorten_up(explanation.reach, 3)}; the sliders start there."
        )
    return Section(
        title="What somebody may come to believe",
        paragraphs=(
            "An answer multiplies the odds of a suspicion by at most e^ε and divides them by at most as "
            "much, whatever somebody knows besides." + rare,
        ),
        figures=(
            Figure(
                title=f"From 50 in 100, this guarantee lets belief move to between {moved(here)}",
                chart=draw_beliefs(reach, _PRIOR / 100),
                note="The sliders above move this chart; its title stays about this guarantee.",
            ),
            Figure(
                title="Small ε keep belief near the diagonal; from ε = 3 on, doubt can nearly vanish",
                chart=draw_family(FAMILY),
                note="The greatest belief lies above the diagonal, the least below.",
            ),
        ),
    )


def _belief_tables(explanation: Explanation) -> Section:
    own: tuple[tuple[Cell, ...], ...] = tuple(
        (f"{100 * prior} %", percent_down(bounds.lower), percent_up(bounds.upper))
        for prior, bounds in ((prior, explanation.posterior(prior)) for prior in PRIORS)
    )
    return Section(
        title="Belief by belief",
        tables=(
            TextTable(
                name="own",
                title="Under this guarantee",
                columns=("belief before", "after, at least", "after, at most"),
                rows=own,
                note="To four digits, outwards; sentences tell the same in whole chances.",
            ),
            *belief_tables(),
        ),
    )


def _attacks(explanation: Explanation) -> Section:
    curve, best = explanation.curve, best_guess(explanation)
    curves = {"this guarantee": curve}
    if explanation.whole:
        point = known(explanation.epsilon.upper, explanation.delta, neighbours=explanation.neighbours)
        curves = {"from the whole curve of losses": curve, "from ε and δ alone": Curve.of_loss(point)}
    hits = float(curve.true_positives(_FEW))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            f"{100 * rate:g} %",
            percent_up(float(curve.true_positives(rate)), 3),
            percent_up(curve.precision(0.5, rate), 3),
        )
        for rate in FALSE_POSITIVES
    )
    return Section(
        title="What an attack can find",
        paragraphs=(
            "An attack sees the answers, and all other data if it likes, and says for each case whether the "
            f"suspicion is true. On cases of which half are true it is right in at most "
            f"{best}: an advantage of {shorten_up(curve.advantage, 2)} over a "
            "coin, where 1 is certainty and 0 is nothing.",
        ),
        tables=(
            TextTable(
                name="rates",
                title="The best attack, by how many false alarms it may raise",
                columns=("false positives", "true positives, at most", "alarms that are right, at most"),
                rows=rows,
                note="The last column is for cases of which half are true.",
            ),
        ),
        figures=(
            Figure(
                title=f"The best attack is right in at most {best} cases",
                chart=draw_roc(curves),
                note="ROC curve: no attack lies above it. The diagonal is blind guessing.",
            ),
            Figure(
                title=f"At 1{GAP}% false alarms it finds at most {percent_up(hits, 3)} of true cases",
                chart=draw_roc(curves, log=True, mark=_FEW),
                note="The same curve on logarithmic scales, where careful attacks live.",
            ),
        ),
    )


def _premium(explanation: Explanation) -> Section:
    others = [(f"{epsilon:g}", explain_guarantee(epsilon).premium) for epsilon in EPSILONS]
    own = (f"this guarantee ({shorten_up(explanation.epsilon.upper)})", explanation.premium)
    return Section(
        title="What taking part can cost",
        paragraphs=(
            f"Gertrude is insured for {COVER:,}. From the published results alone, her insurer would ask "
            f"{PREMIUM:,} a year. If she takes part herself, the average premium grows at most to "
            f"{money_up(explanation.premium)} under this guarantee: by the factor e^ε if ε is all that is "
            "known, by less if the whole curve of losses is. That is the price of her own record. What the "
            "study finds out about people like her can change her premium too, and would if she stayed "
            "away; no ε limits that.",
        ),
        tables=(
            TextTable(
                name="premium",
                title=f"Average yearly premium if Gertrude takes part; {PREMIUM:,} if she does not",
                columns=("ε", "at most"),
                rows=tuple((name, money_up(premium)) for name, premium in (*others, own)),
                note=f"A premium is never above the cover of {COVER:,}; the average is over the noise.",
            ),
        ),
    )


def _deployed() -> Section:
    return Section(
        title="Where systems in use stand",
        paragraphs=(UNITS_DIFFER,),
        tables=(
            TextTable(
                name="deployed",
                title="Published guarantees",
                columns=("system", "ε", "δ", "protects", "spent", "model", "published by"),
                rows=tuple(
                    (
                        each.name,
                        f"{each.epsilon:g}",
                        _power(each.delta),
                        each.unit,
                        each.period,
                        each.model,
                        each.source,
                    )
                    for each in DEPLOYMENTS
                ),
            ),
        ),
    )


def _assumptions(explanation: Explanation) -> tuple[Section, ...]:
    if not explanation.assumptions:
        return ()
    return (Section(title="What this assumes", points=explanation.assumptions),)


def _power(delta: float) -> str:
    """A small number that does not break across lines.

    >>> _power(7e-9), _power(0)
    ('7·10⁻⁹', '0')
    """
    if delta == 0:
        return "0"
    digits, exponent = f"{delta:e}".split("e")
    raised = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if float(digits) == 1 else f"{float(digits):g}·10{raised}"
