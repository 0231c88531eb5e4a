"""What was published, done again: a page of contents, a page for each source, a page for each experiment."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from sourdine.report.view import Cell, Page, Section, TextTable
from sourdine_reproduction.registry import ClaimVerdict, Result
from sourdine_reproduction.statements import MEANING, SOURCES, STATEMENTS, SourceDocument, Standing

TITLE = "What was published, done again"
_LAST = "errors"


def write_pages(results: Sequence[Result], folder: Path, *, quick: bool = False) -> Path:
    """A page for each source and one that leads to all; where that one is. Experiments have written their "
    "own."""
    for source, verdicts in by_source(each for result in results for each in result.verdicts).items():
        source_page(source, verdicts).write(folder / f"{source.name}.html")
    page = folder / "all.html"
    contents(results, quick=quick).write(page)
    return page


def by_source(verdicts: Iterable[ClaimVerdict]) -> dict[SourceDocument, list[ClaimVerdict]]:
    """The verdicts of each source that has any, in the order of its statements."""
    places = {name: place for place, name in enumerate(STATEMENTS)}
    sources: dict[SourceDocument, list[ClaimVerdict]] = {source: [] for source in SOURCES}
    for each in sorted(verdicts, key=lambda each: places[each.statement.name]):
        sources[each.statement.source].append(each)
    return {source: some for source, some in sources.items() if some}


def contents(results: Sequence[Result], *, quick: bool = False) -> Page:
    """What the verdicts mean, how many statements have each, and where everything is."""
    short = "QUICK: fewer repetitions and no slow figures, so that numbers are rougher. " if quick else ""
    verdicts = [each for result in results for each in result.verdicts]
    sources = by_source(verdicts)
    ordered = sorted(results, key=lambda each: each.name == _LAST)
    return Page(
        title=TITLE,
        lead=f"{short}{count_words(verdicts)}",
        sections=(
            Section(
                title="How the statements stand", paragraphs=(ONCE,), tables=(standings(verdicts), meanings())
            ),
            Section(
                title="The sources, statement by statement",
                links=tuple((source.title, f"{source.name}.html") for source in sources),
            ),
            Section(
                title="The experiments, with their tables and figures",
                links=tuple((each.title, f"{each.name}.html") for each in ordered),
            ),
        ),
    )


ONCE = (
    "A statement is a sentence, a theorem, a formula or a cell of a table that says something which can be "
    "computed, proven or measured. Each is counted once, at the place where the source says it in full. A "
    "question that a source leaves open is answered, and has no verdict."
)


def count_words(verdicts: Sequence[ClaimVerdict]) -> str:
    """How many statements there are, in a sentence."""
    judged = sum(each.standing is not None for each in verdicts)
    return (
        f"{judged} statements of the source documents, each with its place and its words, what is found "
        f"here, and one of five verdicts; and {len(verdicts) - judged} questions that they leave open, "
        "answered."
    )


def meanings() -> TextTable:
    """The five verdicts."""
    return TextTable(
        name="meanings",
        title="What the verdicts mean",
        columns=("verdict", "meaning"),
        rows=tuple((str(standing), meaning) for standing, meaning in MEANING.items()),
    )


def standings(verdicts: Sequence[ClaimVerdict]) -> TextTable:
    """How many statements of each source stand how."""
    rows: list[tuple[Cell, ...]] = []
    for title, those in (
        *((source.title, some) for source, some in by_source(verdicts).items()),
        ("all", list(verdicts)),
    ):
        counts = Counter(each.standing for each in those)
        rows.append(
            (title, *(counts[standing] for standing in Standing), len(those) - counts[None], counts[None])
        )
    return TextTable(
        name="standings",
        title="Statements by verdict",
        columns=("source", *map(str, Standing), "statements", "questions answered"),
        rows=tuple(rows),
    )


def source_page(source: SourceDocument, verdicts: Sequence[ClaimVerdict]) -> Page:
    """Every statement of a source: where it stands, in its words and ours, and what became of it."""
    return Page(
        title=source.title,
        lead=f"{source.document} Places: {source.places}",
        sections=tuple(
            Section(
                title=f"{number}. {each.statement.claim[0].upper()}{each.statement.claim[1:]}",
                paragraphs=_paragraphs(each),
            )
            for number, each in enumerate(verdicts, 1)
        ),
    )


def _paragraphs(verdict: ClaimVerdict) -> tuple[str, ...]:
    statement = verdict.statement
    ending = f" {verdict.why}" if verdict.why else ""
    publication = "" if statement.question else f"Published: {statement.published}. "
    return (
        f"{statement.place[0].upper()}{statement.place[1:]}: « {statement.sentence} » In English: "
        f"{statement.english}",
        f"{publication}Here: {verdict.finding}.",
        f"{verdict.word.capitalize()}.{ending}",
    )
