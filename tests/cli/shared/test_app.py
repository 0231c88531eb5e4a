import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from sourdine.cli import app as root
from sourdine.cli.shared.app import TRACE, OneSentence

COMMAND = Path(sys.executable).with_name("sourdine")


def crash(problem: BaseException) -> Result:
    """A verb that goes wrong."""
    app = typer.Typer(cls=OneSentence, pretty_exceptions_enable=False)

    @app.callback()
    def root() -> None:
        pass

    @app.command()
    def verb() -> None:
        raise problem

    return CliRunner().invoke(app, ["verb"])


@pytest.mark.parametrize(
    "problem",
    [
        ZeroDivisionError("secret"),
        RecursionError("secret"),
        KeyError("secret"),
        UnicodeEncodeError("ascii", "secret", 0, 1, "secret"),
        AssertionError("secret"),
    ],
)
def test_a_mistake_of_its_own_is_one_sentence_without_data(
    monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    monkeypatch.delenv(TRACE)
    result = crash(problem)
    assert (result.exit_code, result.stdout) == (70, "")
    assert result.stderr.startswith("The program stopped at a mistake of its own")
    assert f"{TRACE}=1" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "secret" not in result.stderr


def test_a_trace_is_there_for_whoever_asks() -> None:
    result = crash(ZeroDivisionError("why"))
    assert result.exit_code == 1
    assert isinstance(result.exception, ZeroDivisionError)


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (MemoryError(), "This needs more memory than there is. Ask for less at a time.\n"),
        (OSError(errno.ENOSPC, "No space"), "The output cannot be written (No space). Send it to another"),
        (OSError(errno.EACCES, "Denied", "a.csv"), "a.csv cannot be used (Denied). Check its path"),
        (OSError("odd"), "The output cannot be written (no reason is known)."),
    ],
)
def test_what_the_machine_refuses_is_told(
    monkeypatch: pytest.MonkeyPatch, problem: Exception, told: str
) -> None:
    monkeypatch.setattr("sourdine.cli.shared.app.drop_output", lambda: None)
    result = crash(problem)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(told)
    assert result.stderr.count("\n") == 1


def test_interrupting_is_no_crash() -> None:
    assert crash(KeyboardInterrupt()).exit_code == 130


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
@pytest.mark.parametrize(
    "verb",
    [("--version",), pytest.param(("audit", "laplace", "--samples", "1000"), marks=pytest.mark.slow)],
)
def test_a_full_disk_is_one_sentence(verb: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([COMMAND, *verb], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    told = [line for line in done.stderr.splitlines() if " so far" not in line]  # where it took long
    assert len(told) == 1
    assert told[0].startswith("The output cannot be written (")


@pytest.mark.parametrize(
    "verb",
    [
        ("--help",),
        *(
            pytest.param(verb, marks=pytest.mark.slow)
            for verb in (("budget",), ("--version",), ("reproduce", "--json"))
        ),
    ],
)
def test_a_reader_who_has_seen_enough_is_no_failure(verb: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as gone:
        done = subprocess.run([COMMAND, *verb], stdout=gone, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_help_names_no_type_where_there_is_nothing_to_type() -> None:
    for words in (["--help"], ["release", "--help"], ["audit", "--help"], ["local", "estimate", "--help"]):
        text = CliRunner().invoke(root, words).stdout
        assert "--help" in text
        assert "<bool>" not in text
        assert "list[" not in text


def test_arguments_stand_as_in_manuals() -> None:
    text = " ".join(CliRunner().invoke(root, ["local", "estimate", "--help"]).stdout.split())
    assert "Usage: sourdine local estimate [OPTIONS] SPEC REPORTS..." in text
    assert "REPORTS <path>... Files of reports" in text


def test_a_group_with_a_default_says_that_its_argument_or_a_verb_comes() -> None:
    text = " ".join(CliRunner().invoke(root, ["audit", "--help"]).stdout.split())
    assert "Usage: sourdine audit [OPTIONS] [NAME] | COMMAND [ARGS]..." in text


def test_a_verb_below_a_default_does_not_show_the_argument_it_replaces() -> None:
    text = " ".join(CliRunner().invoke(root, ["audit", "attack", "--help"]).stdout.split())
    assert "Usage: sourdine audit attack [OPTIONS] [NAME]" in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["ledger", "creat"], "No such command 'creat'. Did you mean 'create'? To see which there are: "),
        (["budget", "explain", "1", "--delt", "0"], "No such option: --delt. Did you mean --delta? To see "),
        (["demo", "--nonsense"], "No such option: --nonsense. To see which there are: "),
    ],
)
def test_a_near_miss_is_named_once(words: list[str], told: str) -> None:
    result = CliRunner().invoke(root, words)
    assert result.exit_code == 2
    assert result.stderr.startswith(told)


def test_a_wrong_value_is_echoed_without_what_a_terminal_obeys() -> None:
    result = CliRunner().invoke(
        root, ["budget", "dpsgd", "-n", "1", "-s", "a'\x1b[2Jb", "-b", "1", "-e", "1"]
    )
    assert result.exit_code == 2
    assert "must be a whole number. Got " in result.stderr
    assert "\x1b" not in result.stderr


def test_a_shell_completes_verbs() -> None:
    asked = {
        **os.environ,
        "_SOURDINE_COMPLETE": "complete_bash",
        "COMP_WORDS": "sourdine rel",
        "COMP_CWORD": "1",
    }
    done = subprocess.run([COMMAND], env=asked, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, ["release"])
