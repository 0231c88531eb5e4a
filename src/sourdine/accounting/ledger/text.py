"""Texts that a ledger keeps: short, and never empty; and the digest of those that are long."""

import hashlib
import json
from collections.abc import Mapping

from sourdine.core import check

_MOST_TEXT = 1000


def check_text(name: str, value: object) -> None:
    """Refuse what is no such text."""
    if not isinstance(value, str) or not value.strip() or len(value) > _MOST_TEXT:
        raise check.fail("Ledger", name, f"be a text of 1 to {_MOST_TEXT} characters", value)


def declarations(declared: object) -> dict[str, str]:
    """Declarations as they are now, texts by name; they may be many and long, since a digest is kept."""
    if not isinstance(declared, Mapping):
        raise check.fail("Ledger", "declared", "be a mapping of texts", declared)
    held = dict(declared)
    for text in (*held.keys(), *held.values()):
        if not isinstance(text, str):
            raise check.fail("Ledger", "declared", "hold texts by name", text)
    return held


def declared_digest(declared: Mapping[str, str]) -> str:
    """The SHA-256 of declarations as JSON in ASCII without spaces, sorted by name.

    >>> declared_digest({"b": "2", "a": "1"}) == declared_digest({"a": "1", "b": "2"})
    True
    >>> declared_digest({})[:16]  # of the two characters {}
    '44136fa355b3678a'
    """
    written = json.dumps(dict(declared), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode("ascii")).hexdigest()
