"""Studio as a server on this machine: it says where it is, and runs until it is stopped."""

import contextlib
import html
import os
import signal
import socket
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from urllib.parse import quote

from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.studio.app import Studio, create_app
from sourdine.studio.desk import Desk
from sourdine.studio.gate import hosts_of

HOST = "127.0.0.1"
# Ctrl-C, the end of a session, and a terminal that is closed
_ENDINGS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


def serve(
    desk: Desk,
    *,
    first: str = "",
    port: int = 0,
    browser: bool = True,
    tell: Callable[[str], None] = print,
) -> None:
    """Serve the folder of a desk until Ctrl-C. `first` is the page to begin with, seen from the start.

    The address is told to whoever started it. The browser gets it through a file for its owner alone, since
    every user of a machine can read what programs were started with.
    """
    import uvicorn

    studio = Studio(desk)
    with _listening(port) as listener:
        number = listener.getsockname()[1]
        address = f"http://{HOST}:{number}{studio.keys.prefix}/?token={studio.keys.token}"
        if first:
            address += f"&page={quote(first)}"
        tell(f"Studio is open, for you alone. Its address works once:\n  {address}\nStop it with Ctrl-C.")
        config = uvicorn.Config(
            create_app(studio, hosts_of(number)),
            log_level="warning",
            lifespan="off",
            server_header=False,
            ws="none",
        )
        server = uvicorn.Server(config)

        def end(number: int, frame: FrameType | None) -> None:
            server.should_exit = True

        with _heeding(end):
            with _opened(address) if browser else contextlib.nullcontext():
                server.run(sockets=[listener])
            if desk.jobs.busy:
                with contextlib.suppress(OSError):  # the terminal may be gone
                    tell("A release or a count is under way. Waiting until it is whole.")
            desk.finish()


@contextlib.contextmanager
def _heeding(end: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Nothing that asks a program to end cuts off what is paid: uvicorn sends on what it was sent itself."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, end) for each in _ENDINGS}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextlib.contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
    except (OSError, OverflowError):
        listener.close()
        raise InvalidParameter(
            f"Port {port} of this machine is taken, or may not be used. Name another with --port."
        ) from None
    with listener:
        yield listener


@contextlib.contextmanager
def _opened(address: str) -> Iterator[None]:
    """The browser at an address that no list of processes shows."""
    with tempfile.TemporaryDirectory(prefix="sourdine-studio-") as folder:
        place = Path(folder) / "studio.html"
        target = html.escape(address, quote=True)
        disk.write_new(
            place,
            f'<!doctype html><meta charset="utf-8"><title>Sourdine Studio</title>'
            f'<meta http-equiv="refresh" content="0;url={target}"><a href="{target}">Open Studio</a>\n',
        )
        webbrowser.open(place.as_uri())
        yield
