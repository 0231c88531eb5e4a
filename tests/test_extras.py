"""What an installation brings, and the lines that install the rest."""

import re
from importlib.metadata import metadata
from pathlib import Path

import pytest

from sourdine.core.lazy import install_line

ROOT = Path(__file__).parents[1]
EXTRAS = metadata("sourdine").get_all("Provides-Extra") or []


@pytest.mark.parametrize("extra", EXTRAS)
def test_a_line_that_installs_names_distributions(extra: str) -> None:
    line = install_line(extra)
    assert line.startswith("pip install ")
    assert re.findall(r'"([\w.\[\]-]+)(?:[<>=][^"]*)?"', line)


def test_no_page_or_message_installs_what_is_on_no_index() -> None:
    """Sourdine is installed from its checkout or its wheel; `sourdine[extra]` would ask an index for it."""
    files = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.py")]
    files += [*(ROOT / "src").rglob("*.py"), *(ROOT / "reproduction").rglob("*.py")]
    advised = re.compile(r"pip install[^\n`]*\bsourdine(\[|\s|$)")
    found = [
        path.name for path in files if path.name != "CHANGELOG.md" and advised.search(path.read_text("utf-8"))
    ]
    assert not found


def test_the_plain_installation_has_no_renderer_of_pictures() -> None:
    """It takes 88 MB; reports draw their charts in the reader's browser."""
    requirements = metadata("sourdine").get_all("Requires-Dist") or []
    assert not [each for each in requirements if each.startswith("vl-convert") and "extra" not in each]


def test_no_page_has_a_path_of_one_machine() -> None:
    """Pages that benchmarks and experiments write are made wherever those run."""
    path_of_a_machine = re.compile(r"(?<![\w.])/(?:work|root|home|tmp|opt|Users)/\w")
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.csv")]
    assert not [page.name for page in pages if path_of_a_machine.search(page.read_text("utf-8"))]
