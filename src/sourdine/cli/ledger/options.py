"""What the verbs of `sourdine ledger` share: where a ledger is, and how amounts are told."""

from fractions import Fraction
from typing import Annotated

import typer

Where = Annotated[
    str,
    typer.Argument(help="The file of the ledger, or its address: postgresql://db.example/budgets#survey."),
]
Author = Annotated[str | None, typer.Option(help="In whose name; yours, if left out.")]
EPSILON = Fraction(1, 10**9), 10**6
RHO = Fraction(1, 10**12), 10**6
MU = Fraction(1, 10**6), 10**3
ORDER = Fraction(1001, 1000), 10**4
SELECTION_DELTA = Fraction(1, 10**20), Fraction(999, 1000)


def option_of(name: str, value: str = "") -> str:
    """A parameter as it is written on the command line."""
    return f"--{name.replace('_', '-')} {value}".rstrip()
