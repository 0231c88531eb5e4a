"""Results on the disk, so that a long series of experiments can be broken off and gone on with."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import sourdine
from sourdine.accounting.accountant import Bracket
from sourdine.core import disk
from sourdine.core.figure import Figure
from sourdine.experiments.data import data_sentence
from sourdine.experiments.registry import ClaimVerdict, Experiment, Result, Settings, Standing
from sourdine.report.pages.page import Section
from sourdine.report.table import Cell, TextTable

FOLDER = ".done"


def run_or_read(experiment: Experiment, settings: Settings, folder: Path) -> tuple[Result, bool]:
    """The result that an earlier run left in a folder, or a new one; and whether it is an earlier one.

    An earlier result counts only if it was made by the same code with the same settings on the same data.
    """
    place, mark = _place(experiment, folder), _mark(experiment.name, settings)
    try:
        held = json.loads(place.read_text(encoding="utf-8"))
        if held["mark"] == mark:
            return from_json(held["result"]), True
    except (OSError, ValueError, KeyError, TypeError):
        pass  # none, or not whole
    result = experiment.run(settings)
    place.parent.mkdir(parents=True, exist_ok=True)
    disk.write_whole(place, json.dumps({"mark": mark, "result": to_json(result)}))
    return result, False


def read(experiment: Experiment, folder: Path) -> Result | None:
    """What a run left in a folder, by whatever code and settings it was made; or none."""
    try:
        return from_json(json.loads(_place(experiment, folder).read_text(encoding="utf-8"))["result"])
    except OSError:
        return None


def forget(experiment: Experiment, folder: Path) -> None:
    """Throw away what an earlier run left in a folder."""
    _place(experiment, folder).unlink(missing_ok=True)


def _place(experiment: Experiment, folder: Path) -> Path:
    return folder / FOLDER / f"{experiment.name}.json"


def _mark(name: str, settings: Settings) -> str:
    data = None if settings.data is None else str(settings.data.resolve())
    return f"{_code()} {'quick' if settings.quick else 'full'} {data} {data_sentence(name, settings.data)}"


@cache
def _code() -> str:
    """A fingerprint of the package."""
    root = Path(sourdine.__file__).parent
    found = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        found.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()


def to_json(result: Result) -> dict[str, Any]:
    """A result as plain data that `from_json` turns back into an equal one."""
    return {
        "name": result.name,
        "title": result.title,
        "lead": result.lead,
        "verdicts": [asdict(each) for each in result.verdicts],
        "sections": [
            {
                "title": each.title,
                "chapter": each.chapter,
                "paragraphs": each.paragraphs,
                "points": each.points,
                "tables": [_of_table(table) for table in each.tables],
                "figures": [asdict(figure) for figure in each.figures],
            }
            for each in result.sections
        ],
    }


def from_json(held: Mapping[str, Any]) -> Result:
    """The result of such data."""
    return Result(
        name=held["name"],
        title=held["title"],
        lead=held["lead"],
        verdicts=tuple(
            ClaimVerdict(**{**each, "standing": Standing(each["standing"])}) for each in held["verdicts"]
        ),
        sections=tuple(
            Section(
                title=each["title"],
                chapter=each["chapter"],
                paragraphs=tuple(each["paragraphs"]),
                points=tuple(each["points"]),
                tables=tuple(map(_table, each["tables"])),
                figures=tuple(Figure(**figure) for figure in each["figures"]),
            )
            for each in held["sections"]
        ),
    )


def _of_table(table: TextTable) -> dict[str, Any]:
    return {
        "name": table.name,
        "title": table.title,
        "columns": table.columns,
        "rows": [[_of_cell(cell) for cell in row] for row in table.rows],
        "note": table.note,
    }


def _table(held: Mapping[str, Any]) -> TextTable:
    rows = tuple(tuple(_cell(cell) for cell in row) for row in held["rows"])
    return TextTable(
        name=held["name"],
        title=held["title"],
        columns=tuple(held["columns"]),
        rows=rows,
        note=held["note"],
    )


def _of_cell(cell: Cell) -> object:
    if isinstance(cell, Bracket):
        return {"lower": cell.lower, "upper": cell.upper}
    return {"decimal": str(cell)} if isinstance(cell, Decimal) else cell


def _cell(held: Any) -> Cell:
    if isinstance(held, Mapping):
        return Decimal(held["decimal"]) if "decimal" in held else Bracket(held["lower"], held["upper"])
    found: Cell = held
    return found
