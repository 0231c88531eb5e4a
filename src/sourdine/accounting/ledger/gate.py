"""The gate to SQLite: everything that uses it goes through, and a fork closes it.

SQLite keeps in memory which locks its process holds. A child that is forked inherits the memory and not the
locks, so it takes files for locked that are not, and inherits mutexes that no thread will ever let go. So a
fork waits until nobody is inside, closes every connection, and lets both sides open theirs anew.
"""

import concurrent.futures.thread  # noqa: F401  its hook is to run after the gate's, see below
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol
from weakref import WeakSet

from sourdine.core.errors import LedgerError


class Holder(Protocol):
    """Who may hold a connection."""

    def let_go(self) -> None:
        """Close it; the next use opens another."""


class Gate:
    """Any number of threads inside at once; a fork only when they are out, with nothing left open.

    >>> gate = Gate()
    >>> with gate.inside():
    ...     pass
    """

    def __init__(self) -> None:
        self.holders: WeakSet[Holder] = WeakSet()
        self._start_over(torn=False)

    def _start_over(self, torn: bool) -> None:
        self._change = threading.Condition()
        self._inside: Counter[int] = Counter()  # how deep each thread is: a finalizer may enter once more
        self._forking = 0
        self._torn = torn
        self._process = os.getpid()

    @contextmanager
    def inside(self) -> Iterator[None]:
        """A stretch of work with SQLite, into which no fork falls."""
        if self._process != os.getpid():  # forked by other means than Python's, which runs no hooks
            self._start_over(torn=bool(self.holders or self._inside))
        me = threading.get_ident()
        with self._change:
            while self._forking not in (0, me) and me not in self._inside:
                self._change.wait()
            if self._torn:
                raise LedgerError(
                    "This process was forked in the middle of a charge, or by other means than Python's, so "
                    "its SQLite cannot be trusted. Nothing was spent. Use ledgers in the process that opened "
                    "them, or in one that is started again."
                )
            self._inside[me] += 1
        try:
            yield
        finally:
            with self._change:
                self._inside[me] -= 1
                if not self._inside[me]:
                    del self._inside[me]
                    self._change.notify_all()

    def before_fork(self) -> None:
        """Wait until the others are out, keep them out, and close what is open."""
        me = threading.get_ident()
        with self._change:
            if me in self._inside:  # a signal handler forks while this thread charges: nothing can be closed
                self._torn = True
                return
            while self._forking:
                self._change.wait()
            self._forking = me  # from here on nobody enters, or busy threads could keep a fork waiting
            while self._inside:
                self._change.wait()
        for holder in tuple(self.holders):
            holder.let_go()

    def after_fork_here(self) -> None:
        """In the parent: go on."""
        with self._change:
            self._torn = False
            if self._forking == threading.get_ident():
                self._forking = 0
                self._change.notify_all()

    def after_fork_there(self) -> None:
        """In the child: none of the other threads exist, so nobody is inside."""
        self._start_over(self._torn)


GATE = Gate()
# Hooks before a fork run from the last registered to the first. So a fork waits at the gate before it takes
# the locks of executors and of logging, which they load: else a thread inside that starts an executor would
# wait for the fork, and the fork for it.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=GATE.before_fork,
        after_in_parent=GATE.after_fork_here,
        after_in_child=GATE.after_fork_there,
    )
