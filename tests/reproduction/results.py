"""What tests look up in the result of an experiment."""

import csv
from decimal import Decimal
from pathlib import Path

from sourdine.accounting import Bracket
from sourdine.report import TextTable
from sourdine_reproduction import ClaimVerdict, Result


def verdict(result: Result, name: str) -> ClaimVerdict:
    (found,) = [each for each in result.verdicts if each.statement.name == name]
    return found


def table(result: Result, name: str) -> TextTable:
    (found,) = [each for section in result.sections for each in section.tables if each.name == name]
    return found


def written(experiment: str) -> list[tuple[str, str, str, str]]:
    """The verdicts on an experiment's statements that stand in the documentation."""
    path = Path(__file__).parents[2] / "docs" / "reproduced" / "verdicts.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return [
            (row["statement"], row["ours"], row["verdict"], row["why"])
            for row in csv.DictReader(file)
            if row["experiment"] == experiment
        ]


def told(result: Result) -> list[tuple[str, str, str, str]]:
    """The same of a result."""
    return [(each.statement.name, each.finding, each.word, each.why) for each in result.verdicts]


def number(cell: object) -> float:
    """A cell that holds a number."""
    assert isinstance(cell, int | float | Decimal)
    return float(cell)


def bracket(cell: object) -> Bracket:
    """A cell that holds two ends."""
    assert isinstance(cell, Bracket)
    return cell
