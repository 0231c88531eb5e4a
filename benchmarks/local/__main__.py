"""The command line: `python -m benchmarks.local [--quick] [--oracle NAME] [--json PATH]`."""

import argparse
import json
import math
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.finding import verdict
from benchmarks.local import shuffling
from benchmarks.local.cases import CATEGORIES, EPSILON, FEWER, OURS, PEERS, PEOPLE, SHARED, SIZES
from benchmarks.peers import Worker
from tests.campaigns import local_intervals

ONLY_OURS = ("projective",)
CLIENT, HASHING = 100.0, 200.0  # targets
_ROUNDS = 20  # of ours, which are short
SLACK = 1.05  # by how much an error may exceed a peer's by chance


def best(worker: Worker, oracle: str, categories: int, people: int, rounds: int) -> dict[str, Any]:
    """The quickest times of several rounds, after one to warm up, and the root of the mean squared errors."""
    asked = {"oracle": oracle, "people": people, "categories": categories}
    found = [worker.ask(asked) for _ in range(rounds + 1)]
    if found[0].get("missing"):
        return {}
    kept = found[1:] or found
    times = [name for name in ("client", "server", "least", "bits") if name in kept[0]]
    held: dict[str, Any] = {name: min(each[name] for each in kept) for name in times}
    for name in ("error", "shaped"):
        if name in found[0]:
            held[name] = math.sqrt(sum(each[name] ** 2 for each in found) / len(found))
    return {**held, "people": people}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.local", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the people")
    parser.add_argument("--oracle", choices=(*SHARED, *ONLY_OURS), help="this one alone, and nothing else")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    share = 10 if options.quick else 1
    console = Console()
    results: dict[str, dict[int, Any]] = {}
    PEERS.prepare()
    with (
        console.status("measuring") as status,
        OURS.start("benchmarks.local.with_sourdine") as ours,
        PEERS.start("benchmarks.local.with_pure_ldp") as pure,
        PEERS.start("benchmarks.local.with_multi_freq_ldpy") as multi,
    ):
        for oracle in (options.oracle,) if options.oracle else (*SHARED, *ONLY_OURS):
            for size in SIZES:
                status.update(f"measuring {oracle} of {size:,} categories")
                each: dict[str, Any] = {
                    "ours": best(ours, oracle, size, PEOPLE // share, _ROUNDS),
                    "peers": {},
                }
                if oracle in SHARED:
                    fewer = FEWER[oracle] // share
                    each["ours on fewer"] = best(ours, oracle, size, fewer, 9)
                    for who, worker in (("pure-ldp", pure), ("multi-freq-ldpy", multi)):
                        if found := best(worker, oracle, size, fewer, 1):
                            each["peers"][who] = found
                results.setdefault(oracle, {})[size] = each
    show_rates(results, console)
    show({oracle: sizes[CATEGORIES] for oracle, sizes in results.items()}, console)
    if not options.oracle:
        local_intervals.report(console, options.quick)
        shuffling.report(console, options.quick)
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def rate(held: dict[str, Any]) -> float:
    """Values that a client reports on in a second."""
    return float(held["people"] / held["client"])


def whole(held: dict[str, Any]) -> float:
    """Seconds to aggregate the reports of all people, in proportion."""
    return float(held["server"] * PEOPLE / held["people"])


def show_rates(results: dict[str, dict[int, Any]], console: Console) -> None:
    """What devices do in a second, for every number of categories, beside the better peer and the least."""
    shown = Table(title=f"Values reported on in a second, epsilon {EPSILON:g}, {PEOPLE:,} people")
    columns = (
        "oracle",
        "categories",
        "sourdine",
        "the better peer",
        "ours is",
        "times the least",
        "of the limit",
    )
    for name in columns:
        shown.add_column(name, justify="left" if name == "oracle" else "right")
    told = []
    for oracle, sizes in results.items():
        for size, each in sizes.items():
            ours, rates = rate(each["ours"]), {who: rate(held) for who, held in each["peers"].items()}
            cells = [oracle, f"{size:,}", f"{ours:,.0f}", "", ""]
            if rates:
                who = max(rates, key=lambda name: rates[name])
                quick = ours / rates[who]
                cells[3:] = [f"{rates[who]:,.0f} ({who})", f"{quick:,.0f}x"]
                told.append((quick >= CLIENT, f"{oracle} of {size:,}: {quick:,.0f} times as fast as {who}"))
            least, limit = (each["ours"][name] / each["ours"]["client"] for name in ("least", "bits"))
            shown.add_row(*cells, f"{1 / least:.1f}", f"{100 * limit:.1f} %")
    console.print(shown)
    console.print(
        "The least is the time to draw as many random bytes as packed reports have and to write reports once,"
        " by one thread. The limit is the rate at which one thread draws the random bits alone that reports"
        " need by their entropy."
    )
    for met, words in told:
        verdict(console, met, f"{words} on the client (target {CLIENT:g})")


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
