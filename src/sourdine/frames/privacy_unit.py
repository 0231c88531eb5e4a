"""The privacy unit, whom a guarantee protects, and its contribution bounds: how much of one unit counts."""

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import either, setting, value

MOST_ROWS = 1 << 20
MOST_GROUPS = 1 << 19


@dataclass(frozen=True)
class PrivacyUnit:
    """Each record is a unit of its own, or all those with the same value of a column are one.

    Then a unit counts in at most `max_groups` groups of a query, chosen at random, and there with at most as
    much as `max_rows` records could weigh.

    >>> PrivacyUnit(name="patient", column="patient_id", max_rows=3, max_groups=2).max_rows
    3
    """

    name: str = "record"
    _: KW_ONLY
    column: str | None = None
    max_rows: int = 1
    max_groups: int = 1

    def __post_init__(self) -> None:
        for field in ("name", "column"):
            text: object = getattr(self, field)
            if not (isinstance(text, str) and text.strip()) and (field == "name" or text is not None):
                raise check.fail("PrivacyUnit", field, "be a text", text)
        for field, most in (("max_rows", MOST_ROWS), ("max_groups", MOST_GROUPS)):
            count = check.integer("PrivacyUnit", field, getattr(self, field), 1, most)
            object.__setattr__(self, field, count)
            if self.column is None and count != 1:
                remedy = "Name the column that tells units apart."
                raise check.fail("PrivacyUnit", field, "be 1 where every record is a unit", count, remedy)

    def check_columns(self, names: Iterable[str]) -> None:
        """Refuse a table with a column that is called like the unit, which is not said to tell units apart.

        Whoever has several records there would be protected less than it seems.
        """
        if self.column is None and self.name in names:
            column = either(
                f"unit=PrivacyUnit({value(self.name)}, {setting('column', self.name)})",
                f"{setting('column', self.name)} under [privacy]",
            )
            raise InvalidParameter(
                f"The table has a column '{self.name}', yet every record would count as another {self.name}. "
                f"Write {column}, with max_rows and max_groups if one has several records."
            )
