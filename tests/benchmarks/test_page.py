from functools import partial

from benchmarks.charts import growth_figures, keys_figures, quantiles_figures
from benchmarks.page import Run, page, parts

RUN = partial(Run, date="2026-01-02", machine="a machine", load=0.1)


def test_the_page_counts_targets_and_says_where_others_are_better() -> None:
    told = "a table\nmet: 2 times as quick\nmissed: 3 GB\nbetter elsewhere: DuckDB by 5 times\n"
    made = page([RUN(name="noise", quick=True, output=told)])
    assert "**1 targets are met, 1 missed.**" in made
    assert made.index("## Missed") < made.index("## Where somebody else is better") < made.index("## noise")
    assert "- noise: 3 GB" in made
    assert "A quick run" in made


def test_pictures_stand_in_the_part_of_their_benchmark() -> None:
    figure = quantiles_figures(
        {
            "size": 10**7,
            "growth": {"10000": [0.001, 0.02], "10000000": [0.5, 0.25]},
            "diffprivlib": {"at": 10**6, "seconds": 14.0, "extrapolated": 150.0},
        }
    )["quantiles"]
    assert figure.title == "Nine deciles of 10,000,000 values take 0.25 s, 0.5 times the sort"
    runs = [RUN(name=name, quick=False, output="met: x") for name in ("noise", "quantiles")]
    made = page(runs, {"quantiles": [("pictures/q.png", figure)]})
    assert made.index("## quantiles") < made.index(f"![{figure.title}](pictures/q.png)")


def test_titles_tell_the_largest_case() -> None:
    sides = {"plain": {"seconds": 2.0, "bytes": 1}, "private": {"seconds": 3.0, "bytes": 1}}
    case = {"rows": 10**8, "keys": 100, "engine": "duckdb", "grid": "cents", "task": "rows", **sides}
    failed = {**case, "rows": 10**9, "private": {"error": "no memory"}}
    figures = growth_figures([case, failed, {**case, "keys": 10**6, "task": "declared"}])
    assert figures["growth_rows"].title.startswith(
        "A release of 100,000,000 rows takes 3 s on DuckDB, 1.5 times"
    )
    assert "1,000,000 keys takes 3 s" in figures["growth_keys"].title
    assert figures["growth_keys"].note == "On 100,000,000 rows."
    one = {"unit": "one row per unit", "keys": 10, "seconds": 0.5, "plain": 0.1, "gigabytes": 1.0}
    most = {**one, "keys": 1000, "seconds": 7.0}
    assert keys_figures([most, one])["keys"].title.startswith("1,000 keys that nobody declared take 7 s")


def test_a_benchmark_is_run_again_without_the_others() -> None:
    """The page keeps what it said of them, their findings and their place."""
    noise = RUN(name="noise", quick=False, output="a table\nmissed: 3 GB\n")
    first = page([noise, RUN(name="local", quick=False, output="met: 2 times\n")])
    again = page(
        [RUN(name="local", quick=False, output="better elsewhere: by 5 times\n")], earlier=parts(first)
    )
    assert "**0 targets are met, 1 missed.**" in again
    assert parts(again)["noise"] == parts(first)["noise"]
    assert again.index("- local: by 5 times") < again.index("## local") < again.index("## noise")
    assert page([noise], earlier=parts(page([noise]))) == page([noise])
