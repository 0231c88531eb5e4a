"""Questions in SQL: each becomes the same query that a specification or the builder would make."""

from sourdine.tables.sql.select import SqlQuestion, read_block, read_sql
from sourdine.tables.sql.sources import SqlTable

__all__ = ["SqlQuestion", "SqlTable", "read_block", "read_sql"]
