"""The page of a survey while reports come in: estimates with intervals, tests of the reports, and the price.

It has no scripts, so that a server may show it anew every few seconds, and a file is as light.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from sourdine.accounting.explain.words import at_most
from sourdine.core.format import counted, shorten_up
from sourdine.local.consistency import is_mostly_noise, shares_of_all
from sourdine.local.estimate import Counts, Estimate
from sourdine.local.oracle import FrequencyOracle
from sourdine.local.poisoning import Reach, Sign, alarms, attackers_reach, has_reach, signs_of_periods
from sourdine.local.pooling import pooled_estimate
from sourdine.local.question import Question
from sourdine.local.survey_result import answer_names, in_rows
from sourdine.local.words import WordFindings
from sourdine.report.view import Cell, Page, Section, TextTable

_MOST_BARS = 60
_ATTACKERS = Fraction(1, 100)
_FAULTS = {
    "damaged": "damaged",
    "another-question": "made for another question",
    "impossible": "none that a device makes",
    "repeated": "counted already",
}
_WIDTH, _HEIGHT, _LEFT, _BELOW, _ABOVE, _RIGHT = 360.0, 210.0, 44.0, 38.0, 10.0, 12.0  # of the small chart


@dataclass(frozen=True)
class SurveyBar:
    """One answer: its value and interval in words, and where they lie on the axis, in per cent of it."""

    name: str
    words: str
    interval: str
    value: float
    lower: float
    upper: float
    reach: str


@dataclass(frozen=True)
class NarrowingChart:
    """How the widest interval shrank: a line through points, and ticks with their words."""

    points: str
    last: tuple[float, float]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]
    title: str


@dataclass(frozen=True, kw_only=True)
class SurveyPage(Page):
    """What a survey says so far."""

    template: ClassVar[str] = "survey.html"
    bars: tuple[SurveyBar, ...]
    ticks: tuple[tuple[float, str], ...]
    alarms: tuple[str, ...]
    narrowing: NarrowingChart | None
    caption: str


@dataclass(frozen=True, kw_only=True)
class ShownPeriods:
    """Which part of the time of a survey a page is about, and where the others are."""

    name: str = ""
    in_all: int = 1
    """How many periods the survey has."""
    links: tuple[tuple[str, str], ...] = ()
    group: int = 0
    """How many reports are added at once, so that nobody sees when one came in; 0: each by itself."""

    @property
    def nothing(self) -> str:
        """What to say while nothing is counted."""
        if not self.group:
            return "No report has come in yet."
        return (
            f"Reports are counted here once {self.group} of them are together. So many have not come in yet."
        )

    def words(self, periods: int) -> tuple[str, ...]:
        """How to read a page of this part."""
        points = []
        if periods > 1:
            points.append(
                "A device may report once in each period, with the same noise. The intervals hold all the "
                "same: they are means of those of the periods, which all hold together. They are wider than "
                "for as many reports by different devices, and are about reports: a device that sent several "
                "counts as often."
            )
        elif self.in_all > 1:
            points.append("This is about one period alone, since a device may report again in the next.")
        if self.group:
            points.append(
                f"Reports are added {self.group} or more at a time while a period lasts, so that nobody sees "
                "when one came in."
            )
        return tuple(points)


def survey_page(
    question: Question,
    periods: Sequence[Counts],
    *,
    confidence: float = 0.95,
    attackers: Fraction = _ATTACKERS,
    faults: Mapping[str, int] | None = None,
    signs: Sequence[Sign] = (),
    terms: Sequence[str] = (),
    history: Sequence[tuple[int, float]] = (),
    shown: ShownPeriods | None = None,
) -> SurveyPage:
    """The page of a question: `signs` are tests of single reports, `terms` what was announced of it.

    `periods` are the counts of those that are shown, in each of which devices report once. `history` are
    numbers of reports with the widest half of an interval at that time.
    """
    shown = shown or ShownPeriods()
    reports = sum(each.reports for each in periods)
    about = (
        Section(title="What it costs whoever answers", points=(*price_points(question), *terms)),
        *set_apart(faults or {}),
        Section(title="How to read it", points=(*_reading(question, attackers), *shown.words(len(periods)))),
    )
    if shown.links:
        about = (Section(title="Periods", links=shown.links), *about)
    name = question.name if question.name.endswith(("?", "!", ".")) else f"{question.name}:"
    title = f"{name} {counted(reports, 'report')} so far{shown.name and f', {shown.name}'}"
    if reports == 0 or question.oracle.takes_words:
        lead = (
            shown.nothing
            if reports == 0
            else "Words are read by a list of candidates: export the reports, and decode them with it."
        )
        return SurveyPage(
            title=title, lead=lead, sections=about, bars=(), ticks=(), alarms=(), narrowing=None, caption=""
        )
    answer = in_rows(pooled_estimate(question, periods, confidence))
    reach = attackers_reach(question.oracle, answer, attackers) if has_reach(question.oracle) else None
    tests = (*signs_of_periods(question.oracle, periods, shown.in_all), *signs)
    bars, ticks = _bars(question, answer, reach)
    widest = widest_half(answer)
    return SurveyPage(
        title=title,
        lead=f"Estimates with {100 * confidence:g} % intervals, about those who reported. The widest "
        f"interval reaches {_amount(question, widest, signed=False)} to either side; four times as many "
        "reports would halve it.",
        sections=(*_quality(tests), *about),
        bars=bars,
        ticks=ticks,
        alarms=tuple(alarms(tests)),
        narrowing=_narrowing(question, [*history, (answer.reports, widest)]),
        caption=_caption(answer, len(bars)),
    )


def widest_half(answer: Estimate) -> float:
    """Half the length of the widest interval of an estimate."""
    return float((answer.upper - answer.lower).max()) / 2


def price_points(question: Question) -> tuple[str, ...]:
    """What one report reveals, in words for whoever is asked."""
    epsilon = float(question.oracle.spend.loss().epsilon)
    factor = math.exp(min(epsilon, 700.0))
    high = at_most(factor / (1 + factor))
    return (
        f"A report reveals at most ε = {shorten_up(epsilon)} about its answer, to whoever sees it, this "
        "server included. The answer itself never leaves the device.",
        "Whoever gave each of two answers 50 chances in 100 before gives one of them at most "
        f"{high.many:,} chances in {high.of:,} after: the odds change by a factor of "
        f"{shorten_up(factor, 3)} at most, whatever else is known.",
    )


def _caption(answer: Estimate, bars: int) -> str:
    size = len(answer.value)
    largest = f"The {bars} largest of {size:,}. " if bars < size else ""
    which = ""
    if size > 2:
        which = " Shares of all are at least 0 and sum to 1, with a bias"
        which += (
            ": the noise is larger than the shares here, so use them for all answers together."
            if is_mostly_noise(answer)
            else "; estimates have none."
        )
    return f"{largest}Bars: estimates; thin lines: {100 * answer.confidence:g} % intervals.{which}"


def _is_share(question: Question) -> bool:
    return isinstance(question.oracle, FrequencyOracle)


def _amount(question: Question, number: float, *, signed: bool = True) -> str:
    """A share in per cent, or a number as it is."""
    if not _is_share(question):
        return f"{number:,.4g}"
    return f"{100 * number:.1f} %" if signed else f"{100 * number:.2g} percentage points"


def _moved(question: Question, number: float) -> str:
    """How far a number may be moved: of a share, in percentage points."""
    return f"{100 * number:.1f}" if _is_share(question) else f"{number:,.4g}"


def _bars(
    question: Question, answer: Estimate, reach: Reach | None
) -> tuple[tuple[SurveyBar, ...], tuple[tuple[float, str], ...]]:
    names = answer_names(question, answer)
    order = sorted(range(len(answer.value)), key=lambda i: -float(answer.value[i]))[:_MOST_BARS]
    if _is_share(question):
        start = 0.0
        stop = _round_up(max(max(float(answer.upper[i]), float(answer.value[i])) for i in order))
    else:
        start, stop = float(question.oracle.lower), float(question.oracle.upper)  # type: ignore[attr-defined]

    def place(number: float) -> float:
        return 100 * min(max((float(number) - start) / (stop - start), 0.0), 1.0)

    constrained = shares_of_all(answer) if len(answer.value) > 2 else None

    def interval(i: int) -> str:
        ends = f"{_amount(question, float(answer.lower[i]))} to {_amount(question, float(answer.upper[i]))}"
        if constrained is None:
            return ends
        return f"{ends}; as a share of all {_amount(question, float(constrained[i]))}"

    bars = tuple(
        SurveyBar(
            names[i],
            _amount(question, float(answer.value[i])),
            interval(i),
            place(answer.value[i]),
            place(answer.lower[i]),
            place(answer.upper[i]),
            ""
            if reach is None
            else f"{100 * reach.share:g} % attackers: up {_moved(question, float(reach.up.flat[i]))}, "
            f"down {_moved(question, float(reach.down.flat[i]))}{' points' if _is_share(question) else ''}",
        )
        for i in order
    )
    marks = [start + (stop - start) * k / 4 for k in range(5)]
    shown = [f"{100 * mark:.3g} %" if _is_share(question) else f"{mark:,.4g}" for mark in marks]
    return bars, tuple(zip((0.0, 25.0, 50.0, 75.0, 100.0), shown, strict=True))


def _round_up(share: float) -> float:
    """The end of an axis of shares: the next of a few round numbers."""
    return next((end for end in (0.01, 0.02, 0.04, 0.1, 0.2, 0.4, 0.6, 0.8) if share <= end), 1.0)


def _quality(tests: Sequence[Sign]) -> tuple[Section, ...]:
    if not tests:
        return ()
    rows: list[tuple[Cell, ...]] = [
        (sign.name, f"{sign.value:,.4g}", sign.expected, "ALARM" if sign.alarm else "no sign")
        for sign in tests
    ]
    table = TextTable(
        name="quality",
        title="Signs of made-up reports",
        columns=("test", "here", "honest reports", "result"),
        rows=tuple(rows),
        note="All tests together raise a false alarm in at most one survey of a million, however often one "
        "looks. A careful attacker raises "
        "none: what those could have done stands beside each estimate.",
    )
    return (Section(title="Are the reports honest?", tables=(table,)),)


def set_apart(faults: Mapping[str, int]) -> tuple[Section, ...]:
    """How many lines were not counted, by reason."""
    rows: list[tuple[Cell, ...]] = [
        (_FAULTS.get(kind, kind), f"{count:,}") for kind, count in sorted(faults.items())
    ]
    if not rows:
        return ()
    table = TextTable(
        name="apart", title="Lines that were not counted", columns=("why", "lines"), rows=tuple(rows)
    )
    return (Section(title="Set apart", tables=(table,)),)


def _reading(question: Question, attackers: Fraction) -> tuple[str, ...]:
    kind = (
        "Shares may come out below 0 or above 100 % by noise; intervals never do."
        if _is_share(question)
        else ""
    )
    points = (
        "Each interval holds the true value among those who reported at least as often as its confidence "
        "says. It says nothing about people who did not report.",
        kind,
        f"Beside each estimate stands how far {100 * float(attackers):g} % of made-up reports could have "
        "moved it, whatever they were.",
        "Looking at the page often costs nobody anything: reports are private by themselves. But an interval "
        "holds at a time that was fixed beforehand: whoever waits until it says what they like is misled. "
        "The tests of made-up reports hold however often one looks.",
    )
    return tuple(point for point in points if point)


def _narrowing(question: Question, history: Sequence[tuple[int, float]]) -> NarrowingChart | None:
    """The widest half of an interval by the number of reports, both on scales of powers."""
    points = sorted({reports: half for reports, half in history if reports > 0 and half > 0}.items())
    if len(points) < 3:
        return None
    low, high = math.log10(points[0][0]), math.log10(points[-1][0])
    halves = [math.log10(half) for _, half in points]
    bottom, top = min(halves), max(halves)
    if high - low < 0.05 or top - bottom < 1e-9:
        return None

    def across(reports: float) -> float:
        return _LEFT + (math.log10(reports) - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def up(half: float) -> float:
        return _ABOVE + (top - math.log10(half)) / (top - bottom) * (_HEIGHT - _BELOW - _ABOVE)

    places = [(across(reports), up(half)) for reports, half in points]
    unit = 100 if _is_share(question) else 1
    sides = [points[0][0], points[-1][0]]
    return NarrowingChart(
        points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places),
        last=places[-1],
        across=tuple((across(reports), f"{reports:,}") for reports in sides),
        up=tuple((up(10**each), f"{unit * 10**each:.2g}") for each in (top, bottom)),
        title=f"The widest interval shrank from ±{_amount(question, points[0][1], signed=False)} to "
        f"±{_amount(question, points[-1][1], signed=False)}",
    )


# The page of a question about words that nobody listed: which stand out so far, with intervals.


def words_page(
    question: Question,
    findings: WordFindings,
    *,
    faults: Mapping[str, int] | None = None,
    terms: Sequence[str] = (),
) -> Page:
    """The words that many have, as far as reports of single words tell."""
    level = f"{100 * findings.confidence:g} %"
    rows: list[tuple[Cell, ...]] = [
        (each.word or "(nothing)", f"{100 * each.value:.2f} %", _interval(each.lower, each.upper))
        for each in findings.words
    ]
    table = TextTable(
        name="words",
        title=f"{counted(len(rows), 'word')} that stand{'s' * (len(rows) == 1)} out",
        columns=("word", "share", f"{level} interval"),
        rows=tuple(rows),
        note=f"{counted(findings.whole, 'report')} contain whole words of any length, and more contain short "
        "ones; shares are among those. Intervals hold given that "
        "a word was found; the estimate beside it is too high on average for words that just were.",
    )
    words = (
        Section(title="Words", tables=(table,)) if rows else Section(title="Words", points=(_none(findings),))
    )
    return Page(
        title=f"{question.name}: {counted(findings.reports, 'report')} so far",
        lead=f"Nobody listed these words. With a chance of {100 * findings.false_rate:g} % at most, one of "
        "them is a word that nobody has. Rarer words are not told.",
        sections=(
            words,
            Section(title="What it costs whoever answers", points=(*price_points(question), *terms)),
            *set_apart(faults or {}),
        ),
    )


def _interval(lower: float, upper: float) -> str:
    return f"{100 * lower:.2f} % to {100 * upper:.2f} %"


def _none(findings: WordFindings) -> str:
    if not findings.whole:
        return "No report about whole words has come in yet."
    return (
        f"No word stands out. With {counted(findings.reports, 'report')} one is found from a share of about "
        f"{100 * findings.threshold:.2g} % on: four times as many reports halve that."
    )
