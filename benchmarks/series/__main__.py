"""The command line: `python -m benchmarks.series [--quick] [--json PATH]`."""

import argparse
import json
import tempfile
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.finding import better, verdict
from benchmarks.peers import Environment
from benchmarks.series.errors import VIEWS, bound, errors, ours, real_root, simple
from benchmarks.series.year import day_by_day, kills
from sourdine.mechanisms.correlation import PowerMatrix

PEER = Environment(name="jax_privacy", requirements=("jax-privacy==2.0.0",))
_LIMIT = 1.02
_DENSE = 400  # periods up to which the peer's dense optimiser is run


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.series", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="52 and 365 periods, 30 days, 20 kills")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    options = parser.parse_args()
    console = Console()
    results: list[dict[str, Any]] = []
    for periods in (52, 365) if options.quick else (52, 365, 1000, 10_000):
        results += compare(periods, console)
    sizes = (30, 20) if options.quick else (365, 500)
    with tempfile.TemporaryDirectory() as folder:
        year = day_by_day(Path(folder), keys=1000, periods=sizes[0], records=2000)
    console.print(
        f"1,000 keys by {sizes[0]} days, 2,000 records a day: {year['day'] * 1e3:.0f} ms a day (slowest "
        f"{year['slowest'] * 1e3:.0f} ms), {year['year']:.0f} s in all, {year['memory'] / 1e6:.0f} MB more, "
        f"{year['state'] / 1e6:.1f} MB of state"
    )
    with tempfile.TemporaryDirectory() as folder:
        after = kills(Path(folder), times=sizes[1])
    good = not (after["changed"] or after["refused"] or after["paid_twice"])
    verdict(console, good, f"{after['kills']} kills at random moments: {after}")
    if options.json:
        options.json.write_text(json.dumps([*results, {"year": year, "kills": after}], indent=2) + "\n")


def compare(periods: int, console: Console) -> list[dict[str, Any]]:
    """One horizon: a table, and whether ours is near the best."""
    results = []
    for name, view in VIEWS.items():
        if view.first > periods:
            continue
        mine = ours(periods, view)
        others = [*simple(periods, view), *(peers(periods, console) if view.window is None else ())]
        table = Table(title=f"{name}, {periods:,} periods: deviation of one release at the same rho")
        for column in ("by", "root mean square", "worst period"):
            table.add_column(column, justify="left" if column == "by" else "right")
        for by, mean, worst in [(f"sourdine ({mine[0]})", *mine[1:]), *others]:
            table.add_row(by, f"{mean:.3f}", f"{worst:.3f}")
            results.append({"periods": periods, "view": name, "by": by, "rmse": mean, "worst": worst})
        if view.window is None:
            table.add_row("no factorisation below", f"{bound(periods):.3f}", "")
        console.print(table)
        for place, what in ((1, "on the mean"), (2, "at the worst period")):
            least = min(other[place] for other in others)
            ratio = mine[place] / least
            text = f"{name}, {periods:,} periods, {what}: {ratio:.4f} of the best ({_LIMIT} allowed)"
            verdict(console, ratio <= _LIMIT, text)
            if ratio > 1:
                by = next(other[0] for other in others if other[place] == least)
                better(
                    console, f"{name}, {periods:,} periods, {what}: {by} {least:.3f}, ours {mine[place]:.3f}"
                )
    root = real_root(periods, VIEWS["totals"])
    loss = errors(PowerMatrix(periods, Fraction(1, 2), 1024), VIEWS["totals"])[0] / root[0] - 1
    verdict(console, loss < 0.01, f"{periods:,} periods: whole numbers lose {100 * loss:.3f} % (1 % allowed)")
    return results


def peers(periods: int, console: Console) -> list[tuple[str, float, float]]:
    """jax_privacy's factorisations of totals, where it installs."""
    try:
        PEER.prepare()
    except Exception as problem:  # no network, or no wheel for this machine
        console.print(f"jax_privacy is left out: it did not install ({type(problem).__name__}).")
        return []
    kinds = ["toeplitz", "buffered", *(["dense"] if periods <= _DENSE else [])]
    found = []
    for kind in kinds:
        answer = PEER.ask_once("benchmarks.series.with_jax_privacy", {"periods": periods, "kind": kind})
        found.append((f"jax_privacy {kind}", answer["rmse"], answer["worst"]))
    return found


if __name__ == "__main__":
    main()
