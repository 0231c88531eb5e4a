"""Pages of the site that are made from something else: the README, notebooks, help texts, the benchmarks."""

import posixpath
import re
import time
from pathlib import Path
from typing import Any

import kept
from commands import commands_pages
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from notebooks import Executed, execute
from progress import Progress, tell

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_MOVED = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "measuring.md",
}
_NO_BENCHMARKS = "# Benchmarks\n\nThey were not run for this site: `make bench` writes this page.\n"
_READING, _WRITING = Progress("reading page"), Progress("writing page")
_REPRODUCED = "reproduced/"  # pages of `make reproduce`, most of which are not kept with the source
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out of the navigation what `make reproduce` has not made."""
    config.nav = _made(config.nav)
    return config


def _made(entry: Any) -> Any:
    """Return an entry of the navigation without pages that are not there; None if nothing is left of it."""
    if isinstance(entry, list):
        return [made for each in entry if (made := _made(each)) is not None] or None
    if isinstance(entry, dict):
        return {name: made for name, each in entry.items() if (made := _made(each)) is not None} or None
    return entry if not entry.startswith(_REPRODUCED) or (DOCS / entry).exists() else None


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every page that is made."""
    for source, place in _MOVED.items():
        text = _relinked((ROOT / source).read_text(encoding="utf-8"), source, place)
        text = _folded(text) if source == "CHANGELOG.md" else text
        files.append(File.generated(config, place, content=text))
    if not (DOCS / "benchmarks.md").exists():
        files.append(File.generated(config, "benchmarks.md", content=_NO_BENCHMARKS))
    for group, text in commands_pages().items():
        place = f"reference/commands_{group}.md" if group else "reference/commands.md"
        files.append(File.generated(config, place, content=text))
    scripts = sorted((DOCS / "notebooks").glob("*.py"))
    for number, script in enumerate(scripts, start=1):
        made = _executed(script, f"notebook {number} of {len(scripts)}: {script.stem}")
        files.append(File.generated(config, f"notebooks/{script.stem}.md", content=made.markdown))
        files.append(File.generated(config, f"notebooks/{script.stem}.ipynb", content=made.notebook))
        for name, content in made.pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def _executed(script: Path, label: str) -> Executed:
    """What a notebook made: now, or before if it would be the same."""
    if found := kept.find(script):
        tell(f"{label}, kept from before")
        return found
    tell(label)
    start = time.monotonic()
    made = execute(script)
    tell(f"{label}, done in {time.monotonic() - start:.0f} s")
    kept.keep(script, made)
    return made


def on_page_context(context: Any, page: Page, config: MkDocsConfig, nav: Any) -> Any:
    """Tell which page is written."""
    _WRITING.step(page.file.src_uri, len(nav.pages))
    return context


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Pages point to where their targets went."""
    _READING.step(page.file.src_uri, len(files.documentation_pages()))
    source = f"docs/{page.file.src_uri}"
    if page.file.src_uri in _MOVED.values():  # its links were seen to when it was moved
        return markdown
    return _relinked(markdown, source, page.file.src_uri)


def _folded(text: str) -> str:
    """The list below each kind of change, folded: a version has hundreds of them."""

    def fold(part: re.Match[str]) -> str:
        entries = len(re.findall(r"^- ", part[2], re.MULTILINE))
        summary = f"<summary>{entries} entries</summary>"
        return f'{part[1]}\n<details markdown="1">{summary}\n\n{part[2].strip()}\n\n</details>\n\n'

    return re.sub(r"^(### [^\n]*\n)(.*?)(?=^##|\Z)", fold, text, flags=re.MULTILINE | re.DOTALL)


def _relinked(text: str, source: str, place: str) -> str:
    """A page with all its links as they are seen from its place in the site."""
    return _LINK.sub(lambda link: _moved(link[1], source, place), text)


def _moved(link: str, source: str, place: str) -> str:
    """A link in a file of the repository, as it is seen from the file's place in the site."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
    if (ROOT / target).is_dir():
        target += "/README.md"
    if target.startswith("docs/notebooks/") and target.endswith(".py"):
        target = target.removesuffix(".py") + ".md"
    inside = _MOVED.get(target) or target.removeprefix("docs/")
    return posixpath.relpath(inside, posixpath.dirname(place) or ".")
