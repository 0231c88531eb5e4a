"""What is declared of a cleaning in a TOML file: its columns, and how epsilon is divided over them."""

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from sourdine.core.errors import InvalidParameter
from sourdine.core.files import unreadable
from sourdine.core.format import in_files
from sourdine.core.text import read_toml
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.declared import Declared, mistake
from sourdine.frames.expressions.tree import decimal
from sourdine.frames.schema import Schema
from sourdine.local.cleaner.cells import Gap
from sourdine.local.cleaner.cleaner import MOST_ROWS, SHARE, Cleaner
from sourdine.local.cleaner.numbers import Method

_OTHERS = ("table", "privacy", "queries")  # blocks of a specification of releases, which may be the same file


class ColumnBlock(Declared):
    """What is done to one column, if not the same as to all."""

    epsilon: int | float | None = Field(default=None, gt=0)
    method: Literal["laplace", "staircase", "unbiased"] | None = None
    gap: Literal["keep", "drop", "draw"] | None = None


class CleanBlock(Declared):
    """The `[clean]` block. `epsilon` is for a person, `each` for every column alike."""

    epsilon: int | float | None = Field(default=None, gt=0)
    each: int | float | None = Field(default=None, gt=0)
    rows: int | None = Field(default=None, ge=1, le=MOST_ROWS)
    unit: str | None = Field(default=None, min_length=1, max_length=200)
    method: Literal["laplace", "staircase", "unbiased"] = "laplace"
    gap: Literal["keep", "drop", "draw"] = "keep"
    share: float = Field(default=float(SHARE), gt=0, lt=1)
    keep_order: bool = False
    columns: Mapping[str, ColumnBlock] = Field(default_factory=dict)


class CleaningSpecification(Declared):
    """The blocks of a file that a cleaning needs.

    >>> held = {"columns": {"ill": {"type": "flag"}}, "clean": {"epsilon": 1}}
    >>> str(CleaningSpecification.read(held).cleaner().total)
    '1'
    """

    schema_: Schema
    clean: CleanBlock
    unit: str
    several: bool
    text: TextFormat

    @classmethod
    @in_files()
    def read(cls, document: Mapping[str, Any]) -> "CleaningSpecification":
        """The specification of a parsed file; a mistake is named by its field."""
        for name in document:
            if name not in ("columns", "clean", *_OTHERS):
                raise InvalidParameter(
                    f"The declaration '{name}' is unknown. Check its spelling, or leave it out."
                )
        if not isinstance(document.get("columns"), Mapping) or not document["columns"]:
            raise InvalidParameter(
                "The specification declares no columns. Add a block for each that is to be kept, such as "
                '[columns.age] type = "integer", lower = 0, upper = 120.'
            )
        try:
            block = CleanBlock.model_validate(document.get("clean", {}))
        except ValidationError as problem:
            raise mistake(problem, "clean") from None
        privacy, table = (_block(document, name) for name in ("privacy", "table"))
        return cls(
            schema_=Schema.read(document["columns"]),
            clean=block,
            unit=str(block.unit or privacy.get("unit", "person")),
            several=privacy.get("column") is not None,
            text=TextFormat.read({name: table[name] for name in TextFormat.model_fields if name in table}),
        )

    def cleaner(
        self,
        *,
        epsilon: Fraction | None = None,
        each: Fraction | None = None,
        own: Mapping[str, Fraction] | None = None,
        method: Method | None = None,
        gap: Gap | None = None,
        rows: int | None = None,
        unit: str | None = None,
    ) -> Cleaner:
        """The cleaner that is declared, with what was said beside the file in place of what it says."""
        block = self.clean
        count = rows if rows is not None else block.rows
        if count is None and self.several:
            raise InvalidParameter(
                f"The specification says that a {self.unit} may have several records, and each costs. "
                "Declare how many with rows in [clean], or with --rows."
            )
        if epsilon is None and each is None:
            epsilon, each = _exact(block.epsilon), _exact(block.each)
        costs = {name: _exact(column.epsilon) for name, column in block.columns.items()}
        methods = {name: Method(column.method) for name, column in block.columns.items() if column.method}
        return Cleaner(
            self.schema_,
            epsilon=epsilon,
            each=each,
            own={**{name: cost for name, cost in costs.items() if cost is not None}, **(own or {})},
            method=method or Method(block.method),
            methods=methods,
            gap=gap or Gap(block.gap),
            gaps={name: Gap(column.gap) for name, column in block.columns.items() if column.gap},
            rows=count or 1,
            unit=unit or self.unit,
            share=decimal(block.share),
        )


def parsed(path: Path) -> dict[str, Any]:
    """What a TOML file holds."""
    try:
        return read_toml(path)
    except OSError as problem:
        raise InvalidParameter(
            f"{unreadable(path, problem, 'specification')} Write one with "
            "'sourdine init TABLE', and fill in its columns."
        ) from None


def _exact(value: float | None) -> Fraction | None:
    return None if value is None else decimal(value)


def _block(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    block = document.get(name, {})
    return block if isinstance(block, Mapping) else {}
