"""`sourdine collect shuffle`: take reports, mix them, and pass them on in batches."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli.collect.serve import (
    Connections,
    MetricsPort,
    Proxies,
    StagingTime,
    StorePlace,
    shared_key,
    watched_port,
)
from sourdine.cli.shared import show
from sourdine.cli.shared.heartbeat import HEARTBEAT
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import install_line


def shuffle(
    questions: Annotated[
        list[Path], typer.Argument(help="Announcements by 'sourdine collect announce --batch'.")
    ],
    *,
    collector: Annotated[
        str, typer.Option(help="The address of the collector, such as https://collector.example.")
    ],
    secret: Annotated[Path, typer.Option(help="A file of at least 16 secret bytes that both have.")],
    store: StorePlace = "shuffler.db",
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="For reports. 0: any that is free.")] = 8090,
    origin: Annotated[
        list[str] | None, typer.Option(help="An origin whose pages may send, such as https://survey.example.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Requests a second from one address. 0: any number.")] = 100.0,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Send batches over plain http beyond this machine too.")
    ] = False,
    connections: Connections = 512,
    staging: StagingTime = 0.0,
    metrics_port: MetricsPort = None,
    proxy: Proxies = None,
) -> None:
    """Take reports in place of a collector, and pass on batches of them, mixed and with nothing else.

    Run it apart from the collector, by somebody who does not read the results. It acknowledges as a collector
    does, and shows nothing. A batch has as many reports as was announced, or more; what is too little to be
    one a day after the question has closed is dropped.

    Example: sourdine collect shuffle coffee.announcement.json --secret pair.key
    --collector https://collector.example
    """
    try:
        from sourdine.collector.processes import listen, run
    except ImportError as problem:
        raise InvalidParameter(
            f"A shuffler needs {problem.name}, which is not installed. "
            f"Install it with: {install_line('collect')}"
        ) from None
    from sourdine.collector.announcement import SignedAnnouncement
    from sourdine.collector.settings import CollectorSettings
    from sourdine.collector.shuffler.delivery import check_address

    signed = [SignedAnnouncement.read(path) for path in questions]
    for path, each in zip(questions, signed, strict=True):
        if not each.announcement.batch:
            raise InvalidParameter(
                f"{path} does not say that its reports are shuffled. Announce it with --batch, so that "
                "devices know, and the collector takes nothing else."
            )
    sockets = [listen(host, check.integer("collect shuffle", "port", port, 0, 65535))]
    settings = CollectorSettings(
        store=store,
        origins=tuple(origin or ()),
        rate=rate,
        collector=check_address(collector, plain_http=plain_http),
        shuffler_key=shared_key(secret),
        plain_http=plain_http,
        most_connections=connections,
        staging=staging,
        results_port=watched_port(sockets, metrics_port),
    )
    there = settings.open_store()
    for each in signed:
        there.register(each)
    there.close()
    where = f"[{host}]" if ":" in host else host
    for each in signed:
        show.line(f"{each.announcement.fingerprint}  {each.announcement.question.name}")
    show.line(f"Shuffling on http://{where}:{sockets[0].getsockname()[1]}")
    sys.stdout.flush()  # whoever waits for this through a pipe waits no longer
    with HEARTBEAT.quiet():
        run(settings, sockets, proxies=proxy or ())
