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
    from sourdine.cli.verbs import VERBS, asked_for, make_app

    gc.set_threshold(_OBJECTS, 10, 10)
    soften_streams()
    completing = "_SOURDINE_COMPLETE" in os.environ  # what a shell asks for may be any verb
    try:
        with HEARTBEAT.working(_tell):
            make_app(VERBS if completing else asked_for(sys.argv[1:]))()
    except SystemExit as end:
        if not end.code:
            _forgo_last_searches()
        raise


def _forgo_last_searches() -> None:
    """Search for unused cycles once: a process that ends would do so four times, over every module loaded.

    Not after a mistake: its traceback still holds tables of DuckDB, which prints that they were left behind.
    """
    gc.collect()
    gc.freeze()


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
