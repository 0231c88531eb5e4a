"""What people hand to a verb: JSON from a file, a text of one line."""

import json
from pathlib import Path

from sourdine.core import check
from sourdine.core.errors import InvalidParameter


def read_json(path: Path) -> object:
    """What a JSON file holds."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise InvalidParameter(
            f"The file {path} cannot be read ({problem.strerror}). Check the path."
        ) from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"The file {path} is not a text. Name a file in JSON.") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidParameter(
            f"The file {path} is no JSON that can be read. It is cut short or was changed. Write it again."
        ) from None


def one_line(owner: str, name: str, text: str) -> str:
    """A text without line breaks and control characters, which would deceive whoever reads it later."""
    if not text.strip() or not text.isprintable():
        raise check.fail(owner, name, "be one line of letters and signs", text, "Leave out line breaks.")
    return text
