"""Blanks: fields of a specification that only somebody who knows the data can fill in."""

from collections.abc import Iterator
from pathlib import Path

from sourdine.core.errors import InvalidParameter

BLANK = "FILL IN"


def check_filled(held: object, path: Path) -> None:
    """Refuse a specification with a field that still waits to be filled in, and name the field."""
    for field in _blanks(held, ()):
        rest = " Delete the line if its type has no such field, and the block if no query needs the column."
        raise InvalidParameter(
            f"The field '{'.'.join(field)}' of {path} still says {BLANK}. "
            f"Write there what its comment asks for.{rest if field[0] == 'columns' else ''}"
        )


def _blanks(held: object, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if held == BLANK:
        yield place
    elif isinstance(held, dict):
        for name, value in held.items():
            yield from _blanks(value, (*place, str(name)))
    elif isinstance(held, list):
        for value in held:
            yield from _blanks(value, place)
