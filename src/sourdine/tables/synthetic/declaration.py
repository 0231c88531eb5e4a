"""The block of a synthetic table in a specification: which columns, their bins, and what is known of them."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from sourdine.core.format import setting
from sourdine.frames.declared import Declared, mistake

MOST_ROWS = 1 << 28
MOST_BINS = 1 << 12
Edges = tuple[int | float, ...]
KeyList = tuple[str | int | bool, ...]


class SyntheticBlock(Declared):
    """What is declared of a synthetic table.

    `columns` are those that it has, all that are declared if nothing is said, but for those that are
    `leave_out`. With a `target`, a declared column of keys, a tree of its own is grown for each of them: it
    keeps what tells them apart. `bins` gives for a column of numbers how many bins it has, or their edges.
    `rows` is how many rows are drawn, else the noisy number of units. `zeros` are combinations of keys of two
    columns that cannot be, and `totals` are known numbers of units by the cells of a column. `mark` names a
    column that says "synthetic" in every row.
    """

    columns: tuple[str, ...] | None = Field(default=None, min_length=1)
    leave_out: tuple[str, ...] = ()
    target: str | None = Field(default=None, min_length=1)
    bins: Mapping[str, int | Edges] = Field(default_factory=dict)
    rows: int | None = Field(default=None, ge=1, le=MOST_ROWS)
    zeros: tuple[Mapping[str, KeyList], ...] = ()
    totals: Mapping[str, Mapping[str, Annotated[int, Field(ge=0, le=MOST_ROWS)]]] = Field(
        default_factory=dict
    )
    mark: str | None = Field(default=None, min_length=1, max_length=200)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, block: Any) -> Any:
        if not isinstance(block, Mapping):
            return block
        fields = dict(block)
        for name in ("columns", "leave_out"):
            if isinstance(fields.get(name), list):
                fields[name] = tuple(fields[name])
        if isinstance(bins := fields.get("bins"), Mapping):
            fields["bins"] = {
                name: tuple(each) if isinstance(each, list) else each for name, each in bins.items()
            }
        if isinstance(zeros := fields.get("zeros"), list | tuple):
            fields["zeros"] = tuple(map(_zero, zeros))
        return fields

    @model_validator(mode="after")
    def _known(self) -> "SyntheticBlock":
        for name, bins in self.bins.items():
            if isinstance(bins, int) and not 1 <= bins <= MOST_BINS:
                raise ValueError(f"the bins of '{name}' must be from 1 to {MOST_BINS:,}, or a list of edges")
            if isinstance(bins, tuple) and not (
                2 <= len(bins) <= MOST_BINS and all(a < b for a, b in pairwise(bins))
            ):
                raise ValueError(
                    f"the edges of the bins of '{name}' must rise, as in {setting(name, [0, 20, 40])}"
                )
        for zero in self.zeros:
            if len(zero) != 2:
                raise ValueError(
                    'zeros must name keys of two columns each, as in {sex = ["m"], pregnant = ["yes"]}'
                )
        for names in (self.columns or (), self.leave_out):
            if len(set(names)) != len(names):
                raise ValueError("columns and leave_out must name each column once")
        return self

    @classmethod
    def read(cls, fields: Mapping[str, object]) -> "SyntheticBlock":
        """The block of these fields; a mistake is told in one sentence."""
        try:
            return cls.model_validate(dict(fields))
        except ValidationError as problem:
            raise mistake(problem, "synthetic") from None


def _zero(zero: object) -> object:
    if not isinstance(zero, Mapping):
        return zero
    return {name: tuple(keys) if isinstance(keys, list | tuple) else (keys,) for name, keys in zero.items()}
