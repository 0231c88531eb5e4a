"""The pictures of Studio's tutorial: `python docs/generate/studio.py` writes docs/pictures/studio/*.png.

Run it in the folder of the project. The system's Chromium takes them, of a made-up table.
"""

import sys
import tempfile
from pathlib import Path

from gallery import DOCS, keep_picture
from playwright.sync_api import Page, sync_playwright

sys.path.insert(0, str(DOCS.parent))
from benchmarks.studio.running import running
from sourdine.accounting.ledger import Ledger

PICTURES = DOCS / "pictures" / "studio"
_ROWS, _REGIONS = 800, ("north", "south", "east", "west")
_SIZE = {"width": 1280, "height": 820}
_SPECIFICATION = f"""
[table]
source = "people.csv"
size = {_ROWS}
[privacy]
unit = "person"
epsilon = 1
ledger = "people.ledger"
[columns]
age = {{ type = "integer", lower = 0, upper = 120 }}
sex = {{ type = "category", keys = ["f", "m"] }}
region = {{ type = "category", keys = {list(_REGIONS)} }}
pay = {{ type = "real", lower = 0.0, upper = 100000.0 }}
[[queries]]
name = "pay"
ask = [{{ mean = "pay" }}]
by = ["sex", "region"]
"""


def main() -> None:
    """Go through the steps, and keep a picture of four of them."""
    with tempfile.TemporaryDirectory() as made, sync_playwright() as playwright:
        folder = Path(made)
        rows = (
            f"{k},{18 + 7 * k % 70},{'fm'[k % 2]},{_REGIONS[k // 2 % 4]},{20_000 + 37 * k % 30_000}"
            for k in range(_ROWS)
        )
        (folder / "people.csv").write_text("\n".join(["id,age,sex,region,pay", *rows]) + "\n")
        (folder / "people.toml").write_text(_SPECIFICATION, encoding="utf-8")
        Ledger.create(folder / "people.ledger", epsilon=3, unit="person").close()
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page(viewport=_SIZE, color_scheme="light", reduced_motion="reduce")
        with running(folder) as studio:
            studio.enter(page)
            for step, name in (("columns", "columns"), ("budget", "noise"), ("release", "release")):
                _take(page, f"{studio.base}/spec/people.toml#{step}", step, name)
            page.get_by_label("I know that this spends").check()
            page.get_by_role("button", name="Pay").first.click()
            page.get_by_text("Released into").wait_for(timeout=60_000)
            _take(page, f"{studio.base}/spec/people.toml#result", "result", "result")
        browser.close()


def _take(page: Page, address: str, step: str, name: str) -> None:
    page.goto(address)
    page.locator(f"#{step}-title").wait_for()
    if step == "budget":
        page.get_by_role("button", name="Draw the noise").click()
    page.evaluate("window.scrollTo(0, 0)")
    page.wait_for_timeout(2000)  # charts are drawn after the page has loaded
    keep_picture(page.screenshot(), PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
