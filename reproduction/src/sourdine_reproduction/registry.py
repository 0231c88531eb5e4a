"""What an experiment and its parts are, and where to find all of them."""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.display import picture
from sourdine.core.serialization import written
from sourdine.report.view import Page, Section, TextTable, Watch, unwatched
from sourdine_reproduction.statements import STATEMENTS, PublishedStatement, Standing


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How an experiment is run."""

    quick: bool = False  # fewer repetitions and no slow figures
    data: Path | None = None  # where downloaded data lie
    watch: Watch = unwatched


@dataclass(frozen=True, kw_only=True)
class ClaimVerdict:
    """One statement of a source, what we find, and how it stands; a question that it leaves open has no "
    "verdict."""

    statement: PublishedStatement
    finding: str = field(metadata=written("found"))
    standing: Standing | None
    why: str = ""

    def __post_init__(self) -> None:
        if (self.standing is None) is not self.statement.question:
            raise check.fail("ClaimVerdict", "standing", "be none for a question, and for nothing else", None)

    @property
    def word(self) -> str:
        """The verdict, or that a question is answered."""
        return ANSWERED if self.standing is None else str(self.standing)


ANSWERED = "left open, answered here"


def judge(name: str, *, finding: str, standing: Standing, why: str = "") -> ClaimVerdict:
    """The verdict on a statement, by its name.

    >>> judge("thesis.steps", finding="14070", standing=Standing.REPRODUCED).statement.published
    '14070'
    """
    return ClaimVerdict(statement=STATEMENTS[name], finding=finding, standing=standing, why=why)


def answer(name: str, *, finding: str, why: str = "") -> ClaimVerdict:
    """The answer to a question that a source leaves open, by its name."""
    return ClaimVerdict(statement=STATEMENTS[name], finding=finding, standing=None, why=why)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What an experiment brings: verdicts, and sections with tables and figures."""

    name: str
    title: str
    lead: str
    verdicts: tuple[ClaimVerdict, ...]
    sections: tuple[Section, ...]

    @classmethod
    def of(
        cls, *parts: "ExperimentPart", name: str, title: str, lead: str, more: tuple[Section, ...] = ()
    ) -> "Result":
        """The verdicts and sections of all parts, and what else is told after them."""
        return cls(
            name=name,
            title=title,
            lead=lead,
            verdicts=tuple(verdict for part in parts for verdict in part.verdicts),
            sections=(*(part.section for part in parts), *more),
        )

    def summary(self) -> TextTable:
        """The verdicts as a table."""
        return TextTable(
            name="verdicts",
            title="Published beside ours",
            columns=("statement", "where", "published", "ours", "verdict", "why"),
            rows=tuple(
                (
                    each.statement.claim,
                    f"{each.statement.source.title}, {each.statement.place}",
                    each.statement.published,
                    each.finding,
                    each.word,
                    each.why,
                )
                for each in self.verdicts
            ),
        )

    def page(self) -> Page:
        """Everything on one page, verdicts first."""
        return Page(title=self.title, lead=self.lead, sections=self.all_sections())

    def all_sections(self) -> tuple[Section, ...]:
        """The verdicts, if there are any, then what they rest on."""
        first = Section(title="Verdicts", tables=(self.summary(),))
        return (first, *self.sections) if self.verdicts else self.sections

    def write(self, folder: Path) -> tuple[Path, ...]:
        """Keep the page, every table and every figure in a folder; where they are."""
        folder.mkdir(parents=True, exist_ok=True)
        page = folder / f"{self.name}.html"
        self.page().write(page)
        paths = [page]
        for table in (table for section in self.all_sections() for table in section.tables):
            paths.append(folder / f"{self.name}_{table.name}.csv")
            disk.write_whole(paths[-1], table.csv())
        figures = [figure for section in self.sections for figure in section.figures]
        for number, figure in enumerate(figures, 1):
            paths.append(folder / f"{self.name}_figure_{number}.png")
            disk.write_whole(paths[-1], picture(figure))
        return tuple(paths)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Something published that can be done again."""

    name: str
    title: str
    run: Callable[[Settings], Result]


_KNOWN: dict[str, Experiment] = {}


def experiment(name: str, title: str) -> Callable[[Callable[[Settings], Result]], Experiment]:
    """Register a function under a name; its module is found without being named anywhere."""

    def register(run: Callable[[Settings], Result]) -> Experiment:
        if name in _KNOWN and _KNOWN[name].run.__module__ != run.__module__:
            raise check.fail("experiment", "name", "be new", name)
        _KNOWN[name] = Experiment(name=name, title=title, run=run)
        return _KNOWN[name]

    return register


def find_experiments() -> dict[str, Experiment]:
    """Every experiment, by name and in order.

    >>> "budget" in find_experiments()
    True
    """
    room = import_module("sourdine_reproduction")
    for module in pkgutil.iter_modules(room.__path__):
        import_module(f"sourdine_reproduction.{module.name}")
    return dict(sorted(_KNOWN.items()))


def compare(published: str, ours: float, away: Standing = Standing.WRONG) -> Standing:
    """Reproduced if a number is ours at the digits it was published with, or else what is said of it then.

    >>> compare("1.17", 1.1663), compare("6.2", 7.33)
    (<Standing.REPRODUCED: 'reproduced'>, <Standing.WRONG: 'wrong'>)
    """
    digits = len(published.partition(".")[2])
    return Standing.REPRODUCED if round(ours, digits) == float(published) else away


class ExperimentPart(NamedTuple):
    """Verdicts, and the section of the page that shows where they come from."""

    verdicts: tuple[ClaimVerdict, ...]
    section: Section
