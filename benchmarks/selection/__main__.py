"""The command line: `python -m benchmarks.selection [--runs N] [--only WORD] [--small] [--json PATH]`.

2,000 groups at epsilon 0.5, most of them of a few records and some of up to 30. Of every form so many
releases with seeds of their own, and of all rows that they show the share whose interval holds the exact
number.
"""

import argparse
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import sourdine as sd
from benchmarks.finding import verdict
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits
from tests.campaigns.release_intervals import RememberedEngine

GROUPS, EPSILON, DELTA, CONFIDENCE = 2_000, 0.5, 1e-6, 0.95
FORMS = {
    "HAVING COUNT(*) > 12": ("count", "SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) > 12"),
    "HAVING SUM(pay) > 900": ("sum of pay", "SELECT k, SUM(pay) FROM t GROUP BY k HAVING SUM(pay) > 900"),
    "HAVING COUNT(*) < -9": ("count", "SELECT k, COUNT(*) FROM t GROUP BY k HAVING COUNT(*) < -9"),
    "HAVING COUNT(*) > 12, two columns": (
        "count",
        "SELECT k, sex, COUNT(*) FROM t GROUP BY k, sex HAVING COUNT(*) > 12",
    ),
    "ORDER BY n DESC LIMIT 20": (
        "n",
        "SELECT k, COUNT(*) AS n FROM t GROUP BY k ORDER BY n DESC LIMIT 20",
    ),
    "ORDER BY s DESC LIMIT 20": (
        "s",
        "SELECT k, SUM(pay) AS s FROM t GROUP BY k ORDER BY s DESC LIMIT 20",
    ),
    "AVG(pay), ORDER BY SUM(pay) DESC LIMIT 20": (
        "m",
        "SELECT k, SUM(pay) AS s, AVG(pay) AS m FROM t GROUP BY k ORDER BY s DESC LIMIT 20",
    ),
    "AVG(pay), HAVING COUNT(*) > 12 ORDER BY n DESC LIMIT 20": (
        "m",
        "SELECT k, COUNT(*) AS n, AVG(pay) AS m FROM t GROUP BY k HAVING COUNT(*) > 12 "
        "ORDER BY n DESC LIMIT 20",
    ),
}


def people(small: bool) -> tuple[sd.Table, dict[str, dict[tuple[object, ...], float]]]:
    """The table, and the exact numbers of every key, added up without an engine."""
    draws = np.random.default_rng(5)
    sizes = draws.poisson(3, GROUPS)
    if not small:
        sizes += (draws.random(GROUPS) < 0.05) * draws.integers(0, 30, GROUPS)
    places = np.repeat(np.arange(GROUPS), sizes)
    pay = np.rint(np.clip(draws.normal(40, 15, len(places)), 0, 100)).astype(int)
    sexes = draws.integers(0, 2, len(places))
    names = [f"k{place:04}" for place in range(GROUPS)]
    columns = {
        "k": {"type": "category", "keys": names},
        "sex": {"type": "category", "keys": ["f", "m"]},
        "pay": {"type": "integer", "lower": 0, "upper": 100},
    }
    frame = pa.table({"k": np.array(names)[places], "sex": np.array(["f", "m"])[sexes], "pay": pay})
    counts, sums = np.bincount(places, minlength=GROUPS), np.bincount(places, pay, GROUPS)
    by_sex = np.bincount(2 * places + sexes, minlength=2 * GROUPS)
    truth: dict[str, dict[tuple[object, ...], float]] = {
        "count": {(name,): float(number) for name, number in zip(names, counts, strict=True)},
        "sum": {(name,): float(number) for name, number in zip(names, sums, strict=True)},
        "mean": {(name,): s / n for name, s, n in zip(names, sums, counts, strict=True) if n},
        "both": {(names[at // 2], "fm"[at % 2]): float(number) for at, number in enumerate(by_sex)},
    }
    return sd.Table(frame, unit="person", columns=columns), truth


def truth_of(form: str, label: str) -> str:
    """Which exact numbers an answer is compared with."""
    if "two columns" in form:
        return "both"
    return {"count": "count", "n": "count", "sum of pay": "sum", "s": "sum", "m": "mean"}[label]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.selection", description=__doc__)
    parser.add_argument("--runs", type=int, default=1000, help="releases of each form")
    parser.add_argument("--only", default="", help="forms with this word")
    parser.add_argument(
        "--small", action="store_true", help="only groups of a few records, which noise alone lifts"
    )
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write every figure here")
    options = parser.parse_args()
    table, truth = people(options.small)
    source = replace(table.source, engine=RememberedEngine(table.source.engine))
    console = Console()
    figures: list[dict[str, Any]] = []
    title = f"{options.runs} releases of {GROUPS:,} groups, epsilon {EPSILON:g}"
    shown = Table("form", "delta", "rows shown", "covered", "standard error", "median width", title=title)
    for form, (label, sql) in FORMS.items():
        if options.only not in form:
            continue
        for delta in (None, DELTA):
            noise = None if delta is None else "gaussian"
            plan = table.plan(table.sql(sql), epsilon=EPSILON, delta=delta, quality=False, noise=noise)
            rows, hits, widths = [], [], []
            exact = truth[truth_of(form, label)]
            for run in range(options.runs):
                answers = _carry_out(plan, source, bits=SeededBits(run)).values
                answer = next(each for each in answers if each.statistic == label)
                here = [each for each in answer.rows() if each[0] in exact]
                rows.append(len(here))
                hits.append(
                    sum(low <= exact[key] + 1e-9 and exact[key] - 1e-9 <= up for key, _, low, up in here)
                )
                widths += [up - low for *_, low, up in here]
            covered = sum(hits) / max(1, sum(rows))
            # rows of one release may miss together: the error of a ratio of two means over releases
            spread = np.std(np.array(hits) - covered * np.array(rows)) * math.sqrt(options.runs)
            error = float(spread / max(1, sum(rows)))
            floor = math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / max(1, sum(rows)))
            figures.append(
                {
                    "form": form,
                    "delta": delta,
                    "rows": sum(rows),
                    "covered": covered,
                    "error": max(error, floor),
                    "width": float(np.median(widths)) if widths else None,
                }
            )
            figure = figures[-1]
            cells = (f"{covered:.4f}", f"{figure['error']:.4f}", f"{figure['width'] or math.nan:.3g}")
            shown.add_row(form, "none" if delta is None else f"{delta:g}", f"{sum(rows):,}", *cells)
    console.print(shown)
    fails = [each for each in figures if each["covered"] < CONFIDENCE - 4 * each["error"]]
    least = min(each["covered"] for each in figures)
    told = (
        f"least coverage of what is shown {least:.4f}; 0.95 less 4 standard errors is missed by {len(fails)}"
    )
    verdict(console, not fails, told)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
