"""The command line: `python -m benchmarks.ledger [--kills N] [--server] [--minutes N] [--failovers N]`."""

import argparse
import secrets
import tempfile
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from benchmarks.finding import verdict
from benchmarks.ledger.growth import with_lines, with_writers
from benchmarks.ledger.server import measure as measure_server
from benchmarks.ledger.speed import measure
from benchmarks.servers import Server
from tests.campaigns.ledger.campaign import Found, campaign
from tests.campaigns.ledger.crash import torment
from tests.campaigns.ledger.failover import failovers


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ledger", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the kills and of the lines")
    parser.add_argument("--kills", type=int, default=10_000)
    parser.add_argument("--stretches", type=int, default=10, help="of 500 spends each, for the speed")
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--server", action="store_true", help="a PostgreSQL server instead of a file")
    parser.add_argument(
        "--minutes", type=float, default=0, help="only charges with readers, forks and kills beside them"
    )
    parser.add_argument("--failovers", type=int, default=0, help="only servers whose standby takes over")
    options = parser.parse_args()
    if options.quick:
        options.kills, options.stretches = options.kills // 10, 3
    console = Console()
    if options.minutes:
        _campaign(console, options)
        return
    if options.failovers:
        _fail_over(console, options)
        return
    if options.server:
        _serve(console, options)
        return
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        speed = measure(Path(folder), stretches=options.stretches, each=500)
        share = speed.ledger / speed.bare
        verdict(
            console,
            share >= 0.6,
            f"{share:.2f} of the rate of bare SQLite in turn with it, with the same journal and as durable "
            f"(target 0.6): {speed.ledger:,.0f} charges a second on one process, {speed.best:,.0f} in the "
            f"best stretch; bare {speed.bare:,.0f}; with a write-ahead log, as durable, {speed.log:,.0f}",
        )
        _grow(console, Path(folder), (10**3, 10**4, 10**5) if options.quick else (10**3, 10**4, 10**5, 10**6))
        _torment(console, Path(folder), options)


def _serve(console: Console, options: argparse.Namespace) -> None:
    """The same of a server: its speed beside bare inserts, and what is left after kills of both sides."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        Path(folder).chmod(0o755)
        server = Server.start(Path(folder))
        try:
            for writers in (1, 2, 4, 8, 16):
                rates = measure_server(server, writers, stretches=3, each=400 if options.quick else 1600)
                share = rates.ledger / rates.bare
                verdict(
                    console,
                    share >= 0.5,
                    f"{writers} writers: {share:.2f} of bare INSERT and COMMIT by as many in turn with it "
                    f"(target 0.5): {rates.ledger:,.0f} charges a second, bare {rates.bare:,.0f}",
                )
            _torment(console, Path(folder), options, server)
        finally:
            server.remove()


def _campaign(console: Console, options: argparse.Namespace) -> None:
    """Minutes of charges with all that goes on beside them."""

    def tell(minutes: float, found: Found) -> None:
        console.print(f"{minutes:.1f} minutes: {found.acknowledged:,} charges, {found.faults} faults")

    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        Path(folder).chmod(0o755)
        server = Server.start(Path(folder)) if options.server else None
        try:
            found = campaign(
                Path(folder), minutes=options.minutes, seed=options.seed, progress=tell, server=server
            )
        finally:
            if server is not None:
                server.remove()
    verdict(
        console,
        found.faults == 0,
        f"{options.minutes:g} minutes of 4 charging processes, seed {options.seed}: {found.rounds} ledgers, "
        f"{found.acknowledged:,} charges acknowledged, {found.lines:,} lines, {found.readings:,} copies, "
        f"hashes and readings, {found.backups:,} backups, {found.forks:,} forks, {found.kills:,} kills: "
        f"{found.lost} lost, {found.twice} twice, {found.overspent} overspent, {found.damaged} damaged",
    )


def _fail_over(console: Console, options: argparse.Namespace) -> None:
    """Servers that are killed while they are charged, and what their standbys have."""
    found = failovers(
        options.failovers,
        seconds=15,
        seed=options.seed,
        progress=lambda done, found: console.print(f"{done} failovers: {found.acknowledged:,} charges"),
    )
    verdict(
        console,
        found.lost == found.twice == 0,
        f"{found.failovers} failovers, seed {options.seed}: {found.acknowledged:,} charges acknowledged, "
        f"{found.canceled:,} waits canceled, {found.ended:,} sessions ended: {found.lost} lost, "
        f"{found.twice} twice",
    )


def _torment(
    console: Console, folder: Path, options: argparse.Namespace, server: Server | None = None
) -> None:
    with Progress(console=console) as bar:
        task = bar.add_task(f"killing writers, seed {options.seed}", total=options.kills)
        outcome = torment(
            folder,
            processes=options.processes,
            kills=options.kills,
            limit=Fraction(10**6),
            seed=options.seed,
            progress=lambda done: bar.update(task, completed=done),
            server=server,
        )
    verdict(
        console,
        outcome.unrecorded == outcome.duplicates == outcome.overspent == 0,
        f"{outcome.kills} kills of {options.processes} writers{'' if server is None else ' and the server'}: "
        f"{outcome.acknowledged:,} releases allowed, "
        f"{outcome.recorded:,} lines, {outcome.unrecorded} unrecorded, {outcome.duplicates} counted twice, "
        f"overspent by {outcome.overspent}",
    )


def _grow(console: Console, folder: Path, sizes: tuple[int, ...]) -> None:
    rates = {writers: with_writers(folder, writers, 1000 // writers) for writers in (1, 2, 4, 8)}
    told = ", ".join(f"{rate:,.0f} with {writers}" for writers, rate in rates.items())
    console.print(f"charges a second by the number of writers: {told}", soft_wrap=True)
    for lines in sizes:
        long = with_lines(folder, lines, 200)
        targets = [("opened", long.opening, 0.1), ("a certificate verified", long.verifying, 2.0)]
        if long.history is not None:
            targets.append(("replayed", long.history, 5.0))
        verdict(
            console,
            all(seconds < target for _, seconds, target in targets),
            f"{lines:,} lines: {long.charges:,.0f} charges a second; "
            + ", ".join(f"{what} in {seconds:.3f} s (target {target})" for what, seconds, target in targets),
        )


if __name__ == "__main__":
    main()
