"""The script that draws charts, and the pictures that need the renderer of the `pictures` extra."""

from functools import cache
from pathlib import Path

from sourdine.core.errors import SourdineError


@cache
def chart_library() -> str:
    """Return the JavaScript that draws charts, as one script; its licences are in `charts_licences.txt`."""
    try:
        return Path(__file__).with_name("charts.js").read_text("utf-8")
    except FileNotFoundError:
        raise SourdineError(
            "Charts need the script that an installation makes, which is not there. "
            "Install Sourdine, in its checkout: pip install -e ."
        ) from None
