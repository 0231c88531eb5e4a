"""What tests look up in the result of an experiment."""

from sourdine.experiments import ClaimVerdict, Result
from sourdine.report import TextTable


def verdict(result: Result, name: str) -> ClaimVerdict:
    (found,) = [each for each in result.verdicts if each.statement.name == name]
    return found


def table(result: Result, name: str) -> TextTable:
    (found,) = [each for section in result.sections for each in section.tables if each.name == name]
    return found
