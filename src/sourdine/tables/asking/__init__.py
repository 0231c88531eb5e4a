"""Questions in Python: columns that know what can be asked of them, and a builder of queries."""

from sourdine.tables.asking.asked import AskedOf
from sourdine.tables.asking.columns import Columns, case
from sourdine.tables.asking.question import TableQuestion

__all__ = ["AskedOf", "Columns", "TableQuestion", "case"]
