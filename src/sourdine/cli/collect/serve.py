"""`sourdine collect serve`: take reports until a signal ends it."""

import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.heartbeat import HEARTBEAT
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import install_line

if TYPE_CHECKING:
    from socket import socket

StorePlace = Annotated[
    str, typer.Option("--store", help="A file, or postgresql://user@host/database for several servers.")
]

Proxies = Annotated[
    list[str] | None,
    typer.Option(
        help="Address or network of a proxy that writes X-Forwarded-For: for --rate; without --connections."
    ),
]


Connections = Annotated[
    int, typer.Option(help="Connections of one address; a network has twice as many. 0: any number.")
]

MetricsPort = Annotated[
    int | None,
    typer.Option(help="For /metrics, on this machine alone. 0: any that is free. Without it: nowhere."),
]

StagingTime = Annotated[
    float,
    typer.Option(
        "--staging",
        help="Seconds that reports may be in memory alone, so that no log has their order; a crash loses "
        "them. 0: each is stored before it is acknowledged.",
    ),
]


def watched_port(sockets: "list[socket]", port: int | None) -> int:
    """Listen for whoever watches a process, on the loopback; the port, or 0 without one."""
    from sourdine.collector.processes import listen

    if port is None:
        return 0
    sockets.append(listen("127.0.0.1", check.integer("collect", "metrics-port", port, 0, 65535)))
    taken = int(sockets[-1].getsockname()[1])
    show.line(f"Metrics: http://127.0.0.1:{taken}/metrics")
    return taken


def shared_key(path: Path) -> str:
    """By what a collector knows its shuffler, from the secret that both have."""
    from sourdine.cli.local.encode import read_secret

    secret = read_secret(path)
    if len(secret) < 16:
        raise InvalidParameter(f"The secret {path} must have at least 16 bytes that nobody can guess.")
    return hashlib.sha256(b"sourdine shuffler\0" + secret).hexdigest()


def serve(
    questions: Annotated[list[Path], typer.Argument(help="Announcements by 'sourdine collect announce'.")],
    *,
    store: StorePlace = "reports.db",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="For reports. 0: any that is free.")] = 8080,
    results_port: Annotated[
        int | None,
        typer.Option(help="For counts, pages and metrics, on this machine alone. Without it: --port + 1."),
    ] = None,
    public_results: Annotated[
        bool,
        typer.Option(
            "--public-results",
            help="Show results on the port for reports too, to everybody: 256 reports or more at a time.",
        ),
    ] = False,
    origin: Annotated[
        list[str] | None, typer.Option(help="An origin whose pages may send, such as https://survey.example.")
    ] = None,
    workers: Annotated[int, typer.Option(help="How many processes take reports.")] = 1,
    rate: Annotated[float, typer.Option(help="Requests a second from one address. 0: any number.")] = 100.0,
    connections: Connections = 512,
    staging: StagingTime = 0.0,
    proxy: Proxies = None,
    shuffler_secret: Annotated[
        Path | None,
        typer.Option(help="A file of at least 16 secret bytes, which the shuffler of a question has too."),
    ] = None,
) -> None:
    """Take reports, and acknowledge each once it is on the disk. Ends at SIGTERM, with all answered.

    Nothing but the report itself is stored: no address, no time but its period, no order. It speaks HTTP:
    put a proxy in front that speaks TLS, and let that keep no logs either.

    Examples: sourdine collect serve coffee.announcement.json --origin https://survey.example ·
    sourdine collect serve *.announcement.json --store postgresql://collector@db.example/surveys --workers 4
    """
    try:
        from sourdine.collector.processes import listen, run
    except ImportError as problem:
        raise InvalidParameter(
            f"A collector needs {problem.name}, which is not installed. "
            f"Install it with: {install_line('collect')}"
        ) from None
    from sourdine.collector.announcement import SignedAnnouncement
    from sourdine.collector.settings import CollectorSettings

    owner = "collect serve"
    port = check.integer(owner, "port", port, 0, 65535)
    workers = check.integer(owner, "workers", workers, 1, 256)
    signed = [SignedAnnouncement.read(path) for path in questions]
    sockets = [listen(host, port)]
    taken_port = int(sockets[0].getsockname()[1])
    beside = results_port if results_port is not None else (taken_port + 1 if port else 0)
    sockets.append(listen("127.0.0.1", check.integer(owner, "results-port", beside, 0, 65535)))
    shown = int(sockets[1].getsockname()[1])
    settings = CollectorSettings(
        store=store,
        origins=tuple(origin or ()),
        rate=rate,
        results_port=shown,
        shuffler_key="" if shuffler_secret is None else shared_key(shuffler_secret),
        public_results=public_results,
        most_connections=connections,
        staging=staging,
    )
    if shuffler_secret is None and any(each.announcement.batch for each in signed):
        raise InvalidParameter(
            "A question comes through a shuffler, and nothing says by what this collector knows it. "
            "Give --shuffler-secret, the same file as 'sourdine collect shuffle' has."
        )
    there = settings.open_store()
    for each in signed:
        there.register(each)
    there.close()
    at = f"http://{f'[{host}]' if ':' in host else host}:{taken_port}"
    for announcement in (each.announcement for each in signed):
        show.line(f"{announcement.fingerprint}  {announcement.question.name}")
        if not announcement.tokens and not announcement.batch:  # which are answered elsewhere
            show.line(f"  a page that asks it: {at}/client/demo.html?question={announcement.fingerprint}")
    show.line(f"Listening on {at}")
    show.line(f"Results: http://127.0.0.1:{shown}/")
    sys.stdout.flush()  # whoever waits for this through a pipe waits no longer
    with HEARTBEAT.quiet():
        run(settings, sockets, workers=workers, proxies=proxy or ())
