"""Values out of a file, of exactly the kind that was written."""

from typing import TypeVar

T = TypeVar("T")


def typed(kind: type[T], value: object) -> T:
    """The value, or a TypeError; bool('false') would be True, and True would pass for the number 1.

    >>> typed(int, 3)
    3
    """
    if type(value) is not kind:
        raise TypeError(f"not a {kind.__name__}")
    return value
