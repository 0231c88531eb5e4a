"""Files of a collection: none is counted twice."""

from collections.abc import Sequence
from pathlib import Path

from sourdine.core.errors import InvalidParameter


def read_bytes(path: Path) -> bytes:
    """What a file holds, without the mark that some editors put before UTF-8."""
    try:
        return path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    except OSError as problem:
        raise InvalidParameter(
            f"The file {path} cannot be read ({problem.strerror}). Check the path."
        ) from None


def refuse_twice(paths: Sequence[Path]) -> None:
    """Refuse a file that is named twice: its people would count twice, and intervals would be too narrow."""
    seen = set()
    for path in paths:
        if path.resolve() in seen:
            raise InvalidParameter(
                f"The file {path} is named twice, and its reports would be counted twice. Name it once."
            )
        seen.add(path.resolve())
