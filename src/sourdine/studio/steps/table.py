"""The first step: which file, and the names of its columns."""

from typing import Any

from sourdine.core.format import byte_count, counted
from sourdine.studio.desk import Desk, Sheet


def table_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """The file, its columns, and their types where the format states them."""
    source = sheet.file.blocks.get("table", {}).get("source", "")
    return {
        "source": source if isinstance(source, str) else ", ".join(map(str, source)),
        "bytes": byte_count(sheet.header.size),
        "columns": sheet.header.types,
        "count": counted(len(sheet.header.types), "column"),
        "states_types": sheet.header.states_types,
        "trouble": sheet.header.trouble,
    }
