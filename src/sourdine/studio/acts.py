"""What can be done to a specification from the page, each as changes of its file."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sourdine.core.errors import InvalidParameter
from sourdine.studio.desk import Desk, Sheet
from sourdine.studio.draft_file import Edit, place_of
from sourdine.studio.suggestions import FIELDS, TYPES, suggest
from sourdine.studio.values import read_value

Asked = Mapping[str, Any]
_BLOCKS = ("table", "privacy", "columns", "queries")
_FIXED = (("table", "source"), ("table", "checked"))  # set by choosing a table, and by a check


def act_on(desk: Desk, name: str, asked: Asked) -> Sheet:
    """Carry out what the page asks for, on the version that it has seen."""
    act = ACTS.get(str(asked.get("act")))
    if act is None:
        raise InvalidParameter("The page asked for something unknown. Reload it.")
    return desk.change(name, str(asked.get("version")), lambda sheet: act(sheet, asked))


def _set(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """Set one field to what was typed."""
    at = place_of(str(asked.get("at", "")))
    if at[0] not in _BLOCKS or at in _FIXED or not 2 <= len(at) <= 5:
        raise InvalidParameter("The page asked for a field that it has not. Reload it.")
    block = sheet.at(at[:-1])
    held = block if isinstance(block, Mapping) else {}
    content = read_value(str(at[-1]), asked.get("value", ""), held)
    if held.get(str(at[-1])) == content and type(held.get(str(at[-1]))) is type(content):
        return []
    return [Edit(at, content), *_with(at, content, held)]


def _with(at: tuple[str | int, ...], content: object, privacy: Mapping[str, Any]) -> list[Edit]:
    """What changes along: only units that a column tells apart have contribution bounds."""
    if at != ("privacy", "column"):
        return []
    bounds = ("max_rows", "max_groups")
    if content is None:
        return [Edit(("privacy", name), None) for name in bounds if name in privacy]
    return [Edit(("privacy", name), 1) for name in bounds if name not in privacy]


def _declare(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """Declare a column to be of a type, or leave it out."""
    name, kind = str(asked.get("column", "")), str(asked.get("value", ""))
    held = sheet.file.blocks.get("columns", {}).get(name)
    if held is None and name not in sheet.header.types:
        raise InvalidParameter(f"The table has no column '{name}'.")
    if kind not in TYPES:
        return [] if held is None else [Edit(("columns", name), None)]
    kept = held if isinstance(held, Mapping) else {}
    block = {"type": kind, **{each: kept.get(each, blank) for each, blank in FIELDS[kind].items()}}
    return [Edit(("columns", name), block)]


def _suggested(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """Take what is suggested for one column, or for all that still wait."""
    wanted = asked.get("column")
    edits = []
    declared = sheet.file.blocks.get("columns", {})
    for name, stated in sheet.header.types.items():
        suggestion = suggest(name, stated)
        if suggestion is None or (wanted is not None and name != wanted):
            continue
        if wanted is None and not _waits(declared.get(name)):
            continue
        if suggestion.block is not None or name in declared:
            edits.append(Edit(("columns", name), suggestion.block))
    return edits


def _waits(block: object) -> bool:
    return isinstance(block, Mapping) and block.get("type") not in TYPES


def _drop_blank(sheet: Sheet, asked: Asked) -> Sequence[Edit]:
    """Leave out every column of which nobody said what it holds."""
    declared = sheet.file.blocks.get("columns", {})
    return [Edit(("columns", name), None) for name, block in declared.items() if _waits(block)]


ACTS: dict[str, Callable[[Sheet, Asked], Sequence[Edit]]] = {
    "set": _set,
    "declare": _declare,
    "suggested": _suggested,
    "drop-blank": _drop_blank,
}
