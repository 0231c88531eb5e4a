import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from sourdine.cli import app

COMMAND = Path(sys.executable).with_name("sourdine")


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"sourdine {version('sourdine')}\n"


def test_without_a_verb_shows_the_verbs() -> None:
    result = CliRunner().invoke(app, [])
    assert result.exit_code == 0
    assert "sourdine demo" in result.stdout
    assert "audit" in result.stdout


def verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every verb below a command, with those before it."""
    for name, found in getattr(command, "commands", {}).items():
        yield (*path, name)
        yield from verbs(found, (*path, name))


VERBS = list(verbs(get_command(app)))
TO_A_FILE = {("ledger", "export")}  # JSON or CSV
SERVERS = {
    ("studio",),
    ("collect", "serve"),
    ("collect", "shuffle"),
    ("collect", "issue"),
}  # which go on until they are ended


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_has_help_with_an_example(verb: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*verb, "--help"])
    assert result.exit_code == 0
    told = " ".join(result.stdout.split("Usage")[1].split("\n", 1)[1].split())
    assert f"sourdine {' '.join(verb)} " in told, "end its docstring with 'Example: sourdine ...'"
    group = any(other[:-1] == verb for other in VERBS)
    assert group or verb in TO_A_FILE | SERVERS or "--json" in told, "give it the option --json"


# one of them or several, by verb
LISTS = {
    "--batch-size",
    "--epochs",
    "--hidden",
    "--reduce",
    "--decoder",
    "--oracle",
    "--key",
}  # or one of them
OTHERWISE = {
    "--each": "an epsilon, or how many queries a person answers",
    "--secret": "a file of bytes, or a column with its value, which an attack is after",
    "--table": "the table, or a table of beliefs",
    "--test": "a folder of examples, or the share of the rows",
}


Meaning = tuple[object, tuple[str, ...]]


def options(command: Any, verb: str = "sourdine") -> Iterator[tuple[str, str, Meaning]]:
    """Every option of every verb, with its type and all its names."""
    for each in command.params:
        kind = each.type_descriptor.annotation if hasattr(each, "type_descriptor") else str
        if each.param_type_name == "option":
            yield from ((name, verb, (kind, tuple(each.opts))) for name in each.opts)
    for name, below in getattr(command, "commands", {}).items():
        yield from options(below, f"{verb} {name}")


def test_an_option_means_the_same_in_every_verb() -> None:
    meanings: dict[str, dict[Meaning, str]] = {}
    for name, verb, meaning in options(get_command(app)):
        meanings.setdefault(name, {}).setdefault(meaning, verb)
    unlike = {
        name: each
        for name, each in meanings.items()
        if len(each) > 1 and not {long for _, longs in each for long in longs} & (LISTS | OTHERWISE.keys())
    }
    assert unlike == {}
    for name, kind in (("--html", Path), ("-o", Path), ("--output", Path), ("--json", bool), ("--seed", int)):
        assert [meaning[0] for meaning in meanings[name]] == [kind]
    assert list(meanings["-o"]) == list(meanings["--output"])  # it is never something else


def test_an_unknown_verb_is_one_sentence() -> None:
    result = CliRunner().invoke(app, ["demonstrate"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("No such command 'demonstrate'")
    assert len(result.stderr.splitlines()) == 1


def test_the_installed_command() -> None:
    bad = subprocess.run(
        [COMMAND, "budget", "explain", "1", "-d", "-1"], capture_output=True, text=True, check=False
    )
    assert bad.returncode == 2
    assert bad.stdout == ""
    lines = [line for line in bad.stderr.splitlines() if not line.startswith("at work, ")]  # a slow machine
    assert lines == ["The 'delta' of explain must lie between 0 and 1. Got '-1'."]


def test_a_command_that_ends_is_not_told_of_by_its_engine(tmp_path: Path) -> None:
    """DuckDB prints every object that Python leaves behind, as it did after a demo that ended quicker."""
    done = subprocess.run([COMMAND, "demo"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "leaked" not in done.stdout + done.stderr
