"""`sourdine local words`: which words many people have, though nobody listed any."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.local.encode import SpecFile, read_question
from sourdine.cli.local.estimate import apart_document, refuse_twice, tell_apart
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted

if TYPE_CHECKING:
    from sourdine.local.words import WordFindings


def words(
    spec: SpecFile,
    reports: Annotated[list[Path], typer.Argument(help="Files of reports.")],
    *,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    false_rate: Annotated[
        float, typer.Option(help="The chance, at most, of reporting a word that nobody has.")
    ] = 0.02,
    keep: Annotated[int, typer.Option(help="How many prefixes are followed. More take longer.")] = 64,
    html: Annotated[Path | None, typer.Option("--html", help="A page with the words.")] = None,
    as_json: AsJson = False,
) -> None:
    """Find the words that many people have, in reports to a question about unlisted words.

    Nobody has to list them beforehand. Shares are among the reports that tell a word whole: a random part of
    all, the larger the shorter a word is.
    Each interval holds with its confidence given that its word was found.

    Example: sourdine local words snack.json reports.txt
    """
    import numpy as np

    from sourdine.local.report_files import count_files
    from sourdine.local.words import WordTree, find_words, words_document

    question = read_question(spec)
    if not isinstance(question.oracle, WordTree):
        raise InvalidParameter(
            f"The specification {spec} does not ask for words. "
            "Read its reports with 'sourdine local estimate'."
        )
    show.check_page(html)
    refuse_twice(reports)
    rows = [np.zeros((0, question.oracle.width), np.uint8)]
    files = count_files(question, reports, rows.append)
    if files.counts.reports != sum(map(len, rows)):
        raise InvalidParameter(
            "Some of these files hold counts, and words are read off single reports. Name files of reports."
        )
    findings = find_words(
        question.oracle, np.concatenate(rows), keep=keep, false_rate=false_rate, confidence=confidence
    )
    if html is not None:
        from sourdine.report.pages.survey import words_page

        faults = {str(fault): count for fault, count in files.faults.items()}
        show.keep(words_page(question, findings, faults=faults).html(), html)
    if as_json:
        show.document(words_document(question, findings) | apart_document(files))
        return
    _print(question.name, findings)
    tell_apart(files)


def _print(name: str, findings: "WordFindings") -> None:
    columns = (name, "share", f"{100 * findings.confidence:g} % interval")
    rows = [
        (each.word, f"{each.value:.4f}", f"{each.lower:.4f} to {each.upper:.4f}") for each in findings.words
    ]
    if rows:
        show.table(columns, rows, numbers=columns[1:])
    show.say(
        f"{counted(findings.reports, 'report')}, of which {findings.whole:,} contain whole words of any "
        f"length, and more contain short ones. A share of {findings.threshold:.4f} is surely enough for a "
        "word to be found. The chance that one of them is a word nobody has is at most "
        f"{findings.false_rate:g}."
    )
