"""How many records, and how many units."""

from collections.abc import Iterator
from typing import ClassVar, Literal, Self

from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.tables.answers.estimate import GroupEstimate, Numbers
from sourdine.tables.measurements.group_sums import RecordCounts, UnitCounts
from sourdine.tables.measurements.measurement import Measurement, Scope, plural
from sourdine.tables.statistics.base import Example, Scale, Single, Style, records_of


class _OfAll(Single):
    """A count that is about no column."""

    bare: ClassVar[bool] = True

    @property
    def label(self) -> str:
        return self.kind

    @property
    def about(self) -> tuple[str, ...]:
        return ()

    def check(self, schema: Schema, owner: str) -> None:
        """Any table has one."""

    def tell(self, numbers: Numbers, schema: Schema) -> GroupEstimate:
        return numbers.count()

    @classmethod
    def examples(cls, schema: Schema) -> Iterator[Self]:
        yield cls.model_validate({})


class Count(_OfAll):
    """How many records there are."""

    kind: Literal["count"] = "count"
    style: ClassVar[Style] = Style(scale=Scale.COUNT)
    example: ClassVar[Example] = {}

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return RecordCounts(scope=scope)

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return records_of(unit)


class Units(_OfAll):
    """How many different units there are."""

    kind: Literal["units"] = "units"
    style: ClassVar[Style] = Style(scale=Scale.COUNT, of_units=True)
    example: ClassVar[Example] = {}
    other_names: ClassVar[tuple[str, ...]] = ("distinct", "unique", "nunique")

    def measurement(self, scope: Scope, schema: Schema) -> Measurement:
        return UnitCounts(scope=scope)

    def unit_of_measure(self, unit: PrivacyUnit) -> str:
        return plural(unit.name)
