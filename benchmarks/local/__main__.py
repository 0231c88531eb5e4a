"""The command line: `python -m benchmarks.local [--quick] [--json PATH]`."""

import argparse
import json
import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.finding import verdict
from benchmarks.local import coverage, shuffling
from benchmarks.local.cases import CATEGORIES, EPSILON, FEWER, OURS, PEERS, PEOPLE, SHARED
from benchmarks.peers import Worker

ONLY_OURS = ("projective",)
CLIENT = {"kary": 100.0}  # targets; for every other oracle the next
CLIENT_ELSE, HASHING = 20.0, 200.0
SLACK = 1.05  # by how much an error may exceed a peer's by chance


def best(worker: Worker, oracle: str, people: int, rounds: int) -> dict[str, Any]:
    """The quickest times of several rounds, after one to warm up, and the root of the mean squared errors."""
    found = [worker.ask({"oracle": oracle, "people": people}) for _ in range(rounds + 1)]
    if found[0].get("missing"):
        return {}
    kept = found[1:] or found
    held: dict[str, Any] = {name: min(each[name] for each in kept) for name in ("client", "server")}
    for name in ("error", "shaped"):
        if name in found[0]:
            held[name] = math.sqrt(sum(each[name] ** 2 for each in found) / len(found))
    return {**held, "people": people}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the people")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    console = Console()
    results: dict[str, Any] = {}
    PEERS.prepare()
    with (
        console.status("measuring") as status,
        OURS.start("benchmarks.local.with_sourdine") as ours,
        PEERS.start("benchmarks.local.with_pure_ldp") as pure,
        PEERS.start("benchmarks.local.with_multi_freq_ldpy") as multi,
    ):
        for oracle in (*SHARED, *ONLY_OURS):
            status.update(f"measuring {oracle}")
            results[oracle] = {"ours": best(ours, oracle, PEOPLE // share, 4), "peers": {}}
            if oracle in SHARED:
                fewer = FEWER[oracle] // share
                results[oracle]["ours on fewer"] = best(ours, oracle, fewer, 9)
                for who, worker in (("pure-ldp", pure), ("multi-freq-ldpy", multi)):
                    if found := best(worker, oracle, fewer, 1):
                        results[oracle]["peers"][who] = found
    show(results, console)
    coverage.report(console, options.quick)
    shuffling.report(console, options.quick)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def rate(held: dict[str, Any]) -> float:
    """Values that a client reports on in a second."""
    return float(held["people"] / held["client"])


def whole(held: dict[str, Any]) -> float:
    """Seconds to aggregate the reports of all people, in proportion."""
    return float(held["server"] * PEOPLE / held["people"])


def show(results: dict[str, Any], console: Console) -> None:
    """Rates, times and errors, each peer's with our ratio to it, then the targets."""
    title = f"{CATEGORIES:,} categories, epsilon {EPSILON:g}, {PEOPLE:,} people"
    shown = Table(title=f"{title} (peers on fewer, extrapolated in proportion)")
    columns = ("oracle", "who", "people", "client values/s", "ours is", "aggregate s", "ours is", "error %")
    for name in columns:
        shown.add_column(name, justify="left" if name in columns[:2] else "right")
    for oracle, each in results.items():
        ours = each["ours"]
        for who, held in {"sourdine": ours, **each["peers"]}.items():
            times = [f"{rate(ours) / rate(held):,.0f}x", f"{whole(held) / whole(ours):,.0f}x"]
            first, second = ("", "") if who == "sourdine" else times
            error = f"{100 * held['error']:.3f}" if "error" in held else f"{100 * held['shaped']:.3f} cut"
            client, server = f"{rate(held):,.0f}", f"{whole(held):.4g}"
            shown.add_row(oracle, who, f"{held['people']:,}", client, first, server, second, error)
    console.print(shown)
    console.print("Errors are root mean squares over the shares, at the number of people of their line.")
    for oracle, each in results.items():
        for who, held in each["peers"].items():
            wanted = CLIENT.get(oracle, CLIENT_ELSE)
            quick = rate(each["ours"]) / rate(held)
            told = f"{oracle}: {quick:,.0f} times as fast as {who} on the client (target {wanted:g})"
            verdict(console, quick >= wanted, told)
            if oracle == "local hashing":
                quicker = whole(held) / whole(each["ours"])
                told = f"{oracle}: {quicker:,.0f} times as fast as {who} to aggregate (target {HASHING:g})"
                verdict(console, quicker >= HASHING, told)
            name = "error" if "error" in held else "shaped"
            ratio = each["ours on fewer"][name] / held[name]
            how = "" if name == "error" else ", both cut at 0 and scaled to sum to 1"
            told = f"{oracle}: error {ratio:.3f} times that of {who}{how} (target 1)"
            verdict(console, ratio <= SLACK, told)


if __name__ == "__main__":
    main()
