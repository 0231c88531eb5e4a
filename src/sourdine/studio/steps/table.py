"""The first step: which file, and the names of its columns."""

from typing import Any

from sourdine.core.format import counted
from sourdine.studio.desk import Desk, Sheet


def table_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """The file, its columns, and their types where the format states them."""
    source = sheet.file.blocks.get("table", {}).get("source", "")
    return {
        "source": source if isinstance(source, str) else ", ".join(map(str, source)),
        "bytes": _bytes(sheet.header.size),
        "columns": sheet.header.types,
        "count": counted(len(sheet.header.types), "column"),
        "states_types": sheet.header.states_types,
        "trouble": sheet.header.trouble,
    }


def _bytes(size: int) -> str:
    """A size as people read it.

    >>> _bytes(1_500), _bytes(12)
    ('1.5 kB', '12 B')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000  # type: ignore[assignment]
    return f"{size:.3g} TB"
