"""A word on stderr while a command works in silence, so that nobody takes long work for a hang.

Whatever a command does, and whether or not anybody sees a terminal: after two seconds without a word it says
what it is at and for how long, and then after pauses twice as long each, up to a minute.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

import typer

_FIRST, _LONGEST = 2.0, 60.0  # seconds of silence


class Heartbeat:
    """What is under way and when somebody last heard of it; `working` says so from a thread of its own."""

    def __init__(self, first: float = _FIRST, longest: float = _LONGEST) -> None:
        self._first, self._longest = first, longest
        self._label = ""
        self._spoken = time.monotonic()
        self._silent = 0  # how many bars show by themselves how far it is
        self._lock = threading.Lock()

    def doing(self, label: str) -> None:
        """Keep what is under way, to be said if it takes long."""
        self._label = label

    def spoke(self) -> None:
        """Note that somebody was told just now."""
        self._spoken = time.monotonic()

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Say nothing while a bar moves, or while a server waits for others."""
        with self._lock:
            self._silent += 1
        try:
            yield
        finally:
            with self._lock:
                self._silent -= 1
            self.spoke()

    @contextlib.contextmanager
    def working(self, tell: Callable[[str], None]) -> Iterator[None]:
        """Speak up now and then until the work is done."""
        done = threading.Event()
        self.doing("")
        self.spoke()
        thread = threading.Thread(target=self._speak_up, args=(done, tell), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _speak_up(self, done: threading.Event, tell: Callable[[str], None]) -> None:
        start, pause = time.monotonic(), self._first
        while not done.wait(max(self._spoken + pause - time.monotonic(), self._first / 4)):
            now = time.monotonic()
            with self._lock:
                if self._silent or now < self._spoken + pause:
                    continue
                with contextlib.suppress(OSError, ValueError):  # nobody reads stderr any more
                    tell(self._words(now - start))
            self.spoke()
            pause = min(2 * pause, self._longest)

    def _words(self, seconds: float) -> str:
        return f"{self._label or 'at work'}, {seconds:,.0f} s so far"


HEARTBEAT = Heartbeat()


def ask_passphrase(*, twice: bool = False) -> str:
    """The passphrase of a key, typed unseen; whoever types it is not told that the program is at work."""
    with HEARTBEAT.quiet():
        return str(typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice))
