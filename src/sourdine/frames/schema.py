"""What is declared of a table's columns: kinds, bounds, keys, and what counts as missing.

Declarations come from people who know the data's meaning, never from the data. They are read from the
`[columns]` block of a TOML file, or given as plain objects.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sourdine.core.errors import InvalidParameter

MOST_UNITS = 1 << 31  # grid steps a record may reach, so that sums of 2^31 records fit in 62 bits
_STEPS = 1 << 20  # steps of the default grid over the range of a real column


class Declared(BaseModel):
    """A frozen declaration that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Integer(Declared):
    """Whole numbers between two bounds; what lies outside is clamped."""

    type: Literal["integer"] = "integer"
    lower: int
    upper: int
    missing: Literal["drop"] | int = "drop"

    @model_validator(mode="after")
    def _ordered(self) -> "Integer":
        _check_bounds(self.lower, self.upper, self.missing)
        if max(abs(self.lower), abs(self.upper)) > MOST_UNITS:
            raise ValueError("bounds must be within 2^31")
        return self

    @property
    def step(self) -> Fraction:
        """The step of the grid: one."""
        return Fraction(1)


class Real(Declared):
    """Reals between two bounds; what lies outside is clamped, and everything is rounded to a grid."""

    type: Literal["real"] = "real"
    lower: float
    upper: float
    granularity: float | None = Field(default=None, gt=0)
    missing: Literal["drop"] | float = "drop"

    @model_validator(mode="after")
    def _ordered(self) -> "Real":
        _check_bounds(self.lower, self.upper, self.missing)
        if max(abs(Fraction(self.lower)), abs(Fraction(self.upper))) / self.step > MOST_UNITS:
            raise ValueError("granularity must leave at most 2^31 steps up to each bound")
        return self

    @property
    def step(self) -> Fraction:
        """The declared step, or a power of two that cuts the range into about a million."""
        if self.granularity is not None:
            return Fraction(self.granularity)
        span = Fraction(self.upper) - Fraction(self.lower)
        step = Fraction(1)
        while step * _STEPS > span:
            step /= 2
        while step * _STEPS * 2 <= span:
            step *= 2
        return step


class Category(Declared):
    """Values from a known list of keys; others are missing."""

    type: Literal["category"] = "category"
    keys: tuple[str, ...] | tuple[int, ...] = Field(min_length=1, max_length=1 << 20)
    missing: Literal["drop"] | str | int = "drop"

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and isinstance(given.get("keys"), list):
            return {**given, "keys": tuple(given["keys"])}
        return given

    @model_validator(mode="after")
    def _known(self) -> "Category":
        if len(set(self.keys)) != len(self.keys):
            raise ValueError("keys must not repeat")
        if self.missing != "drop" and self.missing not in self.keys:
            raise ValueError("missing must be 'drop' or one of the keys")
        return self


class Flag(Declared):
    """True or false."""

    type: Literal["flag"] = "flag"
    missing: Literal["drop"] | bool = "drop"


Number = Integer | Real
Column = Annotated[Integer | Real | Category | Flag, Field(discriminator="type")]


class Schema(Declared):
    """The declared columns of a table.

    >>> Schema.read({"age": {"type": "integer", "lower": 0, "upper": 120}}).columns["age"].upper
    120
    """

    columns: Mapping[str, Column]

    @classmethod
    def read(cls, columns: Mapping[str, Any]) -> "Schema":
        """The schema of a `[columns]` block; a mistake is named by its field."""
        try:
            return cls.model_validate({"columns": dict(columns)})
        except ValidationError as problem:
            raise told(problem, "columns") from None

    def number(self, owner: str, name: str) -> Number:
        """A column that holds numbers."""
        found = self.columns.get(name)
        if not isinstance(found, Integer | Real):
            raise InvalidParameter(
                f"{owner} needs numbers, and the column '{name}' is not declared as integer or real. "
                f'Declare it with bounds, as in [columns.{name}] type = "real", lower = 0, upper = 100.'
            )
        return found

    def keys(self, name: str) -> tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]:
        """The known keys of a column to group by."""
        found = self.columns.get(name)
        if isinstance(found, Category):
            return found.keys
        if isinstance(found, Flag):
            return (False, True)
        raise InvalidParameter(
            f"Grouping needs known keys, and the column '{name}' has none declared. "
            f'Declare them, as in [columns.{name}] type = "category", keys = ["a", "b"].'
        )


def told(problem: ValidationError, root: str) -> InvalidParameter:
    """The first mistake of a declaration, in one sentence that names its field."""
    first = problem.errors()[0]
    where = ".".join(
        str(part) for part in first["loc"] if part not in ("integer", "real", "category", "flag")
    )
    return InvalidParameter(f"The declaration '{where or root}' is wrong: {first['msg'].lower()}.")


def _check_bounds(lower: float, upper: float, missing: object) -> None:
    if not lower < upper:
        raise ValueError("lower must be below upper")
    if isinstance(missing, int | float) and not lower <= missing <= upper:
        raise ValueError("missing must be 'drop' or lie between the bounds")
