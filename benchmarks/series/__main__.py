"""The command line: `python -m benchmarks.series`, by parts (--only) or shorter (--quick)."""

import argparse
import json
import math
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.finding import better, verdict
from benchmarks.peers import Environment
from benchmarks.series import training
from benchmarks.series.audits import audits
from benchmarks.series.errors import VIEWS, bound, errors, ours, real_root, simple
from benchmarks.series.year import day_by_day, kills, prepare
from sourdine.mechanisms.correlation import PowerMatrix
from tests.campaigns.series_intervals import CONFIDENCE, coverage

PEER = Environment(name="jax_privacy", requirements=("jax-privacy==2.0.0",))
_LIMIT = 1.02
_KINDS = {  # of the peer, and the periods up to which they are asked
    "toeplitz": 10_000,
    "toeplitz by optimiser": 1000,
    "buffered mean": 10_000,
    "buffered max": 10_000,
    "dense": 1000,
}


_PARTS = ("errors", "year", "kills", "coverage", "audit", "training", "mnist")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.series", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="52 and 365 periods, 30 days, 20 kills")
    parser.add_argument("--only", action="append", choices=_PARTS, help="this part alone; may be repeated")
    parser.add_argument("--periods", type=int, action="append", help="errors of this horizon alone")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every measure here")
    parser.add_argument("--limit", type=float, default=150.0, help="seconds for each optimiser of the peer")
    parser.add_argument("--mnist", type=Path, metavar="FOLDER", help="IDX files, to train one pass on")
    options = parser.parse_args()
    console, parts = Console(), tuple(options.only or _PARTS)
    results: list[dict[str, Any]] = []
    if "errors" in parts:
        for periods in options.periods or ((52, 365) if options.quick else (52, 365, 1000, 10_000)):
            results += compare(periods, options.limit, console)
    if "year" in parts:
        results.append({"year": show_year(30 if options.quick else 365, console)})
    if "kills" in parts:
        results.append({"kills": show_kills(20 if options.quick else 500, console)})
        chosen = show_kills(10 if options.quick else 100, console, chosen=True)
        results.append({"kills, keys chosen": chosen})
    if "coverage" in parts:
        results += show_coverage(200 if options.quick else 1000, console)
    if "audit" in parts:
        results.append(show_audits(console, quick=options.quick))
    if "training" in parts:
        results += training.noise(console, quick=options.quick)
    if "mnist" in parts and options.mnist is not None:
        results += training.mnist(options.mnist, console)
    elif "mnist" in parts:
        console.print("MNIST is left out: say where its IDX files are, with --mnist FOLDER.")
    if options.json:
        options.json.write_text(json.dumps(results, indent=2) + "\n")


def show_year(days: int, console: Console) -> dict[str, float]:
    """Time and memory of a year, day by day."""
    with tempfile.TemporaryDirectory() as folder:
        year = day_by_day(Path(folder), keys=1000, periods=days, records=2000)
    console.print(
        f"1,000 keys by {days} days, 2,000 records a day: {year['day'] * 1e3:.0f} ms a day (slowest "
        f"{year['slowest'] * 1e3:.0f} ms), {year['year']:.0f} s in all, {year['memory'] / 1e6:.0f} MB more, "
        f"{year['state'] / 1e6:.1f} MB of state"
    )
    return year


def show_kills(times: int, console: Console, *, chosen: bool = False) -> dict[str, int]:
    """Publishers that are killed, with keys that are declared or chosen."""
    with tempfile.TemporaryDirectory() as folder:
        after = kills(Path(folder), times=times, chosen=chosen)
    good = after["shown"] > 1 and not (after["changed"] or after["refused"] or after["paid_twice"])
    how = "keys chosen privately" if chosen else "keys declared"
    verdict(console, good, f"{after['kills']} kills at random moments, {how}: {after}")
    return after


def show_coverage(series: int, console: Console) -> list[dict[str, Any]]:
    """How often intervals hold."""
    found = coverage(series)
    slack = 3 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / series)
    for each in found:
        text = (
            f"{each.view}: {series:,} series, {each.alone:.1%} at a period, {each.joint:.1%} at all of them"
        )
        verdict(console, min(each.alone, each.joint) >= CONFIDENCE - slack, text)
    return [{"view": each.view, "alone": each.alone, "joint": each.joint} for each in found]


def show_audits(console: Console, *, quick: bool) -> dict[str, Any]:
    """Audits at the claim, and of faults."""
    with tempfile.TemporaryDirectory() as folder:
        specification = prepare(Path(folder), keys=3, periods=6, records=4)
        return {
            "audits": audits(
                specification, console, pairs=3 if quick else 20, samples=20_000 if quick else 200_000
            )
        }


def compare(periods: int, limit: float, console: Console) -> list[dict[str, Any]]:
    """One horizon: a table, and whether ours is near the best."""
    results = []
    for name, view in VIEWS.items():
        if view.first > periods:
            continue
        mine = ours(periods, view)
        others = [*simple(periods, view), *(peers(periods, limit, console) if view.window is None else ())]
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


def peers(periods: int, limit: float, console: Console) -> list[tuple[str, float, float]]:
    """jax_privacy's factorisations of totals, where it installs."""
    try:
        PEER.prepare()
    except Exception as problem:  # no network, or no wheel for this machine
        console.print(f"jax_privacy is left out: it did not install ({type(problem).__name__}).")
        return []
    found = []
    for kind, most in _KINDS.items():
        if periods <= most:
            found += _reached(periods, kind, limit, console)
    return found


def _reached(periods: int, kind: str, limit: float, console: Console) -> list[tuple[str, float, float]]:
    """What an optimiser of the peer has reached within a time, by more and more of its steps.

    With as many as it takes unless told, its answer is final; before that, the last that came in time counts.
    """
    begin, best, name = time.perf_counter(), [], f"jax_privacy {kind}"
    worker = PEER.start("benchmarks.series.with_jax_privacy")
    try:
        for turns in (10, 100, 1000, None) if kind != "toeplitz" else (None,):
            left = limit - (time.perf_counter() - begin)
            answer = worker.ask({"periods": periods, "kind": kind, "turns": turns}, max(left, 0.1))
            told = name if turns is None else f"{name} ({turns} steps, stopped after {limit:.0f} s)"
            best = [(told, answer["rmse"], answer["worst"])]
    except TimeoutError:
        if not best:
            console.print(f"{name}, {periods:,} periods: nothing within {limit:.0f} s.")
    finally:
        worker.__exit__(None, None, None)
    return [each for each in best if math.isfinite(each[1])]


if __name__ == "__main__":
    main()
