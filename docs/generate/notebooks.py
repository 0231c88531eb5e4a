"""Scripts with cells, executed: a page with what they print and draw, and a notebook to download."""

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path

import jupytext
import nbformat
from nbclient import NotebookClient
from nbconvert import MarkdownExporter

_SECONDS = 600  # for one cell, on a machine that does other things too


@dataclass(frozen=True, kw_only=True)
class Executed:
    """A notebook that was run: its page, its pictures by name, and itself."""

    markdown: str
    pictures: dict[str, bytes]
    notebook: str


def execute(script: Path) -> Executed:
    """Run a script in an empty folder; an error in a cell is an error here."""
    notebook = jupytext.read(script)
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=_SECONDS, resources={"metadata": {"path": folder}}).execute()
    exporter = MarkdownExporter()
    page, resources = exporter.from_notebook_node(
        notebook, resources={"unique_key": script.stem, "output_files_dir": script.stem}
    )
    return Executed(
        markdown=f"{page}\n\n[This page as a notebook]({script.stem}.ipynb)\n",
        pictures=dict(resources["outputs"]),
        notebook=nbformat.writes(notebook),
    )


def kept(script: Path, folder: Path) -> Executed:
    """What the script gave when it was last run, if neither it nor the package has changed since."""
    source = Path(__file__).parents[2] / "src"
    digest = hashlib.sha256(script.read_bytes())
    for path in sorted(source.rglob("*.py")):
        digest.update(path.read_bytes())
    place = folder / f"{script.stem}.{digest.hexdigest()[:16]}"
    page, notebook = place / "page.md", place / "notebook.ipynb"
    if not notebook.exists():
        made = execute(script)
        (place / "pictures").mkdir(parents=True, exist_ok=True)
        for name, content in made.pictures.items():
            (place / "pictures" / Path(name).name).write_bytes(content)
        page.write_text(made.markdown, encoding="utf-8")
        notebook.write_text(made.notebook, encoding="utf-8")
    pictures = {f"{script.stem}/{path.name}": path.read_bytes() for path in (place / "pictures").iterdir()}
    return Executed(
        markdown=page.read_text(encoding="utf-8"), pictures=pictures, notebook=notebook.read_text()
    )
