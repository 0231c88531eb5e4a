"""Columns of Python objects as plain text, since an engine would guess their type from what they hold."""

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np

_FARTHEST = 10**300


def with_plain_text(frame: Any, names: Sequence[str], numbers: Sequence[str]) -> tuple[Any, frozenset[str]]:
    """A pandas frame whose named columns of objects hold text or nothing, and which columns those are.

    Columns of Python's own strings are gone through as well, since such a string need not be good text.
    """
    objects = [name for name in names if frame[name].dtype == np.object_]
    strings = [name for name in names if getattr(frame[name].dtype, "storage", None) == "python"]
    plain = {name: [plain_text(item, name in numbers) for item in frame[name]] for name in objects + strings}
    columns = {name: np.array(items, dtype=object) for name, items in plain.items()}
    return (frame.assign(**columns) if columns else frame), frozenset(objects)


def plain_text(item: object, number: bool = False) -> str | None:
    """One object as text; None for what is missing, and for anything that is not plain. It never raises.

    >>> plain_text(True), plain_text(True, number=True), plain_text(float("nan")), plain_text([1])
    ('true', '1', None, None)
    """
    if isinstance(item, np.generic):
        item = item.item()
    if isinstance(item, str):
        return str.encode(item, "utf-8", "ignore").decode() if not item.isascii() else str.__str__(item)
    if isinstance(item, bool):
        return str(int(item)) if number else str(item).lower()
    if isinstance(item, int):
        return str(max(-_FARTHEST, min(_FARTHEST, int(item))))
    if isinstance(item, float):
        return None if math.isnan(item) else float.__repr__(item)
    if isinstance(item, Decimal):
        return None if item.is_nan() else str(item)
    if type(item) is UUID or isinstance(item, date):
        text = str(item)
        return None if text == "NaT" else text
    return None
