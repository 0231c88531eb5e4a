"""Texts that a ledger keeps: short, and never empty."""

from collections.abc import Mapping

from sourdine.core import check

_MOST_TEXT = 1000
_MOST_DECLARED = 100


def check_text(name: str, value: object) -> None:
    """Refuse what is no such text."""
    if not isinstance(value, str) or not value.strip() or len(value) > _MOST_TEXT:
        raise check.fail("Ledger", name, f"be a text of 1 to {_MOST_TEXT} characters", value)


def declarations(declared: object) -> dict[str, str] | None:
    """Declarations as they are now: the mapping may change later."""
    if declared is None:
        return None
    if not isinstance(declared, Mapping) or len(declared) > _MOST_DECLARED:
        raise check.fail("Ledger", "declared", f"be a mapping of up to {_MOST_DECLARED} texts", declared)
    for text in (*declared.keys(), *declared.values()):
        check_text("declared", text)
    return dict(declared)
