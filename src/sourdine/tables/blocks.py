"""The blocks of a specification as people write them: with blanks, and with words of earlier versions."""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.files import unreadable
from sourdine.core.format import parse, written
from sourdine.core.text import read_toml
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.declared import Declared
from sourdine.frames.schema import as_tuples

BLANK = "FILL IN"
RENAMED = {"privacy": {"rows": "max_rows", "groups": "max_groups", "reserve": "selection_delta"}}  # since 0.2
_OF_QUANTILES = {"at": "levels"}
_NAMED = 3  # fields in an error; the rest are counted


def check_filled(content: object, path: Path) -> None:
    """Refuse a specification with fields that still wait to be filled in, and name the first of them."""
    fields = list(dict.fromkeys(_blanks(content, ())))
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


def _blanks(content: object, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if content == BLANK:
        yield place
    elif isinstance(content, dict):
        for name, value in content.items():
            yield from _blanks(value, (*place, str(name)))
    elif isinstance(content, list):
        for value in content:
            yield from _blanks(value, place)


class TableBlock(TextFormat):
    """Where the table is, how it is written if it is text, about how large, and whether it was checked."""

    source: str | tuple[str, ...] = Field(min_length=1)
    size: int | None = Field(default=None, ge=1, le=1 << 40)
    checked: bool = False

    @model_validator(mode="before")
    @classmethod
    def _several(cls, fields: Any) -> Any:
        return as_tuples(fields, "source")

    @property
    def text(self) -> TextFormat:
        """How files of text are written."""
        return TextFormat(**{name: getattr(self, name) for name in TextFormat.model_fields})

    @property
    def sources(self) -> tuple[str, ...]:
        """The paths, patterns or folders that the table is made of."""
        return (self.source,) if isinstance(self.source, str) else self.source


def read_blocks(path: Path) -> dict[str, Any]:
    """The blocks of a specification as they are written in a file."""
    try:
        return read_toml(path)
    except OSError as problem:
        raise InvalidParameter(
            f"{unreadable(path, problem, 'specification')} Check the path, or write one with 'sourdine init'."
        ) from None


def _read_exactly(number: Any) -> Any:
    """Read a ratio such as 1/3 as the number that it stands for, and a short one as a file writes it."""
    exact = parse(number) if isinstance(number, str) and "/" in number else number
    if not isinstance(exact, Fraction):
        return number
    if exact.denominator == 1:
        return int(exact)
    return exact if "/" in written(exact) else float(exact)


Exact = Annotated[
    int | float | Fraction,
    BeforeValidator(_read_exactly),
    PlainSerializer(
        lambda number: written(number) if isinstance(number, Fraction) else number,
        return_type=int | float | str,
        when_used="json",
    ),
]
"""A number that is written without rounding: 0.5, or "1/3" where no decimal is the same."""


class PrivacyBlock(Declared):
    """Whom the release protects, how much, and what pays for it."""

    unit: str = Field(min_length=1, max_length=200)
    column: str | None = Field(default=None, min_length=1)
    max_rows: int = Field(default=1, ge=1, le=1 << 20)
    max_groups: int = Field(default=1, ge=1, le=1 << 20)
    neighbours: str = "add-remove"
    ledger: str | None = Field(default=None, min_length=1)
    epsilon: Exact = Field(gt=0, le=1 << 20)
    delta: float | None = Field(default=None, gt=0, lt=1)
    selection_delta: float | None = Field(default=None, gt=0, lt=1)
    noise: Literal["nearest", "laplace", "gaussian"] | None = None
    confidence: float = Field(default=0.95, gt=0, lt=1)
    quality: bool = True

    @model_validator(mode="after")
    def _known(self) -> "PrivacyBlock":
        if self.neighbours not in ("add-remove", "replace"):
            raise ValueError('neighbours must be "add-remove" or "replace"')
        if self.column is None and (self.max_rows, self.max_groups) != (1, 1):
            raise ValueError(
                'max_rows and max_groups need a column that tells units apart: add column = "person_id"'
            )
        if self.selection_delta is not None and not self.selection_delta <= (self.delta or 0):
            raise ValueError("selection_delta is a part of delta: declare a delta that is at least as large")
        if self.noise == "gaussian" and self.delta is None:
            raise ValueError('Gaussian noise needs a delta: declare one, or leave out noise = "gaussian"')
        return self


def with_key_files(columns: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Columns in which `keys = { file = "districts.txt" }` has become the lines of that public file.

    Blanks around a line are left out, and so are empty lines.
    """
    return {
        name: {**block, "keys": _lines(name, block["keys"], folder)}
        if isinstance(block, Mapping) and isinstance(block.get("keys"), Mapping)
        else block
        for name, block in columns.items()
    }


def _lines(column: str, named: Mapping[str, object], folder: Path) -> list[str]:
    if list(named) != ["file"] or not isinstance(named["file"], str):
        raise InvalidParameter(
            f"The declaration 'columns.{column}.keys' is wrong: it must be a list, or name a file. Write it "
            'like keys = ["a", "b"], or keys = { file = "keys.txt" } for a file with a key in each line.'
        )
    path = folder / named["file"]
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except OSError as problem:
        raise InvalidParameter(f"{unreadable(path, problem, 'list of keys')} Check the path.") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"The list of keys {path} is not written in UTF-8. Save it so.") from None
    return [line.strip() for line in lines if line.strip()]


def old_words(blocks: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The words of earlier versions in a specification, each with the one that has taken its place."""
    words = [
        (f"{block}.{old}", f"{block}.{new}")
        for block, words in RENAMED.items()
        for old, new in words.items()
        if isinstance(blocks.get(block), Mapping) and old in blocks[block] and new not in blocks[block]
    ]
    queries = blocks.get("queries")
    statistics = (
        [each for query in queries for each in _statistics(query)] if isinstance(queries, list) else []
    )
    return words + [
        (f"queries.{old}", f"queries.{new}")
        for old, new in _OF_QUANTILES.items()
        if any(_of_quantiles(each) and old in each and new not in each for each in statistics)
    ]


def present_words(query: Any, words: Mapping[str, str]) -> Any:
    """A query whose quantiles are asked for by the present words."""
    statistics = _statistics(query)
    if not any(map(_of_quantiles, statistics)):
        return query
    ask = [renamed(each, words) if _of_quantiles(each) else each for each in statistics]
    return {**query, "ask": ask}


def _statistics(query: Any) -> Sequence[Any]:
    ask = query.get("ask", ()) if isinstance(query, Mapping) else ()
    return ask if isinstance(ask, list | tuple) else (ask,)


def _of_quantiles(each: Any) -> bool:
    return isinstance(each, Mapping) and ("quantiles" in each or each.get("kind") == "quantiles")


def renamed(block: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    return {words.get(name, name): value for name, value in block.items()}
