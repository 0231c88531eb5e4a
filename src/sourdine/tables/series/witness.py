"""A small file beside the state of a series: it tells the newest state from a copy that was restored.

What was shown since a copy was made cannot be known from the copy. So which state rows were last shown from
is written down outside of it.
"""

import hmac
import json
from dataclasses import dataclass
from pathlib import Path

from sourdine.core import files as disk
from sourdine.core.errors import LedgerError


@dataclass(frozen=True)
class Witnessed:
    """What rows were last shown from: the state's token then, and how many periods it held."""

    token: str
    closed: int

    def is_of(self, token: str | None, closed: int) -> bool:
        """Whether it is this one."""
        same = hmac.compare_digest(self.token.encode(), (token or "none").encode())
        return same and self.closed == closed


@dataclass(frozen=True)
class Witness:
    """The witness of a state, beside it."""

    state: Path

    @property
    def path(self) -> Path:
        """Where it lies."""
        return self.state.with_name(self.state.name + ".shown")

    def write(self, token: str, closed: int) -> None:
        """Write down which state is the newest, and which file it is."""
        content = {"token": token, "closed": closed, "file": self._mark()}
        try:
            disk.write_whole(self.path, json.dumps(content) + "\n")
        except OSError as problem:
            raise LedgerError(
                f"It cannot be written down beside the series {self.state} that rows are shown "
                f"({problem.strerror or 'no reason is known'}), so they are not. Let its folder be written "
                "to, and try again: nothing is lost."
            ) from problem

    def read(self) -> Witnessed | None:
        """What was written down of this file; None if the witness is of another, or lost."""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            witnessed, mark = Witnessed(str(content["token"]), int(content["closed"])), content["file"]
            return witnessed if mark == self._mark() else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _mark(self) -> list[int]:
        """What tells a file from a copy of it."""
        status = self.state.stat()
        return [status.st_dev, status.st_ino]
