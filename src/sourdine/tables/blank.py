"""Blanks: fields of a specification that only somebody who knows the data can fill in."""

from collections.abc import Iterator
from pathlib import Path

from sourdine.core.errors import InvalidParameter

BLANK = "FILL IN"
_NAMED = 3  # fields in an error; the rest are counted


def check_filled(held: object, path: Path) -> None:
    """Refuse a specification with fields that still wait to be filled in, and name the first of them."""
    fields = list(dict.fromkeys(_blanks(held, ())))
    if not fields:
        return
    named = [f"'{'.'.join(field)}'" for field in fields[:_NAMED]]
    if len(fields) > _NAMED:
        named.append(f"{len(fields) - _NAMED} more")
    *others, last = named
    which = f"fields {', '.join(others)} and {last}" if others else f"field {last}"
    rest = " Delete the line if its type has no such field, and the block if no query needs the column."
    raise InvalidParameter(
        f"The {which} of {path} still {'say' if others else 'says'} {BLANK}. "
        "Write there what the comment beside it asks for."
        f"{rest if any(field[0] == 'columns' for field in fields) else ''}"
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
