"""The command line: `python -m benchmarks.collect [--quick] [--reports N] [--kills N] [--only PART]`."""

import argparse
import secrets
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.collect.load import WithoutStorage, announced, flood, requests, serving
from benchmarks.collect.tally import Tally, tally_lines, tally_store
from benchmarks.finding import verdict
from benchmarks.servers import Server
from sourdine.collector.settings import CollectorSettings, open_store
from sourdine.local import GRR, Question
from tests.campaigns.collect.crash import Torment, torment

QUESTION = Question(name="bench", oracle=GRR(epsilon=1, categories=16))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.collect", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the reports and of the kills")
    parser.add_argument("--reports", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--tally", type=int, default=10**8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--each", type=int, nargs="+", default=[1, 100], help="reports of one request")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="processes of a server")
    parser.add_argument("--only", choices=("speed", "kills", "tally"))
    options = parser.parse_args()
    if options.quick:
        options.reports, options.kills = options.reports // 10, options.kills // 10
        options.tally, options.rounds = options.tally // 10, 1
    console = Console()
    with tempfile.TemporaryDirectory(prefix="sourdine-collect-") as folder:
        Path(folder).chmod(0o755)
        if options.only in (None, "tally"):
            _tally(console, Path(folder), options.tally)
        server = Server.start(Path(folder)) if options.only != "tally" else None
        try:
            if server is not None and options.only in (None, "speed"):
                _speed(console, Path(folder), server, options)
            if server is not None and options.only in (None, "kills"):
                _kills(console, Path(folder), server, options)
        finally:
            if server is not None:
                server.remove()


def _speed(console: Console, folder: Path, server: Server, options: argparse.Namespace) -> None:
    rates: dict[tuple[str, int, int], float] = {}
    for each in options.each:
        for workers in options.workers:
            for turn in range(options.rounds):
                for kind in ("none", "SQLite", "PostgreSQL"):
                    name = f"{kind}-{each}-{workers}-{turn}"
                    place = server.new() if kind == "PostgreSQL" else str(folder / f"{name}.db")
                    store = open_store(place)
                    store.register(announced(QUESTION))
                    store.close()
                    make = WithoutStorage if kind == "none" else CollectorSettings
                    messages = requests(QUESTION, options.reports, each)
                    with serving(make(store=place, rate=0), workers) as served:
                        flood(served.port, requests(QUESTION, 20 * each, each))  # all is loaded
                        rate = options.reports / flood(served.port, messages)
                    rates[kind, each, workers] = max(rate, rates.get((kind, each, workers), 0.0))
    table = Table("reports a request", "workers", "without storage", "SQLite", "PostgreSQL")
    for each in options.each:
        for workers in options.workers:
            cells = [rates[kind, each, workers] for kind in ("none", "SQLite", "PostgreSQL")]
            table.add_row(str(each), str(workers), *(f"{rate:,.0f}/s" for rate in cells))
    console.print(table)
    for kind in ("SQLite", "PostgreSQL") if 100 in options.each else ():
        for workers in options.workers:
            stored, bare = rates[kind, 100, workers], rates["none", 100, workers]
            verdict(
                console,
                stored >= 0.5 * bare,
                f"{stored / bare:.2f} of the same server without storage (target 0.5), {kind}, reports by "
                f"100, {workers} worker{'s' if workers > 1 else ''}: {stored:,.0f} reports a second",
            )


def _kills(console: Console, folder: Path, server: Server, options: argparse.Namespace) -> None:
    def again() -> None:
        server.kill()
        server.restart()

    half = options.kills // 2
    for workers in options.workers:
        words = f"{workers} worker{'s' if workers > 1 else ''}"
        _left(
            console,
            f"server on SQLite, {words}",
            torment(str(folder / f"kills-{workers}.db"), half, options.seed, workers=workers),
        )
        _left(
            console,
            f"server and database in turn, PostgreSQL, {words}",
            torment(
                server.new(), options.kills - half, options.seed + 1, workers=workers, kill_database=again
            ),
        )


def _left(console: Console, what: str, left: Torment) -> None:
    verdict(
        console,
        not (left.lost or left.twice or left.unknown),
        f"{left.kills} kills ({what}): {left.acknowledged:,} reports acknowledged, {left.lost} lost, "
        f"{left.twice} counted twice, {left.unknown} that nobody sent; {left.sent_again:,} requests sent "
        "again",
    )


def _tally(console: Console, folder: Path, reports: int) -> None:
    for what, tally in (("lines", tally_lines), ("a store", tally_store)):
        made: Tally = tally(folder, reports)
        verdict(
            console,
            made.memory < 1 << 28 and made.processor <= made.reading,
            f"{made.reports:,} reports tallied from {what} in {made.seconds:.1f} s, "
            f"{made.memory / 2**20:.0f} MiB of memory (target 256); {made.processor:.1f} s of the processor, "
            f"{made.size / made.processor / 1e6:,.0f} MB a second of it, beside {made.reading:.1f} s to read "
            f"the bytes alone, {made.size / made.reading / 1e6:,.0f} MB a second of the disk "
            "(target: no slower)",
        )


if __name__ == "__main__":
    main()
