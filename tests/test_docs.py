"""Every block of code in the README and the documentation runs, and the pages they point to exist."""

import importlib
import importlib.util
import re
import runpy
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.documents import ROOT, blocks, run_notebook, run_page

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))
SPARK = ROOT / "docs" / "tutorials" / "spark.md"
LONG = (
    *("learning", "parts_of_the_sources"),  # pages; README and how-tos have the same in short
    *("anonymity_fails", "training", "training_budget"),  # notebooks, which are run for the documentation too
)
SLOW = [page for page in PAGES if any(block.mark == "slow" for block in blocks(page))]

# Why blocks are not run here, and how many there are of each kind: whoever marks another one changes this.
NOT_RUN = {
    "serves until it is stopped": 1,
    "a server goes on until it is ended; tests start it": 1,
    "servers go on until they are ended; tests start them": 2,
    "needs the store of a server that ran": 4,
    "a page; tests of the client run such ones in Chromium": 1,
    "JavaScript; tests of the client run it in Node": 1,
    "make sets up an environment": 2,
    "needs the files of MNIST": 5,
    "needs a file of weights and images": 1,
    "needs a Spark session": 1,
    "needs a server of your own": 5,
    "a part of a specification": 2,
    "needs systemd, a container engine or a cluster": 3,
    "it needs torchrun": 2,
    "needs transformers, which the slow tests have": 3,
    "needs a library of somebody else": 6,
}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] if page.stem in LONG else [])
        for page in sorted({*PAGES} - {SPARK})
    ],
    ids=name_of,
)
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW, ids=name_of)
def test_slow_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page, tmp_path, slow=True)


def test_blocks_that_are_not_run_are_known() -> None:
    marked = Counter(block.reason for page in PAGES for block in blocks(page) if block.mark == "not run")
    assert dict(marked) == NOT_RUN


@pytest.mark.parametrize(
    "text",
    [
        "```\nsourdine budget explain -1\n```\n",
        "```\nrm -rf people.csv\n```\n",
        "```console\n$ sourdine --version\nsourdine 99\n```\n",
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "```python\nassert 1 + 1 == 3\n```\n",
        "```toml\nepsilon = \n```\n",
        "```ruby\nputs 1\n```\n",
        "```python {.wide}\n1 + 1\n```\n",
    ],
)
def test_a_wrong_block_is_found(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, ValueError)):
        run_page(page, tmp_path)


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if page.stem in LONG else []) for page in NOTEBOOKS],
    ids=name_of,
)
def test_notebooks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_notebook(page)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # PySpark warns of the pandas that is installed
def test_examples_on_spark_run() -> None:
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    pytest.importorskip("pyspark", reason="PySpark is not installed")
    asked = [sys.executable, "-W", "ignore", "-m", "doctest", "-o", "ELLIPSIS", str(SPARK)]
    done = subprocess.run(asked, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", page.read_text()):
        assert "://" in link or (page.parent / link).exists(), link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tests_that_pages_name_exist(page: Path) -> None:
    for path, name in re.findall(r"`(tests/[\w/.]+)::(\w+)`", page.read_text()):
        assert f"def {name}(" in (ROOT / path).read_text(), f"{path}::{name}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_modules_that_pages_name_exist(page: Path) -> None:
    for path in re.findall(r"`((?:[a-z_]+/)+[a-z_]+\.py)", page.read_text()):
        assert any((ROOT / folder / path).exists() for folder in ("", "src/sourdine")), path


@pytest.mark.parametrize("package", ["tables", "mechanisms", "accounting", "local", "learning", "anonymity"])
def test_every_public_name_is_on_one_page_of_the_reference(package: str) -> None:
    text = "\n".join(page.read_text() for page in sorted((ROOT / "docs" / "reference").glob("*.md")))
    listed = re.findall(rf"^::: sourdine\.{package}\n.*members: \[(.*)\]", text, re.M)
    alone = re.findall(rf"^::: sourdine\.{package}\.(choose|generalise)\.\1\n", text, re.M)  # as modules
    names = [name for names in listed for name in names.split(", ")] + alone
    assert sorted(names) == sorted(importlib.import_module(f"sourdine.{package}").__all__)


def test_the_way_of_a_row_is_drawn_as_it_is() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "generate" / "row.py"))
    assert drawn["picture"]() == (ROOT / "docs" / "pictures" / "row.svg").read_text(encoding="utf-8")
    package = ROOT / "src" / "sourdine"
    lost = [
        name for name in drawn["modules"]() if not list(package.glob(f"{name}.py")) + list(package.glob(name))
    ]
    assert lost == []


def test_the_summary_of_experiments_is_made_of_the_table_of_verdicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two that are kept with the source; what the other pages show is made by `make reproduce`."""
    kept = ROOT / "docs" / "reproduced"
    script = importlib.util.spec_from_file_location(
        "reproduced", ROOT / "docs" / "generate" / "reproduced.py"
    )
    assert script is not None
    assert script.loader is not None
    made = importlib.util.module_from_spec(script)
    script.loader.exec_module(made)
    (tmp_path / "verdicts.csv").write_bytes((kept / "verdicts.csv").read_bytes())
    monkeypatch.setattr(made, "CHAPTER", tmp_path)
    monkeypatch.setattr(sys, "argv", ["reproduced.py", str(tmp_path / "no results")])
    made.main()
    for name in ("README.md", "verdicts.csv"):
        assert (tmp_path / name).read_bytes() == (kept / name).read_bytes()
    for source in ("report", "notes", "slides", "changes", "contents"):
        assert (tmp_path / f"{source}.md").exists()
