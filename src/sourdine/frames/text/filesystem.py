"""The pieces of files of text as a file system that an engine reads.

It is loaded with the first question: a table is declared without it, and what it rests on takes long to load.
"""

import io
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from fsspec import AbstractFileSystem

from sourdine.frames.text.pieces import PROTOCOL, SIZE, TextFile


class Pieces(AbstractFileSystem):  # type: ignore[misc]
    """The pieces of some files, by names like sourdine://2/5 for the sixth piece of the third file."""

    protocol = PROTOCOL
    cachable = False

    def __init__(self, files: Sequence[TextFile]) -> None:
        super().__init__(skip_instance_cache=True)
        self.files = tuple(files)
        self._sizes: dict[str, int] = {}

    def names(self, numbers: Sequence[int]) -> list[str]:
        """What the pieces of some of the files are called."""
        return [f"{PROTOCOL}://{i}/{j}" for i in numbers for j in range(self.files[i].pieces)]

    def open(self, path: str, mode: str = "rb", *args: Any, **kwargs: Any) -> io.BytesIO:
        """A piece, made now."""
        file, piece = map(int, self._plain(path).split("/"))
        content = io.BytesIO(self.files[file].piece(piece))
        self._sizes[self._plain(path)] = content.getbuffer().nbytes
        return content

    def size(self, path: str) -> int:
        """The bytes of a piece that was opened: they are the same each time."""
        return self._sizes[self._plain(path)]

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        """That a piece is a file."""
        return {"name": path, "type": "file", "size": self._sizes.get(self._plain(path), SIZE)}

    def exists(self, path: str, **kwargs: Any) -> bool:
        """Pieces are known by their numbers alone."""
        return True

    def isfile(self, path: str) -> bool:
        """Pieces are files."""
        return True

    def glob(self, path: str, **kwargs: Any) -> list[str]:
        """A name is no pattern."""
        return [path]

    def modified(self, path: str) -> datetime:
        """Nothing is kept of a piece, so it never grows old."""
        return datetime.fromtimestamp(0, UTC)

    def _plain(self, path: str) -> str:
        return path.removeprefix(f"{PROTOCOL}://")
