"""Errors by their attributes: sentences may change without a test changing."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sourdine import InvalidParameter


@contextmanager
def refusal_of(name: str, owner: str | None = None) -> Iterator[pytest.ExceptionInfo[InvalidParameter]]:
    """Expect that a parameter is refused by its name, and by what declares it."""
    with pytest.raises(InvalidParameter) as info:
        yield info
    assert info.value.name == name
    assert owner is None or info.value.owner == owner
