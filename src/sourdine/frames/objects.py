"""Columns of pandas whose type an engine would guess from what they hold: each gets the one it has."""

import math
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

_FARTHEST = 10**300
_NULLABLE = {"i": "Int64", "u": "UInt64", "b": "boolean"}


def with_plain_columns(frame: Any, names: Sequence[str], units: Sequence[str]) -> Any:
    """A pandas frame of the named columns, objects as text or nothing, categories as what those are.

    Columns of Python's own strings are gone through as well, since such a string need not be good text. As
    they are, categories that are numbers would be floats if one is missing and whole numbers if none is.
    """
    if not names:
        return frame
    import pandas as pd

    columns: dict[str, Any] = {}
    for name in names:
        columns[name] = held = frame[name]
        if hasattr(held.dtype, "categories"):
            columns[name] = _of_categories(held, name in units)
        elif _is_guessed(held.dtype):
            columns[name] = _plain(held, name in units)
        elif isinstance(held.dtype, pd.StringDtype):
            columns[name] = _arrow_texts(held.array)
    if any(hasattr(held.dtype, "pyarrow_dtype") for held in columns.values()):
        columns = {name: _for_arrow(held) for name, held in columns.items()}
    # by arrays: an index, in which labels may repeat, would be compared for every column
    return pd.DataFrame({name: getattr(held, "array", held) for name, held in columns.items()}, copy=False)


def _arrow_texts(held: Any) -> Any:
    """Texts as the engine takes them from Arrow itself.

    Of those that Arrow holds for pandas it would make strings of Python, and raise at the first whose bytes
    are no text.
    """
    import pandas as pd
    import pyarrow as pa

    return pd.arrays.ArrowExtensionArray(pa.array(held, pa.large_string()))


def _for_arrow(held: Any) -> Any:
    """A column of a frame that goes through Arrow as a whole: of the type it has, whatever it holds."""
    if held.dtype == np.object_:
        return _arrow_texts(held)
    return held.astype(np.float32) if held.dtype == np.float16 else held


def _is_guessed(dtype: Any) -> bool:
    return dtype == np.object_ or getattr(dtype, "storage", None) == "python"


def _plain(items: Iterable[object], unit: bool) -> NDArray[np.object_]:
    return np.array([plain_text(item, unit) for item in items], dtype=object)


def _of_categories(held: Any, unit: bool) -> Any:
    """A column of categories as one of the type that these have."""
    categories = held.cat.categories
    if _is_guessed(categories.dtype):
        texts = _plain([*categories, None], unit)  # the last stands for a missing one, of code -1
        return texts[held.cat.codes.to_numpy()]
    if getattr(categories.dtype, "storage", None) is not None:
        return held
    kind = _NULLABLE.get(getattr(categories.dtype, "kind", ""), categories.dtype)
    return held.astype(kind)


def plain_text(item: object, unit: bool = False) -> str | None:
    """One object as text; None for what is missing, and for anything that is not plain. It never raises.

    Numbers that are equal tell one unit, and so do times, so there they are written alike.

    >>> plain_text(True), plain_text(float("nan")), plain_text([1]), plain_text(2.0), plain_text(2.0, True)
    ('true', None, None, '2.0', '2')
    >>> plain_text("caf\\udce9") is None
    True
    """
    try:
        return _text(item, unit)
    except Exception:  # a class of somebody's own may do anything
        return None


def _text(item: object, unit: bool) -> str | None:
    if isinstance(item, np.generic) and not isinstance(item, np.datetime64 | np.timedelta64):
        item = item.item()
    if isinstance(item, str):
        # halves of letters are no text: left out, they would make one text, or one unit, of two
        return str.encode(item).decode()
    if isinstance(item, bool):
        return str(item).lower()
    if unit and isinstance(item, float | Decimal) and math.isfinite(item) and item == int(item):
        item = int(item)
    if unit and isinstance(item, datetime) and item.tzinfo is not None:
        item = item.astimezone(UTC)
    if isinstance(item, int):
        whole = int(item)
        if unit and abs(whole) > _FARTHEST:
            return hex(whole)  # units stay apart
        return str(max(-_FARTHEST, min(_FARTHEST, whole)))
    if isinstance(item, float):
        return None if math.isnan(item) else float.__repr__(item)
    if isinstance(item, Decimal):
        return None if item.is_nan() else str(item)
    if unit and isinstance(item, bytes):
        return "\\x" + item.hex()
    if type(item) is UUID or isinstance(item, date | np.datetime64):
        text = str(item)
        return None if text == "NaT" else text
    return None
