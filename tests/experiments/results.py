"""What tests look up in the result of an experiment."""

from sourdine.experiments import Result, Verdict
from sourdine.report import Table


def verdict(result: Result, claim: str) -> Verdict:
    (found,) = [each for each in result.verdicts if claim in each.claim]
    return found


def table(result: Result, name: str) -> Table:
    (found,) = [each for section in result.sections for each in section.tables if each.name == name]
    return found
