"""The page of a question about words that nobody listed: which stand out so far, with intervals."""

from collections.abc import Mapping, Sequence

from sourdine.core.format import counted
from sourdine.local.question import Question
from sourdine.local.words import WordFindings
from sourdine.report.pages.page import Page, Section
from sourdine.report.survey.page import price_points, set_apart
from sourdine.report.table import Cell, TextTable


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
