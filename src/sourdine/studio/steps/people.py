"""The second step: whom the release protects, and how much of one of them counts."""

from typing import Any

from sourdine.studio.desk import Desk, Sheet
from sourdine.studio.suggestions import suggest
from sourdine.tables.measurements.measurement import plural

_MOST_DRAWN = 6


def people_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """The unit, its column, and a picture of what counts of one unit."""
    privacy = sheet.file.blocks.get("privacy", {})
    unit = privacy.get("unit") or "person"
    rows, groups = (_whole(privacy.get(name, 1)) for name in ("max_rows", "max_groups"))
    likely = [name for name in sheet.header.types if _tells_apart(name, sheet.header.types[name])]
    return {
        "unit": unit,
        "units": plural(str(unit)),
        "column": privacy.get("column") or "",
        "likely": likely,
        "names": list(sheet.header.types),
        "rows": rows,
        "groups": groups,
        "neighbours": privacy.get("neighbours", "add-remove"),
        "drawn_rows": min(rows, _MOST_DRAWN),
        "drawn_groups": min(groups, _MOST_DRAWN),
    }


def _whole(content: object) -> int:
    return content if isinstance(content, int) and content >= 1 else 1


def _tells_apart(name: str, stated: str | None) -> bool:
    """Whether a name reads like that of a column which tells units apart."""
    suggestion = suggest(name, stated)
    return suggestion is not None and suggestion.block is None and "apart" in suggestion.why
