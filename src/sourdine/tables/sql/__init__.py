"""Questions in SQL: each becomes the same query that a specification or the builder would make."""

from sourdine.tables.sql.select import SqlQuestion, SqlTable, read_block, read_sql

__all__ = ["SqlQuestion", "SqlTable", "read_block", "read_sql"]
