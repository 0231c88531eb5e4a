"""Pages of documentation as blocks of code, run in their order in a folder with the sample files."""

import ast
import contextlib
import doctest
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from sourdine.cli import app

ROOT = Path(__file__).parent.parent
SAMPLES = ROOT / "docs" / "samples"
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

_FENCE = re.compile(
    r"(?:^<!-- (?P<mark>not run|slow): (?P<reason>[^\n]+?) -->\n+)?"
    r"^```(?P<kind>\w*)(?: title=\"(?P<title>[^\"\n]+)\")?\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_SHELL = ("", "console", "sh")
_DATA = ("text", "csv", "json", "toml")


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of code. `mark` is "", "slow" or "not run", the latter two with a reason."""

    kind: str
    title: str
    body: str
    line: int
    mark: str
    reason: str


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    fences = sum(line.startswith("```") for line in text.splitlines())
    found = list(_FENCE.finditer(text))
    assert 2 * len(found) == fences, f"{page.name} has a fence that is not understood"
    for one in found:
        yield Block(
            kind=one["kind"],
            title=one["title"] or "",
            body=one["body"],
            line=text.count("\n", 0, one.start("body")),
            mark=one["mark"] or "",
            reason=one["reason"] or "",
        )


def run_page(page: Path, folder: Path, *, slow: bool = False) -> None:
    """Run all blocks of a page in a folder, which must be the current one."""
    shutil.copytree(SAMPLES, folder, dirs_exist_ok=True)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.mark == "not run" or (block.mark == "slow" and not slow):
            continue
        place = f"{page.name}, line {block.line + 1}"
        if block.kind == "python" and block.title:
            (folder / block.title).write_text(block.body, encoding="utf-8")  # a program, which a command runs
        elif block.kind in ("python", "pycon"):
            _run_python(block, names, place)
        elif block.kind in _DATA:
            _keep(block, folder)
        else:
            assert block.kind in _SHELL, f"{place}: nobody knows how to run '{block.kind}'"
            for command, shown in _commands(block.body):
                _run_command(command, shown, place)


def _run_python(block: Block, names: dict[str, object], place: str) -> None:
    if ">>>" not in block.body:
        exec(compile(ast.parse(block.body), place, "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(block.body, names, place, place, block.line)
    test.globs = names  # the parser copies them, and later blocks want what this one defines
    said = io.StringIO()
    failed, _ = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=said.write, clear_globs=False)
    assert failed == 0, said.getvalue()


def _keep(block: Block, folder: Path) -> None:
    """Data must be well-formed; with a title it is a file that later blocks use."""
    if block.kind == "toml":
        tomllib.loads(block.body)
    if block.kind == "json":
        json.loads(block.body)
    if block.title:
        (folder / block.title).write_text(block.body, encoding="utf-8")


def _commands(body: str) -> Iterator[tuple[str, str]]:
    """Commands and what is shown of their output. Without `$`, every line is a command."""
    text = body.replace("\\\n", " ")
    if not text.lstrip().startswith("$ "):
        yield from ((line, "") for line in text.splitlines() if line.strip() and not line.startswith("#"))
        return
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown


def _run_command(command: str, shown: str, place: str) -> None:
    program, *words = shlex.split(command, comments=True)
    if program == "python":
        other = subprocess.run([sys.executable, *words], check=False, capture_output=True, text=True)
        assert other.returncode == 0, f"{place}: {command}\n{other.stderr}"
        return
    assert program == "sourdine", f"{place}: '{command}' cannot be run here. Mark its block with the reason."
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, words)
    assert result.exit_code == 0, f"{place}: {command}\n{result.output}\n{result.exception!r}"
    if shown.strip():
        alike = doctest.OutputChecker().check_output(shown, result.output, FLAGS)
        assert alike, f"{place}: {command}\nshown:\n{shown}\nis:\n{result.output}"


def run_notebook(page: Path) -> str:
    """Run a notebook, a script with cells, and return what it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(page.read_text(encoding="utf-8"), str(page), "exec"), {"__name__": "__main__"})
    return said.getvalue()
