"""Groups of verbs: one sentence for every mistake, and verbs that also take a name.

What an encoding lacks is written in plain letters, so that no terminal refuses it. Files are for their owner
alone, unless `--shared` says otherwise.
"""

import codecs
import contextlib
import io
import os
import re
import sys
import unicodedata
import warnings
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperGroup, TyperOption

from sourdine.cli.shared.old_options import read_old_options
from sourdine.core import files as disk
from sourdine.core.errors import LedgerWait, OldWord, SourdineError
from sourdine.core.format import in_files
from sourdine.core.text import tame

_PLAIN = "sourdine.plain"
_LETTERS = {"ε": "epsilon", "δ": "delta", "ρ": "rho", "–": "-", "√": "sqrt ", "∞": "inf", "·": "|"}


def soften_streams() -> None:
    """Let stdout and stderr write any text, whatever the encoding of the terminal."""
    codecs.register_error(_PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_PLAIN)


def drop_output() -> None:
    """Forget what is still held for a reader that is gone: it would fail once more at the very end."""
    with contextlib.suppress(OSError, ValueError):  # not every stdout is a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _plain(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    lacking = problem.object[problem.start : problem.end]
    return "".join(map(_letters, lacking)), problem.end


def _letters(character: str) -> str:
    """A character in ASCII: its name in letters, its plain form, or a question mark."""
    plain = unicodedata.normalize("NFKD", _LETTERS.get(character, character)).replace("\N{MINUS SIGN}", "-")
    return plain.encode("ascii", "ignore").decode() or "?"


TRACE = "SOURDINE_TRACE"  # set it to see where the program stopped
BAD_INPUT, OWN_MISTAKE = 2, 70  # exit codes; the second is EX_SOFTWARE of sysexits.h


class OneSentence(TyperGroup):
    """The root of the command line: bad input ends in one sentence on stderr and exit code 2.

    A mistake of the program itself ends in a sentence too, with exit code 70, so that scripts see which it
    is.
    """

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **settings: Any
    ) -> None:
        settings["standalone_mode"] = False
        try:
            with in_files(), _old_words_in_a_sentence():
                words = read_old_options(sys.argv[1:] if args is None else args)
                _name_no_switches(self, words)
                code = super().main(words, prog_name, **settings)
            sys.stdout.flush()  # a full disk is noticed here, and not when nobody listens any more
        except SourdineError as problem:
            code = _complain(str(problem))
        except typer.TyperException as problem:
            code = _complain(_reword(problem))
        except typer.Abort:
            code = 130
        except (BrokenPipeError, SystemExit):  # typer and rich turn the one into the other
            drop_output()
            code = 0  # a reader who has seen enough, such as `head`, is no failure
        except OSError as problem:
            code = _complain(_about_file(problem))
            if problem.filename is None:
                drop_output()
        except MemoryError:
            code = _complain("This needs more memory than there is. Ask for less at a time.")
        except Exception:
            if os.environ.get(TRACE):
                raise
            code = _complain(
                "The program stopped at a mistake of its own, and what you asked for is not done. "
                f"To see where, set {TRACE}=1 and run it again; please report what it prints, "
                "without any real data.",
                OWN_MISTAKE,
            )
        sys.exit(code if isinstance(code, int) else 0)

    def format_help(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """The list of verbs as plain text: what draws boxes takes longer to load than all else."""
        super(TyperGroup, self).format_help(ctx, formatter)

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Every verb with all that its summary says, over as many lines as it takes."""
        rows = [
            (name, (verb.help or "").split("\n\n")[0].replace("\n", " "))
            for name in self.list_commands(ctx)
            if (verb := self.get_command(ctx, name)) is not None and not verb.hidden
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@contextlib.contextmanager
def _old_words_in_a_sentence() -> Iterator[None]:
    """Words of earlier versions are told as everything else is, and not as Python tells its warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", OldWord)
        warnings.simplefilter("always", LedgerWait)
        others = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
            if issubclass(category, OldWord | LedgerWait):
                from sourdine.cli.shared.show import warn  # loads what draws tables

                warn(str(message))
            else:
                others(message, category, *where, **more)

        warnings.showwarning = tell
        yield


class _PlainArgument(TyperArgument):
    """An argument as manuals write it: no braces round one that must be there, no types of Python."""

    def get_usage_pieces(self, ctx: Any) -> list[str]:
        (piece,) = super().get_usage_pieces(ctx)
        return [piece.replace("{", "").replace("}", "")]

    def display_type(self, ctx: Any) -> str:
        shown = super().display_type(ctx)
        return shown.lower().replace("<list[", "<").replace("]>", ">...") if "<list[" in shown else shown


def _name_no_switches(command: Any, words: Sequence[str]) -> None:
    """Show a switch by its name alone, an option that may be repeated by what one of its values is.

    Arguments stand in capitals, as the texts of help and errors call them.
    Only the commands that the words name are gone through, since no other is shown.
    """
    for option in command.get_params(typer.Context(command)):
        if option.metavar is not None:
            continue
        if isinstance(option, TyperArgument):
            option.metavar = option.name.upper()
            option.__class__ = _PlainArgument
        elif isinstance(option, TyperOption) and option.is_flag:
            option.metavar = ""
        elif isinstance(option, TyperOption) and option.multiple:
            option.metavar = "<str>..."
    below = getattr(command, "commands", {})
    for word in words:
        if word in below:
            _name_no_switches(below[word], words)


class VerbOrName(TyperGroup):
    """A verb whose first word is either a verb below it or an argument of its own."""

    def collect_usage_pieces(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        *own, below = super().collect_usage_pieces(ctx)
        return [*own, "|", below]

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        below = any(arg in self.commands for arg in args)
        ctx.meta[self._key(ctx)] = below
        ctx.allow_interspersed_args = not below
        return super().parse_args(ctx, args)

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]
        """The argument steps aside for a verb, which it would swallow, and which asks how it was called."""
        params = super().get_params(ctx)
        if ctx.command is not self or ctx.meta.get(self._key(ctx)):
            return [param for param in params if param.param_type_name != "argument"]
        return params

    @staticmethod
    def _key(ctx: typer.Context) -> str:
        """Groups share one dictionary along a command, so each has its own key."""
        return f"sourdine.cli: a verb below {ctx.info_name}"


def _complain(sentence: str, code: int = BAD_INPUT) -> int:
    from sourdine.cli.shared.show import line  # loads what draws tables

    line(" ".join(sentence.split()), aside=True)
    return code


def _reword(problem: typer.TyperException) -> str:
    """What the parser of the command line says, without the names of its own parts."""
    message = problem.format_message()
    if re.match(r"No such option: -[\d.]", message):
        return (
            "A number below 0 was given where a word or a number from 0 on is expected, and its minus sign "
            "reads like an option. Write it without the sign."
        )
    context = getattr(problem, "ctx", None)
    if message.startswith("Missing ") and context is not None:
        return f"{message} To see what it needs: {context.command_path} --help"
    if message.startswith("No such command ") and context is not None:
        what, meant, others = message.partition(" Did you mean ")
        nearest = f"{meant}{others.split(',')[0].rstrip('?')}?" if meant else ""
        return f"{what}{nearest} {_commands_like(message.split(chr(39))[1], context)}"
    if message.startswith("No such option: ") and context is not None:
        what, _, others = message.partition(" (Possible options: ")
        nearest = f" Did you mean {others.rstrip(')').split(', ')[0]}?" if others else ""
        return f"{what}.{nearest} To see which there are: {context.command_path} --help"
    where, _, what = message.partition(": ")
    if not isinstance(problem, typer.BadParameter) or not what:
        return message
    name = where.removeprefix("Invalid value for ")
    echo = _echo(problem)
    if "integer" in what:
        return f"The value of {name} must be a whole number.{echo} Write it in digits, such as 1000."
    if "number" in what:
        return f"The value of {name} must be a number.{echo} Write it like 0.5."
    return f"The value of {name} is not possible: {what.removeprefix('Value error, ')}"


def _echo(problem: BaseException) -> str:
    """What was typed where something else was expected: a word of the command line, never of a table."""
    errors: list[dict[str, object]] = getattr(problem.__cause__, "errors", list)()
    return f" Got {tame(str(errors[0]['input']))!r}." if errors else ""


def _commands_like(name: str, context: typer.Context) -> str:
    """Where a command of this name is, or how to see which there are."""
    above = context.find_root().command
    groups = {"": above, **{f" {each}": group for each, group in getattr(above, "commands", {}).items()}}
    paths = [place for place, group in groups.items() if name in getattr(group, "commands", {})]
    if paths:
        return f"There is: {context.find_root().command_path}{paths[0]} {name}"
    return f"To see which there are: {context.command_path} --help"


def _about_file(problem: OSError) -> str:
    reason = problem.strerror or "no reason is known"
    if problem.filename is None:
        return f"The output cannot be written ({reason}). Send it to another place."
    return f"{problem.filename} cannot be used ({reason}). Check its path and its rights."


Shared = Annotated[
    bool,
    typer.Option(
        "--shared", help="Let others read the files, as far as your umask does. Without it they are yours."
    ),
]
_OTHERS = 0o077  # what is taken from a group and from all others
_umask: ContextVar[int | None] = ContextVar("umask", default=None)


@contextlib.contextmanager
def rights(shared: bool) -> Iterator[None]:
    """Write files for their owner alone, engines and databases too; or for others, within the umask.

    What is asked for inside counts: a verb may share where the command as a whole did not.
    """
    before_all = _umask.get()
    if before_all is not None and not shared:
        yield
        return
    before = os.umask(_OTHERS)
    before_all = before if before_all is None else before_all
    os.umask(before_all if shared else _OTHERS)
    token = _umask.set(before_all)
    try:
        with disk.shared(shared):
            yield
    finally:
        _umask.reset(token)
        os.umask(before)
