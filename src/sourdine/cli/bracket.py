"""An epsilon between two ends, for machines and for people."""

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sourdine.accounting.bracket import Bracket


def finite(value: float) -> float | None:
    """JSON has no infinity."""
    return value if math.isfinite(value) else None


def plain_bracket(found: "Bracket") -> dict[str, float | None]:
    """Both ends, for machines."""
    return {"lower": finite(found.lower), "upper": finite(found.upper)}


def say_bracket(found: "Bracket", delta: float) -> str:
    """The upper end, which is the claim; then both, if the lower one says anything."""
    from sourdine.core.digits import plain, shorten_down, shorten_up

    upper = shorten_up(found.upper)
    at = f" at delta {plain(delta)}" if delta else ""
    both = f" (certified: between {shorten_down(found.lower)} and {upper})" if found.lower else ""
    return f"{upper}{at}{both}"
