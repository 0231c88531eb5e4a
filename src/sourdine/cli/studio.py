"""`sourdine studio`: publish a table from a page in the browser."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.release import publish
from sourdine.cli.shared import show
from sourdine.cli.shared.heartbeat import HEARTBEAT
from sourdine.core.errors import InvalidParameter
from sourdine.core.lazy import install_line

if TYPE_CHECKING:
    from sourdine.tables import Specification
    from sourdine.tables.publication import PublishedRelease
    from sourdine.tables.release import Watch


def studio(
    table: Annotated[
        Path | None, typer.Argument(help="A table, a specification, or a folder. Without it: this folder.")
    ] = None,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 takes a free one.")] = 0,
    ledger: Annotated[
        str | None, typer.Option(help="A ledger outside of the folder that may pay: a path or an address.")
    ] = None,
    browser: Annotated[bool, typer.Option(help="Whether to open the browser.")] = True,
) -> None:
    """Open a page that takes a table from its file to a certified release, served by this machine alone.

    Only files of the folder of the table are reached. The address works once, in one browser. Whatever the
    page does is kept in a specification, which every other command reads and writes as well.

    Examples: sourdine studio · sourdine studio people.csv · sourdine studio people.toml --no-browser
    """
    try:
        from sourdine.studio.server import serve
    except ImportError:
        raise InvalidParameter(
            "Studio needs Starlette, uvicorn and tomlkit, which are not installed. "
            f"Install them with: {install_line('studio')}"
        ) from None
    from sourdine.studio.desk import Desk
    from sourdine.studio.folder import Folder

    place = Path() if table is None else table
    if not place.exists():
        raise InvalidParameter(f"There is no {place}. Name a table, a specification or a folder.")
    desk = Desk(
        Folder.of(place if place.is_dir() else place.resolve().parent, ledger=ledger), _publish, _synthesize
    )
    first = ""
    if place.is_file():
        name = place.resolve().name
        first = f"spec/{name if name.endswith('.toml') else desk.start(name)}"
    with HEARTBEAT.quiet():
        serve(desk, first=first, port=port, browser=browser, tell=show.lines)


def _synthesize(specification: "Specification", folder: Path, watch: "Watch") -> object:
    from sourdine.cli.synthetic.synthesize import TABLE
    from sourdine.cli.synthetic.synthesize import publish as write_table

    return write_table(specification, folder, TABLE)


def _publish(specification: "Specification", folder: Path, watch: "Watch") -> "PublishedRelease":
    return publish(specification, folder, watch=watch)
