"""The block of a series in a specification: its periods, what is published, and how often a unit counts."""

from collections.abc import Mapping
from datetime import date
from typing import Any, Literal

import numpy as np
from pydantic import Field, ValidationError, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.frames.declared import Declared, mistake
from sourdine.mechanisms.correlation import Participation
from sourdine.tables.series.calendar import SeriesCalendar, plain_day
from sourdine.tables.series.views import SeriesView

LATE = ("count", "drop")


class SeriesBlock(Declared):
    """What is declared of a series.

    `arrived` is the column that says when a record came in; without it, each period is given a table of its
    own. A record counts in the period in which it arrived, and never again. `happened` is the column of when
    it was about, and `late` says what becomes of a record that is about an earlier period: it counts when it
    arrives, or is dropped. A unit counts in at most `times` periods at least `separation` apart, or, with
    `total`, in any with at most so many records in all.
    """

    period: Literal["day", "week", "month", "quarter", "year"]
    first: date
    periods: int = Field(ge=1, le=1 << 16)
    publish: tuple[Any, ...] = ("total", "period")
    arrived: str | None = Field(default=None, min_length=1)
    happened: str | None = Field(default=None, min_length=1)
    late: Literal["count", "drop"] = "count"
    times: int = Field(default=1, ge=1, le=1 << 16)
    separation: int = Field(default=1, ge=1, le=1 << 16)
    total: int | None = Field(default=None, ge=1, le=1 << 20)
    extensible: bool = False
    state: str | None = Field(default=None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, block: Any) -> Any:
        if not isinstance(block, dict):
            return block
        fields = {name: _plain_number(value) for name, value in block.items()}
        if isinstance(fields.get("first"), str):
            try:
                fields["first"] = date.fromisoformat(fields["first"])
            except ValueError:
                raise ValueError("first must be a day, such as 2026-01-05") from None
        elif "first" in fields:
            try:
                fields["first"] = plain_day(fields["first"])
            except InvalidParameter:
                raise ValueError("first must be a day, such as 2026-01-05") from None
        if "publish" in fields:
            views = fields["publish"]
            fields["publish"] = tuple(views) if isinstance(views, list | tuple) else (views,)
        return fields

    @model_validator(mode="after")
    def _known(self) -> "SeriesBlock":
        try:
            views = self.views
            self.calendar.name(1)
            self.participation.words  # noqa: B018 (it is checked when it is made)
        except InvalidParameter as problem:
            raise ValueError(str(problem)) from None
        if not views or len(set(views)) != len(views):
            raise ValueError("publish must name what is read off, each thing once")
        if any(view.first > self.periods for view in views):
            raise ValueError("publish names a window that is longer than the series; shorten it")
        if self.late == "drop" and (self.happened is None or self.arrived is None):
            raise ValueError("late records are known by two columns: declare 'arrived' and 'happened'")
        if self.total is not None and (self.times, self.separation) != (1, 1):
            raise ValueError("total bounds all periods together; leave out times and separation")
        return self

    @classmethod
    def read(cls, fields: Mapping[str, object]) -> "SeriesBlock":
        """The block of these fields; a mistake is named by its field."""
        try:
            return cls.model_validate(dict(fields))
        except ValidationError as problem:
            raise mistake(problem, "series") from None

    @property
    def views(self) -> tuple[SeriesView, ...]:
        """What is read off at each period."""
        return tuple(map(SeriesView.read, self.publish))

    @property
    def calendar(self) -> SeriesCalendar:
        """Its periods."""
        return SeriesCalendar(self.period, self.first, self.periods)

    @property
    def participation(self) -> Participation:
        """How often a unit counts."""
        if self.total is not None:
            return Participation(shared=True)
        return Participation(self.times, self.separation)


def _plain_number(value: Any) -> Any:
    """A whole number of NumPy as one of Python."""
    return int(value) if isinstance(value, np.integer) else value
