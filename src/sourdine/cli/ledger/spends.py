"""Spends from a file: a list of them, a certificate, or all that a ledger exported."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sourdine.cli.shared.parse import read_json
from sourdine.core.errors import InvalidParameter, SourdineError

if TYPE_CHECKING:
    from sourdine.accounting.spend import Spend


def read_blocks(path: Path) -> "list[list[Spend]]":
    """Every charge in a file, as the spends of one block each: an export is priced charge by charge."""
    from sourdine.accounting.spend import Spend

    blocks = _listed(read_json(path))
    if not blocks or not all(blocks):
        raise InvalidParameter(
            f"The file {path} must hold spends: a JSON list of them, or a whole `sourdine ledger export`."
        )
    try:
        return [[Spend.from_json(item) for item in block] for block in blocks]
    except SourdineError:
        raise
    except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise InvalidParameter(
            f"A spend in {path} cannot be read. It was changed, or written by other software."
        ) from None


def _listed(document: object) -> list[list[dict[str, object]]]:
    """The descriptions in a document, block by block; nothing if it is of another kind."""
    blocks: list[Any]
    if isinstance(document, list):
        blocks = [document]
    elif isinstance(document, dict) and isinstance(document.get("entries"), list):
        blocks = [entry.get("spends") if isinstance(entry, dict) else None for entry in document["entries"]]
    else:
        blocks = [document.get("spends") if isinstance(document, dict) else None]
    known = all(isinstance(block, list) and all(isinstance(item, dict) for item in block) for block in blocks)
    return blocks if known else []
