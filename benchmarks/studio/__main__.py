"""The command line: `python -m benchmarks.studio [--quick]`. It needs Playwright and Chromium."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from benchmarks.finding import verdict
from benchmarks.studio.path import Hand, publish, write_people
from benchmarks.studio.running import COUNTED

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAINT, REDRAW = 0.5, 0.1  # seconds, at most
QUESTIONS = 30
_PAINTED = """() => new Promise((done) => new PerformanceObserver((list) => {
  for (const each of list.getEntriesByName("first-contentful-paint")) done(each.startTime);
}).observe({ type: "paint", buffered: true }))"""
# from the slider's move until the next frame after the forecast has changed
_MOVED = """async (place) => {
  const slider = document.querySelector("[data-slider]"), forecast = document.getElementById("forecast");
  performance.mark("moved");
  const changed = new Promise((done) => new MutationObserver((_, watch) => { watch.disconnect(); done(); })
    .observe(forecast, { subtree: true, childList: true, characterData: true }));
  slider.value = place;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  await changed;
  await new Promise(requestAnimationFrame);
  return performance.measure("redrawn", "moved").duration;
}"""
_SPECIFICATION = """
[table]
source = "thirty.csv"
[privacy]
unit = "person"
epsilon = 1
[columns]
age = { type = "integer", lower = 0, upper = 120 }
sex = { type = "category", keys = ["f", "m"] }
region = { type = "category", keys = ["north", "south", "east", "west"] }
pay = { type = "real", lower = 0.0, upper = 100000.0 }
smoker = { type = "flag" }
"""
_ASKED = (
    'ask = ["count"]\nby = ["sex", "region"]',
    'ask = [{ mean = "pay" }]\nby = ["sex"]',
    'ask = [{ proportion = "smoker" }]\nby = ["region"]',
    'ask = [{ histogram = "age", edges = [0, 20, 40, 60, 80, 100, 120] }]',
    'ask = [{ variance = "pay" }]',
)


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, int]]:
    """Studio as the command starts it, in a process of its own: its first address, and its process."""
    command = [sys.executable, "-m", "sourdine", "studio", str(folder), "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = None
        while found is None:
            line = process.stdout.readline()
            assert line, "Studio did not start"
            found = re.search(r"http://\S+token=\S+", line)
        yield found[0], process.pid
    finally:
        process.terminate()
        process.wait()


@contextmanager
def opened(browser: "Browser", address: str) -> Iterator["Page"]:
    """A page that has come in by the first address."""
    context = browser.new_context()
    context.add_init_script(COUNTED)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(address)
    page.get_by_role("button", name="Begin").wait_for()
    yield page
    context.close()


def megabytes(process: int) -> float:
    """The memory that a process holds now."""
    text = Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024  # type: ignore[index]


def painted(page: "Page", address: str, times: int) -> list[float]:
    """Seconds until something is seen, each time the page is opened."""
    found = []
    for _ in range(times):
        page.goto("about:blank")
        page.goto(address)
        found.append(page.evaluate(_PAINTED) / 1000)
    return found


def write_questions(folder: Path) -> None:
    """A specification with thirty questions, of a table of its own."""
    blocks = (f'[[queries]]\nname = "q{k}"\n{_ASKED[k % len(_ASKED)]}\n' for k in range(QUESTIONS))
    (folder / "thirty.toml").write_text(_SPECIFICATION + "".join(blocks), encoding="utf-8")


def write_rows(place: Path, rows: int) -> None:
    """A table of three columns in Parquet, with so many rows."""
    import duckdb

    made = "(range % 90)::TINYINT AS age, range % 2 = 0 AS smoker, (range % 1000)::SMALLINT AS pay"
    duckdb.connect().execute(f"COPY (SELECT {made} FROM range({rows})) TO '{place}' (FORMAT parquet)")


def begun(page: "Page", base: str, table: str) -> float:
    """Seconds from choosing a table until its page is there."""
    page.goto(base)
    page.get_by_label(table, exact=True).check()
    start = time.perf_counter()
    page.get_by_role("button", name="Begin").click()
    page.locator("#people-title").wait_for()
    return time.perf_counter() - start


def measure(browser: "Browser", folder: Path, rows: int, times: int) -> dict[str, Any]:
    """Everything, on one server."""
    shutil.copy(write_people(folder), folder / "thirty.csv")
    write_questions(folder)
    for name, many in (("few", 1_000), ("many", rows)):
        write_rows(folder / f"{name}.parquet", many)
        for place in range(times):  # under names of which none was opened before
            os.link(folder / f"{name}.parquet", folder / f"{name}-{place}.parquet")
    found: dict[str, Any] = {}
    with served(folder) as (address, process), opened(browser, address) as page:
        base = address.partition("?")[0]
        found["memory"] = megabytes(process)
        found["first"] = painted(page, base, times)
        begun(page, base, "few.parquet")  # which loads the engine
        turns = [(name, f"{name}-{place}.parquet") for place in range(times) for name in ("few", "many")]
        opening = [(name, begun(page, base, table)) for name, table in turns]
        for each in ("few", "many"):
            found[each] = [seconds for name, seconds in opening if name == each]
        found["steps"] = painted(page, f"{base}spec/thirty.toml#budget", times)
        page.locator("[data-slider]").wait_for()
        most = int(page.locator("[data-slider]").get_attribute("max") or 0)
        places = [round(most * (k + 1) / (2 * times + 1)) for k in range(2 * times)]
        found["moves"] = [page.evaluate(_MOVED, str(place)) / 1000 for place in places]
        page.goto(base)
        page.get_by_label("people.csv", exact=True).check()
        found["whole"] = publish(page)
        found["memory after"] = megabytes(process)
    found["two"] = walk(browser, folder / "two")
    return found


def walk(browser: "Browser", folder: Path) -> Hand:
    """From a file to a release with two columns declared, in a folder of its own."""
    folder.mkdir()
    write_people(folder)
    with served(folder) as (address, _), opened(browser, address) as page:
        return publish(page, whole=False)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studio", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a table of 10^6 rows, and fewer repeats")
    options = parser.parse_args()
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        parser.error("there is no chromium on the PATH")
    from playwright.sync_api import sync_playwright

    rows, times = (10**6, 3) if options.quick else (10**8, 10)
    console = Console()
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        with console.status("in the browser"):
            found = measure(browser, Path(folder), rows, times)
        browser.close()
    table = Table("what", "median", "worst", title="Studio in Chromium, seconds")
    names = {"first": "first paint, start page", "steps": "first paint, eight steps of 30 questions"}
    names["moves"] = f"slider's move redrawn, {QUESTIONS} questions"
    names |= {"few": "table of 1,000 rows opened", "many": f"table of {rows:,} rows opened"}
    for name, words in names.items():
        table.add_row(words, f"{median(found[name]):.3f}", f"{max(found[name]):.3f}")
    console.print(table)
    console.print(
        f"Memory of the server: {found['memory']:.0f} MB, {found['memory after']:.0f} after a release"
    )
    for name, columns in (("whole", "all eight columns"), ("two", "two columns")):
        hand = found[name]
        told = f"{hand.fields} fields, {hand.clicks} clicks, {hand.keys} keys"
        console.print(f"From a file of eight columns to a release, with {columns} declared: {told}")
    paint, move = max(median(found["first"]), median(found["steps"])), median(found["moves"])
    verdict(console, paint < PAINT, f"first paint in {paint:.2f} s (at most {PAINT} s)")
    said = f"a slider's move is redrawn in {1000 * move:.0f} ms for {QUESTIONS} questions (at most 100 ms)"
    verdict(console, move < REDRAW, said)
    ratio = median(found["many"]) / median(found["few"])
    verdict(
        console, ratio < 1.5, f"a table of {rows:,} rows opens in {ratio:.2f} of the time of one of 1,000"
    )


if __name__ == "__main__":
    main()
