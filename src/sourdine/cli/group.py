"""Groups of verbs: one sentence for every mistake, and verbs that also take a name."""

import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from sourdine.core.errors import SourdineError


class OneSentence(TyperGroup):
    """The root of the command line: bad input ends in one sentence on stderr and exit code 2."""

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **settings: Any
    ) -> None:
        settings["standalone_mode"] = False
        try:
            code = super().main(args, prog_name, **settings)
        except SourdineError as problem:
            code = _complain(str(problem))
        except typer.TyperException as problem:
            code = _complain(problem.format_message())
        except typer.Abort:
            code = 130
        except BrokenPipeError:
            code = 0
        except OSError as problem:
            code = _complain(f"A file could not be used ({problem.strerror}). Check its path and rights.")
        sys.exit(code if isinstance(code, int) else 0)


class VerbOrName(TyperGroup):
    """A verb whose first word is either a verb below it or an argument of its own."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        below = any(arg in self.commands for arg in args)
        ctx.meta[self._key(ctx)] = below
        ctx.allow_interspersed_args = not below
        return super().parse_args(ctx, args)

    def get_params(self, ctx: typer.Context) -> list[Any]:  # type: ignore[override]
        """The argument steps aside for a verb, which it would swallow."""
        params = super().get_params(ctx)
        if ctx.meta.get(self._key(ctx)):
            return [param for param in params if param.param_type_name != "argument"]
        return params

    @staticmethod
    def _key(ctx: typer.Context) -> str:
        """Groups share one dictionary along a command, so each has its own key."""
        return f"sourdine.cli: a verb below {ctx.info_name}"


def _complain(sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return 2
