"""A sweep on disk: a line for each finished run, so that one that was killed goes on without repeating any.

A run that was killed leaves no line and is begun anew with other noise. That costs nothing more: nothing of a
run is told to anybody before its line is on the disk.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from sourdine.core.errors import InvalidParameter

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Finished:
    """One run: which setting, which repeat, accuracy on public data at the end and after each epoch."""

    setting: int
    repeat: int
    accuracy: float
    seconds: float
    history: tuple[float, ...]


class Journal:
    """The file of one sweep. Its first line says what the sweep is, each other one tells of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> tuple[dict[str, object], list[Finished]] | None:
        """What the sweep is and which runs are finished; a line that a kill has cut short is dropped."""
        if not self.path.exists():
            return None
        held = self.path.read_bytes()
        whole = held[: held.rfind(b"\n") + 1]
        if not whole:
            return None  # killed before the first line was whole: nothing was begun
        try:
            first, *lines = [json.loads(line) for line in whole.splitlines()]
            if first["format"] != _FORMAT:
                raise ValueError("unknown format")
            done = [Finished(**{**line, "history": tuple(line["history"])}) for line in lines]
        except (KeyError, TypeError, ValueError) as problem:
            raise InvalidParameter(
                f"The journal {self.path} cannot be read. Move it away to begin anew, which costs anew."
            ) from problem
        if len(whole) < len(held):
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        return {name: value for name, value in first.items() if name != "format"}, done

    def begin(self, what: Mapping[str, object]) -> None:
        """Write what the sweep is; the file is its owner's alone."""
        self.path.unlink(missing_ok=True)  # at most the beginning of a first line
        os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        self._append({"format": _FORMAT, **what})

    def add(self, run: Finished) -> None:
        """A finished run; it is on the disk when this returns."""
        self._append(asdict(run))

    def _append(self, content: Mapping[str, object]) -> None:
        with self.path.open("ab") as file:
            file.write(json.dumps(content, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
