"""The pictures of the gallery: `python docs/generate/gallery.py` writes docs/pictures/gallery/*.png.

Commands on the files of docs/samples make every page, and the system's Chromium takes its picture. Names of
pictures as arguments make only those.
"""

import io
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright

DOCS = Path(__file__).parents[1]
PICTURES = DOCS / "pictures" / "gallery"
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
_SIZE = {"width": 1100, "height": 900}
_COLOURS = 64  # a palette is a quarter of the bytes, and text stays sharp


@dataclass(frozen=True)
class Shot:
    """One picture: the commands that make a page, and the page."""

    name: str
    commands: tuple[str, ...]
    page: str


_RELEASE = ("ledger create people.ledger --epsilon 3", "release people.toml")
SHOTS = (
    Shot("release", _RELEASE, "people-release/report.html"),
    Shot(
        "verdict",
        (*_RELEASE, "certificate show people-release --ledger people.ledger --html verdict.html"),
        "verdict.html",
    ),
    Shot(
        "spending",
        (
            *_RELEASE,
            "release people.toml -o again",
            "release people.toml -o more",
            "ledger history people.ledger --html spending.html",
        ),
        "spending.html",
    ),
    Shot("meaning", ("budget explain 1.17 --html meaning.html",), "meaning.html"),
    Shot("budget", ("budget curves --html budget.html",), "budget.html"),
    Shot(
        "survey",
        (
            "local spec work --epsilon 2 --labels labels.txt -o work.json",
            "local encode work.json answers.txt -o reports.txt",
            "local estimate work.json reports.txt --html survey.html",
        ),
        "survey.html",
    ),
    Shot(
        "anonymity",
        ("anonymity measure people.csv --quasi age,sex,postcode --sensitive disease --html anonymity.html",),
        "anonymity.html",
    ),
    Shot("attack", ("audit attack reconstruction --html attack.html",), "attack.html"),
)


def main() -> None:
    """Make every page in a fresh copy of the samples, and keep a picture of each."""
    PICTURES.mkdir(exist_ok=True)
    command = str(Path(sys.executable).with_name("sourdine"))
    chromium = next(filter(None, map(shutil.which, _BROWSERS)), None)
    names = sys.argv[1:] or [shot.name for shot in SHOTS]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport=_SIZE, color_scheme="light", reduced_motion="reduce")
        for shot in (each for each in SHOTS if each.name in names):
            with tempfile.TemporaryDirectory() as made:
                folder = shutil.copytree(DOCS / "samples", Path(made) / "samples")
                for words in shot.commands:
                    subprocess.run([command, *words.split()], cwd=folder, check=True, capture_output=True)
                page.goto((folder / shot.page).as_uri(), wait_until="networkidle")
                page.wait_for_timeout(1500)  # charts are drawn after the page has loaded
                keep_picture(page.screenshot(), PICTURES / f"{shot.name}.png")
        browser.close()


def keep_picture(picture: bytes, path: Path) -> None:
    image = Image.open(io.BytesIO(picture)).convert("RGB")
    image.quantize(_COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main()
