"""A folder that gets all files of a release at once, or none."""

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from sourdine.cli import show
from sourdine.core.errors import InvalidParameter

UNFINISHED = ".unfinished"


class Outbox:
    """A place in a folder, taken before anything is paid; files wait there until they are all published.

    What is published already is never written over, and two processes cannot take the same folder.
    """

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder = folder
        self._names = names
        self._made = not folder.exists()
        self._waiting = folder / UNFINISHED

    def __enter__(self) -> "Outbox":
        show.check_folder(self.folder)
        try:
            self._waiting.mkdir()
        except FileExistsError:
            raise InvalidParameter(
                f"A release into {self.folder} is under way, or was cut short after it was paid. "
                f"Name another folder with -o, or remove {self._waiting} if nothing writes there any more."
            ) from None
        for name in self._names:
            if (self.folder / name).exists():
                self._leave()
                raise InvalidParameter(
                    f"{self.folder} already holds a file {name}, which is not written over. "
                    "Name another folder with -o."
                )
        return self

    def place(self, name: str) -> Path:
        """Where a file waits."""
        return self._waiting / name

    def write(self, name: str, text: str) -> None:
        """Put a text to wait there under a name, whole or not at all."""
        beside = self.place(f"{name}.part")
        beside.write_text(text, encoding="utf-8")
        beside.replace(self.place(name))

    def publish(self) -> list[Path]:
        """Move every file that waits to its place, each whole."""
        found = []
        for name in self._names:
            if self.place(name).exists():
                self.place(name).replace(self.folder / name)
                found.append(self.folder / name)
        return found

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        shutil.rmtree(self._waiting, ignore_errors=True)
        if self._made:
            with contextlib.suppress(OSError):  # it is kept if something is in it
                self.folder.rmdir()
