from functools import partial

from benchmarks.charts import growth_figures, keys_figures, quantiles_figures
from benchmarks.page import Run, contents, page

RUN = partial(Run, date="2026-01-02", machine="a machine", load=0.1)


def test_the_first_page_counts_targets_and_says_where_others_are_better() -> None:
    told = "a table\nmet: 2 times as quick\nmissed: 3 GB\nbetter elsewhere: DuckDB by 5 times\n"
    noise = page(RUN(name="noise", quick=True, output=told))
    assert "A quick run" in noise
    made = contents({"noise": noise, "local": page(RUN(name="local", quick=False, output=""))}, "pages")
    assert "**1 targets are met, 1 missed.**" in made
    assert made.index("## Missed") < made.index("## Where somebody else is better")
    assert "- [noise](pages/noise.md): 3 GB" in made
    assert "| [noise](pages/noise.md) | 1 | 1 | 1 | 2026-01-02 |" in made
    assert made.index("| [local]") < made.index("| [noise]")


def test_pictures_stand_on_the_page_of_their_benchmark() -> None:
    figure = quantiles_figures(
        {
            "size": 10**7,
            "growth": {"10000": [0.001, 0.02], "10000000": [0.5, 0.25]},
            "diffprivlib": {"at": 10**6, "seconds": 14.0, "extrapolated": 150.0},
        }
    )["quantiles"]
    assert figure.title == "Nine deciles of 10,000,000 values take 0.25 s, 0.5 times the sort"
    made = page(RUN(name="quantiles", quick=False, output="met: x"), [("pictures/q.png", figure)])
    assert made.index("| met | x |") < made.index(f"![{figure.title}](pictures/q.png)")


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


def test_a_finding_with_a_bar_is_read_back() -> None:
    """Cells of Markdown end at a bar, so one within a finding is escaped."""
    made = page(RUN(name="noise", quick=False, output="a table\nmissed: |error| of 3 GB\n"))
    assert made.count("of 3 GB") == 1
    assert "- [noise](pages/noise.md): |error| of 3 GB" in contents({"noise": made}, "pages")


def test_a_benchmark_without_targets_shows_its_first_table() -> None:
    printed = """\
        title
┏━━━━━━┳━━━━━━━━━┓
┃ case ┃ seconds ┃
┃      ┃ each    ┃
┡━━━━━━╇━━━━━━━━━┩
│ one  │ 2       │
│      │ 3       │
│ two  │ 4       │
└──────┴─────────┘
┏━━━┓
┃ a ┃
└───┘
"""
    made = page(RUN(name="noise", quick=False, output=printed))
    assert "| case | seconds each |\n| --- | --- |\n| one | 2 3 |\n| two | 4 |\n\n" in made
    assert "| a |" not in made
