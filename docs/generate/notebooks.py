"""Scripts with cells, executed: a page with what they print and draw, and a notebook to download."""

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
        NotebookClient(
            notebook,
            timeout=_SECONDS,
            startup_timeout=_SECONDS,
            resources={"metadata": {"path": folder}},
            extra_arguments=["--IPKernelApp.log_level=40"],  # errors only
        ).execute()
    exporter = MarkdownExporter()
    page, resources = exporter.from_notebook_node(
        notebook, resources={"unique_key": script.stem, "output_files_dir": script.stem}
    )
    return Executed(
        markdown=f"{page}\n\n[This page as a notebook]({script.stem}.ipynb)\n",
        pictures=dict(resources["outputs"]),
        notebook=nbformat.writes(notebook),
    )
