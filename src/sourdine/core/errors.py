"""Every error Sourdine raises on purpose.

SourdineError
├── InvalidParameter (also a ValueError)
└── UnsupportedLoss

A message is three short sentences at most: what is wrong, why, and what to do. It may repeat what the
caller declared (a parameter), never what the data hold.
"""


class SourdineError(Exception):
    """The parent of every error raised on purpose."""


class InvalidParameter(SourdineError, ValueError):
    """A declared parameter is not of the right kind or size."""


class UnsupportedLoss(SourdineError):
    """A privacy loss was asked for that the mechanism cannot state, or that cannot be joined."""
