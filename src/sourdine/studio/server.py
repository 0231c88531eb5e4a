"""Studio as a server on this machine: it says where it is, and runs until it is stopped."""

import contextlib
import html
import os
import socket
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from sourdine.core import disk
from sourdine.core.errors import InvalidParameter
from sourdine.studio.app import Studio, create_app
from sourdine.studio.desk import Desk

HOST = "127.0.0.1"


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
        hosts = (f"{HOST}:{number}", f"localhost:{number}")
        address = f"http://{HOST}:{number}{studio.keys.prefix}/?token={studio.keys.token}"
        if first:
            address += f"&page={quote(first)}"
        tell(f"Studio is open, for you alone. Its address works once:\n  {address}\nStop it with Ctrl-C.")
        config = uvicorn.Config(
            create_app(studio, hosts), log_level="warning", lifespan="off", server_header=False, ws="none"
        )
        with _opened(address) if browser else contextlib.nullcontext():
            uvicorn.Server(config).run(sockets=[listener])
        if desk.jobs.busy:
            tell("A release or a count is under way. Waiting until it is whole.")
        desk.jobs.wait()


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
