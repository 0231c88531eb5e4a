"""`sourdine local estimate`: what many reports say together, none of whose files is counted twice."""

import json
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.local.encode import SpecFile, read_question
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, number
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.files import unreadable
from sourdine.core.format import counted

if TYPE_CHECKING:
    from sourdine.local.estimate import Estimate, Floats
    from sourdine.local.poisoning import Reach
    from sourdine.local.question import Question
    from sourdine.local.report_files import FileCounts


def read_bytes(path: Path, most: int = -1) -> bytes:
    """What a file holds, or its first bytes, without the mark that some editors put before UTF-8."""
    try:
        with path.open("rb") as file:
            return file.read(most).removeprefix(b"\xef\xbb\xbf")
    except OSError as problem:
        raise InvalidParameter(f"{unreadable(path, problem)} Check the path.") from None


def refuse_twice(paths: Sequence[Path]) -> None:
    """Refuse a file that is named twice: its people would count twice, and intervals would be too narrow."""
    files = set()
    for path in paths:
        if path.resolve() in files:
            raise InvalidParameter(
                f"The file {path} is named twice, and its reports would be counted twice. Name it once."
            )
        files.add(path.resolve())


_MOST_ROWS = 60


def estimate(
    spec: SpecFile,
    reports: Annotated[list[Path], typer.Argument(help="Files of reports, or of counts.")],
    *,
    confidence: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    constrain: Annotated[
        str, typer.Option(help="none, or one of simplex, norm-sub and non-negative, which add a bias.")
    ] = "none",
    counts: Annotated[
        Path | None, typer.Option(help="Write the counts here: they can be added to others' later.")
    ] = None,
    attackers: Annotated[
        str, typer.Option(help="The share of made-up reports whose effect is shown beside each estimate.")
    ] = "1%",
    html: Annotated[Path | None, typer.Option("--html", help="A page with estimates and tests.")] = None,
    as_json: AsJson = False,
) -> None:
    """Count reports and estimate what is behind them, with intervals. Bad lines are set aside and reported.

    Beside each estimate stands how far a share of attackers could have moved it, whatever they sent; signs
    that reports were made up, such as many equal ones, are warned of.

    A copy of a file is left out, and a report with a number, as 'sourdine collect export' writes it, counts
    once, in however many files it is.

    Examples: sourdine local estimate coffee.json monday.txt tuesday.txt ·
    sourdine local estimate coffee.json reports.txt --constrain simplex --json
    """
    from sourdine.local.poisoning import RowWatch, alarms, attackers_reach, has_reach, signs_of_counts
    from sourdine.local.report_files import count_files
    from sourdine.local.survey_result import estimate_document, in_rows, quality_document

    question = read_question(spec)
    level = check.confidence("local estimate", confidence)
    show.check_place(counts)
    show.check_page(html)
    show.refuse_existing([counts])
    refuse_twice(reports)
    share = _share(attackers)
    watch = RowWatch(question.oracle)
    files = count_files(question, reports, watch.add)
    total = files.counts
    if not total.reports and files.faults:
        raise InvalidParameter(f"No report was counted: {'; '.join(not_counted(files))}. Check the files.")
    answer = in_rows(question.estimate(total, level))
    values = _constrained(constrain, question, answer)
    reach = attackers_reach(question.oracle, answer, share) if has_reach(question.oracle) else None
    signs = (*signs_of_counts(question.oracle, total), *watch.signs())
    if counts is not None:
        show.keep(json.dumps(total.to_json()) + "\n", counts)
    if html is not None:
        from sourdine.report.pages.survey import survey_page

        faults = {str(fault): count for fault, count in files.faults.items()}
        page = survey_page(
            question, [total], confidence=level, attackers=share, faults=faults, signs=watch.signs()
        )
        show.keep(page.html(), html)
    if as_json:
        document = estimate_document(question, answer, values, reach)
        show.document(document | quality_document(signs) | apart_document(files))
    else:
        _print(question, answer, values, constrain, reach)
        for sentence in alarms(signs):
            show.warn(sentence)
        tell_apart(files)


def _share(text: str) -> Fraction:
    """A share of attackers as people write it: 1%, or 0.01."""
    if text.rstrip().endswith("%"):
        return number("local estimate", "attackers", text.rstrip()[:-1], 0, 50) / 100
    return number("local estimate", "attackers", text, 0, Fraction(1, 2))


def apart_document(files: "FileCounts") -> dict[str, object]:
    """What was not counted, for machines."""
    return {
        "set_apart": {str(fault): count for fault, count in files.faults.items()},
        "copies": [str(path) for path, _ in files.copies],
    }


def tell_apart(files: "FileCounts") -> None:
    """What was not counted, and why."""
    for words in not_counted(files):
        show.warn(f"Not counted: {words}.")


def not_counted(files: "FileCounts") -> Iterator[str]:
    """What was not counted, in words."""
    from sourdine.local.lines import LineFault

    reasons = {
        LineFault.DAMAGED: "damaged",
        LineFault.ANOTHER: "made for another specification",
        LineFault.IMPOSSIBLE: "none that this oracle makes",
        LineFault.REPEATED: "of reports that were counted already",
    }
    for fault, count in files.faults.items():
        place = files.first.get(fault)
        where = "" if place is None else f" (the first is line {place[1]:,} of {place[0]})"
        yield f"{counted(count, 'line')}, {reasons[fault]}{where}"
    for path, other in files.copies:
        yield f"{path}, a copy of {other}"


def _constrained(constrain: str, question: "Question", answer: "Estimate") -> "Floats":
    """The values, mended as asked for."""
    from sourdine.local import consistency as shapes
    from sourdine.local.oracle import FrequencyOracle

    if constrain == "none":
        return answer.value
    known = {"simplex": shapes.simplex, "norm-sub": shapes.norm_sub, "non-negative": shapes.non_negative}
    if constrain not in known:
        raise check.fail("local estimate", "constrain", f"be one of none, {', '.join(known)}", constrain)
    if not isinstance(question.oracle, FrequencyOracle):
        raise InvalidParameter(
            "Only shares of categories can be constrained. Leave --constrain out for numbers."
        )
    return known[constrain](answer.value)


def _print(
    question: "Question", answer: "Estimate", values: "Floats", constrain: str, reach: "Reach | None"
) -> None:
    import numpy as np

    from sourdine.local.consistency import is_mostly_noise, shares_of_all
    from sourdine.local.survey_result import answer_names

    names = answer_names(question, answer)
    order = np.argsort(-values, kind="stable")[:_MOST_ROWS]
    percent = f"{100 * answer.confidence:g} % interval"
    columns: tuple[str, ...] = (question.name, "estimate", percent)
    rows: list[tuple[str, ...]] = [
        (names[i], f"{values[i]:.4f}", f"{answer.lower[i]:.4f} to {answer.upper[i]:.4f}") for i in order
    ]
    constrained = shares_of_all(answer) if constrain == "none" and len(values) > 2 else None
    if constrained is not None:
        columns = (*columns, "as shares of all")
        rows = [(*row, f"{constrained[i]:.4f}") for row, i in zip(rows, order, strict=True)]
    if reach is not None and reach.share:
        columns += (f"{100 * reach.share:g} % attackers",)
        rows = [
            (*row, f"+{reach.up[i]:.4f} −{reach.down[i]:.4f}") for row, i in zip(rows, order, strict=True)
        ]
    show.table(columns, rows, numbers=columns[1:])
    if len(order) < len(values):
        show.line(f"and {len(values) - len(order):,} more; --json shows them all.")
    show.say(
        f"{counted(answer.reports, 'report')}. Each interval is about those who reported, not about others."
        + (
            f" If {100 * reach.share:g} % of the reports were made up to spoil the survey, they moved an "
            "estimate by no more than stands beside it."
            if reach is not None and reach.share
            else ""
        )
        + (
            ""
            if constrained is None
            else " The noise is larger than the shares: use the shares of all for all answers together, and "
            "the unbiased estimates for one answer or a sum of some."
            if is_mostly_noise(answer)
            else " Estimates are unbiased and have intervals. Shares of all are at least 0 and sum to 1, "
            "with a bias."
        )
        + (
            " An interval of one share alone means reports that no share makes likely: by chance, as some of "
            "many are, or not made as stated."
            if answer.unlikely is not None and np.any(answer.unlikely)
            else ""
        )
        + (
            f" Values were constrained by {constrain}, which is no longer unbiased."
            if constrain != "none"
            else ""
        )
    )
