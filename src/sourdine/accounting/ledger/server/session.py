"""A session with a PostgreSQL server in which no statement waits without an end.

PostgreSQL bounds neither a wait for a synchronous standby (`statement_timeout` ends before the commit) nor
that of a reader for a table that its owner alters. So the client counts, and cancels. A commit whose wait is
canceled, by this session or by anybody (`pg_cancel_backend`), succeeds nevertheless, with a warning that is
all there is to know that no standby may have it: it must be seen, and must not be taken for a confirmation.
"""

from collections.abc import Callable, Generator
from contextlib import suppress
from time import monotonic
from typing import Any, ClassVar

import psycopg

_GRACE = 5.0  # seconds in which a server answers a cancellation; then its connection counts as lost


class Session(psycopg.Connection[tuple[Any, ...]]):
    """A connection that cancels what takes longer than its limit, and keeps what the server warns of."""

    longest: ClassVar[float] = 60.0
    """Seconds for a statement that is given no other limit."""
    quiet: ClassVar[float] = 2.0
    """Seconds of a statement without a limit of its own, after which people are told of the server."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.limit = self.longest
        self.was_canceled = False
        """Whether it has ever canceled a statement: that may reach the next one too, so it must be closed."""
        self.announce: Callable[[], None] = lambda: None
        self.warnings: list[str] = []
        self.add_notice_handler(self._note)

    def start(self, limit: float | None = None) -> None:
        """Begin to count, for the next statement."""
        self.limit = self.longest if limit is None else limit
        self.warnings.clear()

    def wait(self, gen: Any, *arguments: Any, **more: Any) -> Any:
        """Run a generator of psycopg to its end, and cancel it at the limit."""
        return super().wait(self._limited(gen), *arguments, **more)

    def _limited(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """The same generator, which psycopg wakes ten times a second also where nothing has come."""
        until, heard = monotonic() + self.limit, monotonic()
        canceled, is_announced = False, self.limit < self.longest
        try:
            state = next(gen)
            while True:
                ready = yield state
                state = gen.send(ready)
                if ready:
                    heard = monotonic()
                elif monotonic() > until:
                    if canceled:
                        raise psycopg.OperationalError("the server does not answer a cancellation")
                    canceled = self.was_canceled = True
                    with suppress(psycopg.Error):  # a server that hangs does not answer that either
                        self.cancel_safe(timeout=_GRACE)
                    until = monotonic() + _GRACE
                elif not is_announced and monotonic() > heard + self.quiet:
                    is_announced = True
                    self.announce()
        except StopIteration as end:
            return end.value

    def _note(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.warnings.append(" ".join((notice.message_primary or "").split()))
