"""The page of all verbs, as `--help` prints them."""

from typer.main import get_command
from typer.testing import CliRunner

from sourdine.cli import app

_HEAD = """# Commands

What every verb prints with `--help`. Most take `--json`, for machines. What is wrong with an option is said
in one sentence, and the command ends with code 2.
"""


def commands_page() -> str:
    """The page as Markdown."""
    return "\n".join([_HEAD, *_sections((), get_command(app))])


def _sections(words: tuple[str, ...], command: object) -> list[str]:
    """A verb and all below it."""
    title = f"{'#' * min(len(words) + 1, 4)} sourdine {' '.join(words)}"
    parts = [title, "", "```text", _help(words), "```", ""] if words else []
    for name, below in getattr(command, "commands", {}).items():
        parts += _sections((*words, name), below)
    return parts


def _help(words: tuple[str, ...]) -> str:
    said = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"}).invoke(app, [*words, "--help"]).stdout
    return "\n".join(line.rstrip() for line in said.strip("\n").splitlines())
