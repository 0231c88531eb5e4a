"""A collector that listens on the loopback, in a thread of this process, behind a proxy that may fail."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from sourdine.collector.blocks import recount
from sourdine.collector.processes import listen
from sourdine.collector.server import CollectorApplication
from sourdine.collector.settings import CollectorSettings, open_store
from tests.campaigns.collect.proxy import Fault, Proxy


class Wire:
    """The way of batches to a collector, whose answers come through a proxy."""

    def __init__(self, settings: CollectorSettings, proxy: Proxy) -> None:
        self.settings, self.proxy = settings, proxy
        self.faults: list[Fault] = []
        """What the proxy does with the next requests; afterwards it passes all on."""
        proxy.choose = lambda: self.faults.pop(0) if self.faults else Fault.NONE

    @property
    def address(self) -> str:
        return self.proxy.address

    def counted(self, number: int = 1) -> int:
        store = open_store(self.settings.store)
        try:
            (question,) = (each.question for each in store.questions() if each.number == number)
            return recount(store, number, question).reports
        finally:
            store.close()

    def events(self) -> dict[tuple[int, str], int]:
        store = open_store(self.settings.store)
        try:
            return store.events()
        finally:
            store.close()


@contextmanager
def listening(settings: CollectorSettings) -> Iterator[int]:
    """Serve a collector; the port."""
    sock = listen("127.0.0.1", 0)
    config = uvicorn.Config(
        CollectorApplication(settings), lifespan="on", log_level="critical", timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[sock])), daemon=True)
    thread.start()
    try:
        yield int(sock.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(30)
        sock.close()


@contextmanager
def wired(settings: CollectorSettings) -> Iterator[Wire]:
    """Serve a collector behind a proxy."""
    with listening(settings) as port:
        proxy = Proxy(port)
        try:
            yield Wire(settings, proxy)
        finally:
            proxy.close()
