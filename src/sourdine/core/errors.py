"""Every error Sourdine raises on purpose.

SourdineError
├── InvalidParameter (also a ValueError)
│   └── UnknownName
├── UnsupportedLoss
├── VoidRun
└── LedgerError
    └── BudgetExceeded

A message is three short sentences at most: what is wrong, why, and what to do. It may repeat what the
caller declared (a parameter), never what the data hold.
"""

from collections.abc import Sequence
from fractions import Fraction


class SourdineError(Exception):
    """The parent of every error raised on purpose.

    Attributes:
        owner: What declares the parameter at fault: a class, function, file or block, or None.
        name: The parameter, field or column at fault, or None.
        expected: The rule it breaks, as it reads after "must", or None.
        got: What was declared, never what data contain; None where nothing may be shown.
        available: The names that would have been accepted, where they can be listed.
        hint: What to do, or None.
    """

    def __init__(
        self,
        *message: object,
        owner: str | None = None,
        name: str | None = None,
        expected: str | None = None,
        got: object = None,
        available: Sequence[str] = (),
        hint: str | None = None,
    ) -> None:
        super().__init__(*message)
        self.owner = owner
        self.name = name
        self.expected = expected
        self.got = got
        self.available = tuple(available)
        self.hint = hint

    def __reduce__(self) -> tuple[object, ...]:
        # Exception rebuilds from its positional arguments alone, so that one with required keywords,
        # raised in a worker process, would break the pool that carries it home.
        return _rebuild, (type(self), self.args, vars(self))


def _rebuild(kind: type[SourdineError], args: tuple[object, ...], state: dict[str, object]) -> SourdineError:
    """Restore a pickled error without calling its constructor."""
    error = kind.__new__(kind, *args)
    vars(error).update(state)
    return error


class InvalidParameter(SourdineError, ValueError):
    """A declared parameter is not of the right kind or size."""


class UnknownName(InvalidParameter):
    """A file names a mechanism that this version does not know, and that nobody has registered."""


class UnsupportedLoss(SourdineError):
    """A privacy loss was asked for that the mechanism cannot state, or that cannot be joined."""


class VoidRun(SourdineError):
    """A training was paid for and shows a fault afterwards, so that nothing of it may be handed out."""


class LedgerError(SourdineError):
    """A ledger cannot be opened, read or written, or does not hold what it should."""


class LedgerWait(UserWarning):
    """A ledger waits for something else than the disk: a standby of its server, or another session."""


class OldWord(FutureWarning):
    """Something is still read by the name that it had in an earlier version."""


class BudgetExceeded(LedgerError):
    """A charge was refused because it is more than what is left; nothing was spent."""

    def __init__(self, message: str, *, amount: Fraction, left: Fraction) -> None:
        super().__init__(message)
        self.amount = amount
        self.left = left
