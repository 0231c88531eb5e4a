"""The third step: what each column holds, as people know it without looking."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import SourdineError
from sourdine.frames.expressions import TimePeriod
from sourdine.studio.desk import Desk, Sheet
from sourdine.studio.draft_file import block_text
from sourdine.studio.payments import LedgerPayment, payments_for
from sourdine.studio.suggestions import TYPES, Suggestion, suggest
from sourdine.tables.bounds import bounds_purpose

PUBLIC = {
    "joins": "a public table that is joined",
    "hierarchies": "a hierarchy, such as towns in regions",
}
MEANING = {
    "integer": "Numbers outside the bounds are moved to the nearer one. Wide bounds add noise.",
    "real": "Numbers outside the bounds are moved to the nearer one. Wide bounds add noise.",
    "category": "Each key is shown, whether anybody has it or not. Other values count as unknown.",
    "flag": "Both answers are shown.",
    "text": "Keys that enough units have are chosen privately. That takes a delta, and part of the budget.",
    "date": "Every period from first to last is shown. Days outside are left out.",
    "datetime": "Every period from first to last is shown. Times outside are left out.",
}


@dataclass(frozen=True)
class ColumnView:
    """A column of the table or of the specification, as the page shows it."""

    name: str
    block: Mapping[str, Any] | None
    stated: str | None
    suggestion: Suggestion | None
    derived: bool
    text: str  # as the specification has it

    @property
    def type(self) -> str:
        """The declared type; '' while it waits, 'out' if the column is left out."""
        if self.block is None:
            return "out"
        kind = self.block.get("type")
        return kind if kind in TYPES else ""

    @property
    def hints(self) -> Mapping[str, str]:
        """What a blank may be."""
        return self.suggestion.hints if self.suggestion else {}

    @property
    def meaning(self) -> str:
        """What the type means for privacy."""
        return MEANING.get(self.type, "")

    @property
    def open_suggestion(self) -> Suggestion | None:
        """What is suggested, as long as nothing is declared."""
        return self.suggestion if self.type == "" else None


def columns_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """Every column, declared, waiting or left out."""
    blocks = sheet.file.blocks.get("columns", {})
    unit = sheet.file.blocks.get("privacy", {}).get("column")
    names = list(dict.fromkeys([*sheet.header.types, *blocks]))
    columns = [
        ColumnView(
            name,
            blocks.get(name),
            sheet.header.types.get(name, ""),
            suggest(name, sheet.header.types.get(name, "")),
            "expression" in blocks.get(name, {}),
            block_text(blocks.get(name)),
        )
        for name in names
    ]
    return {
        "columns": columns,
        "types": TYPES,
        "public": [
            (kind, name, block_text(block))
            for kind in PUBLIC
            for name, block in sheet.file.blocks.get(kind, {}).items()
        ],
        "kinds": PUBLIC,
        "unit": unit,
        "can_pay": sheet.ledger is not None,
        "paid": _paid(sheet, blocks),
        "periods": [str(each) for each in TimePeriod],
        "waiting": sum(each.type == "" and not each.derived for each in columns),
        "suggested": sum(each.open_suggestion is not None for each in columns),
    }


def _paid(sheet: Sheet, blocks: Mapping[str, Mapping[str, Any]]) -> dict[str, LedgerPayment]:
    """The columns whose bounds were paid for and are not declared as found, each with the newest payment."""
    numbers = [
        name
        for name, block in blocks.items()
        if block.get("type") in ("integer", "real") and not block.get("found")
    ]
    if sheet.ledger is None or not numbers:
        return {}
    try:
        with Ledger.open(sheet.ledger) as ledger:
            paid = {name: payments_for(ledger, bounds_purpose(name)) for name in numbers}
    except SourdineError:  # it is told where the ledger is chosen
        return {}
    return {name: payments[-1] for name, payments in paid.items() if payments}
