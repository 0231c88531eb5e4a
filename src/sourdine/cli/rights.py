"""Who may read what the command line writes: its owner, unless it is asked to share."""

import contextlib
import os
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Annotated

import typer

from sourdine.core import disk

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
    asked = _umask.get()
    if asked is not None and not shared:
        yield
        return
    before = os.umask(_OTHERS)
    asked = before if asked is None else asked
    os.umask(asked if shared else _OTHERS)
    token = _umask.set(asked)
    try:
        with disk.shared(shared):
            yield
    finally:
        _umask.reset(token)
        os.umask(before)
