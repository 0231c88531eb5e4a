"""The pages of all verbs, as `--help` prints them: one for each group, and one for the others."""

from typer.main import get_command
from typer.testing import CliRunner

from sourdine.cli import app

_HEAD = """# Commands

What every command prints with `--help`. Most take `--json`, for machines. A mistake in an option ends in one
sentence and exit code 2.
"""


def commands_pages() -> dict[str, str]:
    """The pages as Markdown: of single verbs (its name is empty), and of each group by its name."""
    groups = dict(_groups((), get_command(app)))
    links = [f"- [sourdine {' '.join(words)}](commands_{'_'.join(words)}.md)" for words in groups if words]
    lead = "\n".join([_HEAD, "Groups of commands:\n", *links, ""])
    return {
        "_".join(words): "\n".join([_head(words) if words else lead, *_sections(words, group)])
        for words, group in groups.items()
    }


def _groups(words: tuple[str, ...], command: object) -> list[tuple[tuple[str, ...], object]]:
    """A group, and all groups below it."""
    below = getattr(command, "commands", None)
    if not below:
        return []
    return [(words, command), *(each for name in below for each in _groups((*words, name), below[name]))]


def _sections(words: tuple[str, ...], group: object) -> list[str]:
    """Every verb of a group; groups below it have pages of their own."""
    verbs = getattr(group, "commands", {})
    alone = [(*words, name) for name, verb in verbs.items() if not getattr(verb, "commands", None)]
    return [line for each in alone for line in (f"## sourdine {' '.join(each)}\n", _shown(each))]


def _head(words: tuple[str, ...]) -> str:
    return f"# sourdine {' '.join(words)}\n\n{_shown(words)}"


def _shown(words: tuple[str, ...]) -> str:
    return f"```text\n{_help(words)}\n```\n"


def _help(words: tuple[str, ...]) -> str:
    said = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"}).invoke(app, [*words, "--help"]).stdout
    return "\n".join(line.rstrip() for line in said.strip("\n").splitlines())
