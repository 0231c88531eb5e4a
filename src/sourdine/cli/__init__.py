"""The command line, one module a verb."""

import gc
import os
import sys

import typer

_OBJECTS = 100_000  # between two collections: of 700, they took a tenth of a short command


def main() -> None:
    """The `sourdine` command."""
    from sourdine.cli.shared.app import soften_streams
    from sourdine.cli.shared.heartbeat import HEARTBEAT
    from sourdine.cli.verbs import asked_for, make_app

    gc.set_threshold(_OBJECTS, 10, 10)
    soften_streams()
    completing = "_SOURDINE_COMPLETE" in os.environ  # what a shell asks for may be any verb
    with HEARTBEAT.working(_tell):
        make_app(None if completing else asked_for(sys.argv[1:]))()


def _tell(text: str) -> None:
    from sourdine.cli.shared import show  # it draws tables, and takes longer to load than quick commands take

    show.line(text, aside=True)


def __getattr__(name: str) -> typer.Typer:
    """`app`, the whole command line, for programs: every verb is loaded."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sourdine.cli.verbs import make_app

    globals()["app"] = app = make_app()
    return app
