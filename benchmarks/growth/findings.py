"""What the measures come to: tables of seconds and memory, and whether targets are met."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.finding import better, verdict
from benchmarks.growth.cases import TASKS

Result = Mapping[str, Any]
MEMORY = 8 << 30
_TIMES = (
    # task, rows, keys, engine, at most so many times the query without privacy
    ("rows", 10**8, 100, "duckdb", 1.5),
    ("declared", 10**7, 10**6, "duckdb", 3.0),
    ("private", 10**7, 10**6, "duckdb", 5.0),
    ("deciles", 10**6, 10**3, "duckdb", 5.0),
    ("people", 10**7, 100, "duckdb", 2.0),
    ("people", 10**7, 100, "polars lazy", 2.0),
)
_EXPRESSIONS = 1.5  # times the query without privacy, in processor time
_ABOVE, _FIRST = 0.15, 0.4  # seconds: of small tables beyond the plain query, and of the first table


def good(results: Sequence[Result]) -> list[Result]:
    """What was measured without a failure."""
    return [each for each in results if "error" not in {**each["plain"], **each["private"]}]


def show(results: Sequence[Result], console: Console) -> None:
    """Seconds and memory, and the ratio to the same query without privacy on the same engine."""
    for task, words in TASKS.items():
        held = [each for each in results if each["task"] == task]
        if held:
            console.print(_table(words, held))
    for each in good(results):
        _judge(each, console)
    for task in TASKS:
        ratio, most = _dearest([each for each in good(results) if each["task"] == task])
        if ratio > 1:
            better(
                console,
                f"{TASKS[task]}, at {most['rows']:,} rows and {most['keys']:,} keys: {most['engine']} "
                f"without privacy takes 1/{ratio:.2g} of the time, {most['plain']['seconds']:.2g} s",
            )


def _table(title: str, results: Sequence[Result]) -> Table:
    shown = Table(title=title)
    for name in ("engine", "what"):
        shown.add_column(name)
    for name in ("rows", "keys", "plain s", "private s", "times", "of cpu", "plain GB", "private GB"):
        shown.add_column(name, justify="right")
    for each in results:
        plain, ours = each["plain"], each["private"]
        which = each["question"] or each["grid"]
        cells = [each["engine"], which, f"{each['rows']:,}", f"{each['keys']:,}"]
        if "error" in plain or "error" in ours:
            shown.add_row(*cells, plain.get("error", ""), ours.get("error", ""))
            continue
        numbers = [plain["seconds"], ours["seconds"], ours["seconds"] / plain["seconds"], times_of(each)]
        memory = [plain["bytes"] / 1e9, ours["bytes"] / 1e9]
        shown.add_row(*cells, *(f"{number:.3g}" for number in numbers), *(f"{size:.2f}" for size in memory))
    return shown


def times_of(each: Result) -> float:
    """How many times the plain query: in processor time, which others on the machine hardly change.

    Spark computes in a process of its own, whose time is that of the clock.
    """
    measure = "seconds" if each["engine"] == "spark" else "processor"
    return float(each["private"][measure] / each["plain"][measure])


def _judge(each: Result, console: Console) -> None:
    """Whether one measure meets its target, if it has one."""
    plain, ours = each["plain"], each["private"]
    what = f"{TASKS[each['task']]}, {each['rows']:,} rows, {each['keys']:,} keys, {each['engine']}"
    memory = f"{ours['bytes'] / 1e9:.2f} GB, plain {plain['bytes'] / 1e9:.2f}"
    for task, rows, keys, engine, most in _TIMES:
        if (each["task"], each["rows"], each["keys"], each["engine"]) == (task, rows, keys, engine):
            clock, ratio = ours["seconds"] / plain["seconds"], times_of(each)
            text = (
                f"{what}, on {each['grid']}: {ratio:.2f} times the plain query's processor time, "
                f"{clock:.2f} times by the clock (target {most:g}); {memory}"
            )
            verdict(console, ratio <= most and ours["bytes"] <= MEMORY, text)
    if each["question"] and each["rows"] >= 10**7:
        ratio = times_of(each)
        text = f"{each['question']}, {each['rows']:,} rows: {ratio:.2f} times plain DuckDB's processor time"
        verdict(console, ratio <= _EXPRESSIONS, f"{text} (target {_EXPRESSIONS:g}); {memory}")
    if each["task"] == "small":
        above = ours["seconds"] - plain["seconds"]
        text = f"{what}: {above:.3f} s above the plain query (target {_ABOVE:g}); {memory}"
        verdict(console, above <= _ABOVE, text)
    if each["task"] == "first":
        text = f"{what}: {ours['seconds']:.2f} s with what it loads (target {_FIRST:g}); {memory}"
        verdict(console, ours["seconds"] <= _FIRST, text)
    if each["task"] == "deciles" and each["keys"] == 10**5:
        verdict(console, True, f"{what}: possible, in {ours['seconds']:.2g} s; {memory}")


def _dearest(results: Sequence[Result]) -> tuple[float, Result]:
    """Where privacy multiplies the time most, and by how much."""
    ratios = [(each["private"]["seconds"] / each["plain"]["seconds"], each) for each in results]
    return max(ratios, key=lambda pair: pair[0], default=(0.0, {}))
