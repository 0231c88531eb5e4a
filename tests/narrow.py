"""Types that a test knows better than mypy."""

from typing import TypeVar

T = TypeVar("T")


def some(value: T | None) -> T:
    """`value`, which is there: an optional one that must not be None."""
    assert value is not None
    return value
