"""Every error Sourdine raises on purpose.

SourdineError
├── InvalidParameter (also a ValueError)
│   └── UnknownName
├── UnsupportedLoss
└── LedgerError
    └── BudgetExceeded

A message is three short sentences at most: what is wrong, why, and what to do. It may repeat what the
caller declared (a parameter), never what the data hold.
"""

from fractions import Fraction


class SourdineError(Exception):
    """The parent of every error raised on purpose."""


class InvalidParameter(SourdineError, ValueError):
    """A declared parameter is not of the right kind or size."""


class UnknownName(InvalidParameter):
    """A file names a mechanism that this version does not know, and that nobody has registered."""


class UnsupportedLoss(SourdineError):
    """A privacy loss was asked for that the mechanism cannot state, or that cannot be joined."""


class LedgerError(SourdineError):
    """A ledger cannot be opened, read or written, or does not hold what it should."""


class OldWord(FutureWarning):
    """Something is still read by the name that it had in an earlier version."""


class BudgetExceeded(LedgerError):
    """A charge was refused because it is more than what is left; nothing was spent."""

    def __init__(self, message: str, *, amount: Fraction, left: Fraction) -> None:
        super().__init__(message)
        self.amount = amount
        self.left = left
