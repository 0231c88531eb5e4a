"""Lines of text that people hand to a verb, from a file or from standard input."""

import sys
from pathlib import Path

from sourdine.core.errors import InvalidParameter


def lines_of(path: Path) -> list[str]:
    """The lines of a file, or of standard input for '-', without a byte order mark and empty last lines."""
    try:
        raw = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        text = raw.decode("utf-8-sig")
    except OSError as problem:
        raise InvalidParameter(
            f"The file {path} cannot be read ({problem.strerror}). Check the path."
        ) from None
    except UnicodeDecodeError:
        raise InvalidParameter(
            f"The file {path} is not text in UTF-8. Save it as UTF-8, one entry a line."
        ) from None
    lines = text.replace("\r\n", "\n").split("\n")
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise InvalidParameter(f"The file {path} is empty. Write one entry a line.")
    return lines
