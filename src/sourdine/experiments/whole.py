"""Every experiment on one page: what was published, what is found, and how it stands."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from sourdine.experiments.registry import Result, Standing
from sourdine.report.page import Page, Section
from sourdine.report.table import Cell, Table

NAME = "all"
_LAST = "errors"


def whole(results: Sequence[Result], *, quick: bool = False) -> Page:
    """One page of several results, a chapter each; the errors in the originals come last."""
    ordered = sorted(results, key=lambda each: each.name == _LAST)
    judged = sum(len(each.verdicts) for each in results)
    short = "QUICK: fewer repetitions and no slow figures, so that numbers are rougher. " if quick else ""
    sections = [Section(title="How the published numbers stand", tables=(_standings(results),))]
    for each in ordered:
        sections.append(Section(title=each.title, chapter=each.name, paragraphs=(each.lead,)))
        sections += [replace(section, chapter="") for section in each.told()]
    return Page(
        title="What was published, done again",
        lead=f"{short}Every figure and table of the source documents, computed anew: {judged} published "
        "statements, each with ours beside it and a verdict.",
        sections=tuple(sections),
    )


def _standings(results: Sequence[Result]) -> Table:
    """How many statements of each experiment stand how."""
    found = [(each.title, Counter(verdict.standing for verdict in each.verdicts)) for each in results]
    rows: list[tuple[Cell, ...]] = [
        (title, *(counts[standing] for standing in Standing)) for title, counts in found if counts
    ]
    total = sum((counts for _, counts in found), Counter[Standing]())
    return Table(
        name="standings",
        title="Published statements by verdict",
        columns=("experiment", *map(str, Standing)),
        rows=(*rows, ("all", *(total[standing] for standing in Standing))),
    )
