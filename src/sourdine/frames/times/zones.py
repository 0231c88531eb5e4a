"""Clocks of places: when they are set forward or back, as zoneinfo knows it, by which version of its data.

The offsets between a first and a last moment are worked out here and written into what an engine is asked, so
that every engine has the same clock, whatever zone its session or its machine is set to.
"""

import contextlib
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo, ZoneInfoNotFoundError

from sourdine.core.errors import InvalidParameter

_STEP = timedelta(hours=6)  # no clock is set twice within it
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def check_zone(name: str) -> None:
    """Refuse a zone that is not known."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidParameter(
            f"There is no time zone '{name}'. Name it by continent and city, as in Europe/Paris, or UTC."
        ) from None


@lru_cache(maxsize=256)
def offsets(name: str, first: int, last: int) -> tuple[tuple[int, int], ...]:
    """From which second of UTC on a clock is how many seconds ahead, between two seconds of UTC.

    >>> offsets("Europe/Paris", 1711846000, 1711850000)
    ((1711846000, 3600), (1711846800, 7200))
    """
    zone = ZoneInfo(name)
    at, end = _EPOCH + timedelta(seconds=first), _EPOCH + timedelta(seconds=last)
    changes = [(first, _offset(zone, at))]
    while at < end:
        after = min(at + _STEP, end)
        if _offset(zone, after) != changes[-1][1]:
            low, high = _seconds(at), _seconds(after)
            while high - low > 1:
                middle = (low + high) // 2
                moved = _offset(zone, _EPOCH + timedelta(seconds=middle)) != changes[-1][1]
                low, high = (low, middle) if moved else (middle, high)
            changes.append((high, _offset(zone, after)))
        at = after
    return tuple(changes)


def _seconds(at: datetime) -> int:
    return int((at - _EPOCH).total_seconds())


def _offset(zone: ZoneInfo, at: datetime) -> int:
    ahead = at.astimezone(zone).utcoffset()
    assert ahead is not None
    return int(ahead.total_seconds())


def on_clock(utc: str, name: str, first: int, last: int) -> str:
    """In SQL, seconds of UTC as those on a clock; they lie between a first and a last of UTC."""
    changes = offsets(name, first, last)
    return f"({utc} + {_search(utc, changes, 0, len(changes))})"


def _search(utc: str, changes: tuple[tuple[int, int], ...], low: int, high: int) -> str:
    """The offset by halving."""
    if high - low == 1:
        return f"({changes[low][1]})"
    middle = (low + high) // 2
    before, after = _search(utc, changes, low, middle), _search(utc, changes, middle, high)
    return f"CASE WHEN {utc} < {changes[middle][0]} THEN {before} ELSE {after} END"


@lru_cache(maxsize=1)
def zone_data_version() -> str:
    """The version of the data about time zones that is used here, such as 2025b."""
    for folder in TZPATH:
        place = Path(folder)
        if not (place / "UTC").exists():
            continue
        for name, start in (("tzdata.zi", "# version "), ("+VERSION", "")):
            try:
                line = (place / name).read_text(encoding="utf-8", errors="replace").partition("\n")[0]
            except OSError:
                continue
            return line.removeprefix(start).strip()
        return "unknown"
    with contextlib.suppress(ModuleNotFoundError):
        return str(import_module("tzdata").IANA_VERSION)
    return "unknown"
