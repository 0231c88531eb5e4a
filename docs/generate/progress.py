"""How far a long build is, in lines that also say so where there is no terminal."""

import sys
import time

_SECONDS = 2.0  # between two lines


class Progress:
    """A count of steps that are done, told every two seconds."""

    def __init__(self, what: str) -> None:
        self._what, self._count, self._told = what, 0, time.monotonic()

    def step(self, name: str, total: int) -> None:
        """One more step has begun, of about so many."""
        self._count += 1
        if time.monotonic() - self._told >= _SECONDS:
            tell(f"{self._what} {self._count} of {total}: {name}")
            self._told = time.monotonic()


def tell(line: str) -> None:
    """Say it at once, beside what the build itself prints."""
    print(line, file=sys.stderr, flush=True)
