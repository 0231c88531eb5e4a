"""The processes and threads of a world, as the world knows them, and how they end."""

import os
import select
import signal
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from tests.accounting.ledger.simulator.actor import Actor, Channel, around
from tests.accounting.ledger.simulator.model import Charge

THREADS, CHILDREN = 6, 2  # at a time, and in all


class Links:
    """Channels to as many threads as there may be."""

    def __init__(self, patience: float) -> None:
        pairs = [Channel.pair(patience) for _ in range(THREADS + CHILDREN)]
        self.ours, self.theirs = [ours for ours, _ in pairs], [theirs for _, theirs in pairs]


@dataclass
class Process:
    """A process, and the newest line that it knows of."""

    name: int
    root: Actor | None  # none in a true child
    child: int = 0
    seen: int = 0
    threads: int = 0


@dataclass
class Mind:
    """What the world knows of one thread."""

    number: int  # of its channel
    name: str
    process: Process
    is_open: bool
    state: str = "idle"
    verb: str = ""
    command: tuple[Any, ...] = ()
    failing: bool = False
    seen: int = 0  # the newest line its process had seen when it was given the command
    paid: int = 0  # and how many were paid then

    @property
    def charge(self) -> Charge | None:
        """What it is charging."""
        return Charge(*self.command[1:]) if self.command[:1] == ("charge",) else None


def forget(root: Actor) -> None:
    """Let go of what a dead process held; nothing reaches the disk meanwhile."""
    root.memory.install()
    dead = [root]
    for actor in dead:
        dead += actor.threads
        actor.opened.clear()
        actor.ledger = None
    for holder in tuple(root.memory.gate.holders):
        holder.let_go()
    around.dying = False


def kill(child: int) -> None:
    """Kill a true child, or a child of one, and wait until it has let go of all it had."""
    with suppress(ProcessLookupError):
        handle = os.pidfd_open(child)
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        watch = select.poll()
        watch.register(handle, select.POLLIN)
        watch.poll()
        os.close(handle)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
