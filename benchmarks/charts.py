"""Charts of cost against size and of accuracy against epsilon, from measures that benchmarks leave."""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sourdine.core.display import Figure
from sourdine.report.charts.base import Axis, Band, Row, Series, draw_lines

_TENS = tuple(10.0**power for power in range(-4, 10))
_SECONDS = Axis(field="seconds", title="seconds, log scale", log=True, form="~g", ticks=_TENS)
_AXES = {"deciles": "groups", "private": "keys in the data"}  # where it is not the size's own name
_ENGINES = {"duckdb": "DuckDB", "polars lazy": "Polars", "spark": "Spark"}
_LIBRARIES = {"sourdine": "Sourdine", "diffprivlib": "diffprivlib", "interpret": "DP-EBM (interpret)"}
Measures = Any  # JSON of one benchmark


def growth_figures(measures: Measures) -> dict[str, Figure]:
    """The cost of a release against rows, keys, groups and rows of people who have many."""
    held = {
        task: [
            each
            for each in measures
            if each["task"] == task
            and each["engine"] in _ENGINES
            and each["grid"] == "cents"
            and "error" not in {**each["plain"], **each["private"]}
        ]
        for task in ("rows", "declared", "private", "deciles", "people")
    }
    asked = (
        ("growth_rows", "rows", "rows", "count, mean and deciles by 100 keys"),
        ("growth_keys", "declared", "keys", "count and mean by declared keys"),
        ("growth_private", "private", "keys", "count and mean by keys that nobody declared"),
        ("growth_groups", "deciles", "keys", "nine deciles by group"),
        ("growth_people", "people", "rows", "count and mean by 100 keys, 100 rows a person"),
    )
    found = {}
    for name, task, size, words in asked:
        if held[task]:
            rows = f"On {max(each['rows'] for each in held[task]):,} rows" if size == "keys" else ""
            fewer = ", Spark on a million." if any(each["engine"] == "spark" for each in held[task]) else "."
            found[name] = Figure(
                title=f"A release {'of' if size == 'rows' else 'by'} {_largest(held[task], size)}: {words}",
                chart=_lines(_engines(held[task], size), _size(size, f"{_AXES.get(task, size)}, log scale")),
                note=rows + fewer if rows else "",
            )
    return found


def keys_figures(measures: Measures) -> dict[str, Figure]:
    """The cost of keys that are chosen privately."""
    rows: list[Row] = []
    for each in measures:
        rows.append({"keys": each["keys"], "seconds": each["seconds"], "who": each["unit"]})
        rows.append({"keys": each["keys"], "seconds": each["plain"], "who": "DuckDB without privacy"})
    last = max(measures, key=lambda each: (each["keys"], each["seconds"]))
    return {
        "keys": Figure(
            title=f"{last['keys']:,} keys that nobody declared take {last['seconds']:.3g} s, memory of "
            f"{last['gigabytes']:.2g} GB",
            chart=_lines(_least(rows), _size("keys", "keys in the data, log scale")),
        )
    }


def quantiles_figures(measures: Measures) -> dict[str, Figure]:
    """The cost of nine deciles against numpy's sort, and diffprivlib."""
    rows: list[Row] = []
    for size, (sort, joint) in measures["growth"].items():
        rows.append({"values": int(size), "seconds": sort, "who": "numpy's sort, without privacy"})
        rows.append({"values": int(size), "seconds": joint, "who": "Sourdine, nine deciles"})
    peer = measures["diffprivlib"]
    for many, seconds in ((peer["at"], peer["seconds"]), (measures["size"], peer["extrapolated"])):
        rows.append({"values": many, "seconds": seconds, "who": "diffprivlib"})
    size, (sort, joint) = list(measures["growth"].items())[-1]
    return {
        "quantiles": Figure(
            title=f"Nine deciles of {int(size):,} values take {joint:.2g} s, "
            f"{joint / sort:.2g} times the sort",
            chart=_lines(rows, _size("values", "values, log scale")),
            note="diffprivlib's last point is extrapolated from its first.",
        )
    }


def estimators_figures(measures: Measures) -> dict[str, Figure]:
    """The accuracy of each library's best model against epsilon, with a deviation of its runs."""
    found = {}
    for data in ("adult", "pima"):
        rows: list[Row] = []
        for library, who in _LIBRARIES.items():
            held = [each for each in measures if (each["data"], each["library"]) == (data, library)]
            for epsilon in sorted({each["epsilon"] for each in held}):
                runs = max(
                    (each["accuracy"] for each in held if each["epsilon"] == epsilon), key=statistics.fmean
                )
                mean, off = statistics.fmean(runs), statistics.stdev(runs)
                rows.append(
                    {"epsilon": epsilon, "accuracy": mean, "who": who, "low": mean - off, "high": mean + off}
                )
        least = {row["who"]: float(row["accuracy"] or 0) for row in reversed(rows)}  # at the first epsilon
        first = _LIBRARIES["sourdine"]
        other = max(value for who, value in least.items() if who != first)
        found[f"estimators_{data}"] = Figure(
            title=f"{data.capitalize()} at epsilon {rows[0]['epsilon']:g}: {least[first]:.1%} are classified "
            f"rightly, by the best peer {other:.1%}",
            chart=draw_lines(
                rows,
                x=Axis(field="epsilon", title="epsilon, log scale", log=True, ticks=(0.1, 0.5, 1, 3)),
                y=Axis(field="accuracy", title="accuracy on test rows, mean of runs", form=".0%"),
                series=Series(field="who", names=tuple(_LIBRARIES.values())),
                bars=Band(lower="low", upper="high"),
            ),
            note="The best model of each library at each epsilon; bars are one deviation of the runs.",
        )
    return found


def synthetic_figures(measures: Measures) -> dict[str, Figure]:
    """How far pairs of columns lie from the real ones, by method and epsilon."""
    rows: list[Row] = []
    for each in measures:
        runs = [run["two"] for run in each["runs"] if run["two"] is not None]
        if runs:
            mean, off = statistics.fmean(runs), statistics.stdev(runs) if len(runs) > 1 else 0.0
            who = each["method"].replace("ours", "Sourdine")
            rows.append(
                {"epsilon": each["epsilon"], "two": mean, "who": who, "low": mean - off, "high": mean + off}
            )
    names = tuple(dict.fromkeys(str(row["who"]) for row in rows))
    least = {row["who"]: float(row["two"] or 0) for row in reversed(rows)}  # at the first epsilon
    other = min((value for who, value in least.items() if "MST" in str(who)), default=None)
    beside = "" if other is None else f", with the best peer {other:.3f}"
    return {
        "synthetic": Figure(
            title=f"Adult at epsilon {rows[0]['epsilon']:g}: pairs of synthetic columns lie "
            f"{least['Sourdine']:.3f} from the real ones, {least['Sourdine, target']:.3f} with a "
            f"target{beside}",
            chart=draw_lines(
                rows,
                x=Axis(field="epsilon", title="epsilon, log scale", log=True, ticks=(1, 3)),
                y=Axis(field="two", title="total variation, mean of all pairs", form=".2f"),
                series=Series(field="who", names=names),
                bars=Band(lower="low", upper="high"),
            ),
            note="Less is closer. Bars are one deviation of the runs, where there are several. "
            "Estimation by peers ends after 300 iterations, where it says so.",
        )
    }


FIGURES: Mapping[str, Callable[[Measures], dict[str, Figure]]] = {
    "estimators": estimators_figures,
    "growth": growth_figures,
    "keys": keys_figures,
    "quantiles": quantiles_figures,
    "synthetic": synthetic_figures,
}


def draw(name: str, measures: Path, folder: Path) -> list[tuple[Path, Figure]]:
    """Draw the charts of a benchmark into a folder; nothing if it left no measures."""
    from sourdine.core.display import picture

    if name not in FIGURES or not measures.exists():
        return []
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for title, figure in FIGURES[name](json.loads(measures.read_text())).items():
        path = folder / f"{title}.png"
        path.write_bytes(picture(figure))
        drawn.append((path, figure))
    return drawn


def _engines(cases: Sequence[Any], size: str) -> list[Row]:
    """Ours and plain, for each engine."""
    rows: list[Row] = []
    for each in cases:
        name = _ENGINES[each["engine"]]
        rows.append({size: each[size], "seconds": each["private"]["seconds"], "who": f"private, on {name}"})
        rows.append({size: each[size], "seconds": each["plain"]["seconds"], "who": f"plain {name}"})
    return rows


def _largest(cases: Sequence[Any], size: str) -> str:
    """What the largest case on DuckDB takes, in words."""
    most = max((each for each in cases if each["engine"] == "duckdb"), key=lambda each: each[size])
    ours, plain = most["private"]["seconds"], most["plain"]["seconds"]
    return f"{most[size]:,} {size} takes {ours:.2g} s on DuckDB, {ours / plain:.2g} times the plain query"


def _least(rows: Sequence[Row]) -> list[Row]:
    """The quickest of what was measured several times at one place."""
    best: dict[tuple[object, object], Row] = {}
    for row in sorted(rows, key=lambda row: float(row["seconds"] or 0)):
        best.setdefault((row["who"], row["keys"]), row)
    return list(best.values())


def _size(field: str, title: str) -> Axis:
    return Axis(field=field, title=title, log=True, form="~s", ticks=_TENS)


def _lines(rows: Sequence[Row], x: Axis) -> Any:
    names = tuple(dict.fromkeys(str(row["who"]) for row in rows))
    return draw_lines(rows, x=x, y=_SECONDS, series=Series(field="who", names=names))
