"""`sourdine ledger copy`, `backup`, `upgrade` and `grant`: where a ledger is, and who may use it."""

from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli.ledger.options import Where
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson
from sourdine.core.format import counted


def copy(
    path: Where,
    to: Annotated[str, typer.Argument(help="A new file, or a new address.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Move a ledger from a file to a server, or back, with every line. What stays behind is a backup.

    The chain is checked on the way. At no moment can both be charged; if it is cut off, run it again.

    Examples: sourdine ledger copy survey.ledger postgresql://db.example/budgets#survey ·
    sourdine ledger copy postgresql://db.example/budgets#survey survey-2.ledger
    """
    from sourdine.accounting.ledger import Ledger

    before = Ledger.open(path)
    with before.move(to) as after:
        lines, blocks = len(after.history()), after.status().blocks
    if as_json:
        show.document(
            {"ledger": str(after.path), "backup": str(before.path), "lines": lines, "blocks": blocks}
        )
        return
    show.line(
        f"{counted(blocks, 'charge')} moved to {after.path}, and replayed there. It is the ledger from now "
        f"on; {before.path} is a backup, and pays for nothing."
    )


def backup(
    path: Where,
    to: Annotated[Path, typer.Argument(help="A new file for the backup.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Keep a copy of every charge. It can be read like a ledger, and pays for nothing.

    Example: sourdine ledger backup survey.ledger survey-november.ledger
    """
    from sourdine.accounting.ledger import Ledger

    opened = Ledger.open(path)
    blocks = opened.backup(to).status().blocks
    if as_json:
        show.document({"ledger": str(opened.path), "backup": str(to), "blocks": blocks})
        return
    show.line(
        f"{counted(blocks, 'charge')} kept in {to}. It is no second budget: only {opened.path} can be "
        "charged."
    )


def grant(
    path: Where,
    role: Annotated[str, typer.Argument(help="A role of the server.")],
    *,
    read: Annotated[bool, typer.Option("--read", help="Only to look, not to charge.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let a role of the server charge a ledger, or look at it. Nobody gets the right to change a line.

    Example: sourdine ledger grant postgresql://db.example/budgets#survey analysts
    """
    from sourdine.accounting.ledger import Ledger

    with Ledger.open(path) as ledger:
        ledger.grant(role, charge=not read)
    if as_json:
        show.document({"ledger": str(ledger.path), "role": role, "charge": not read})
        return
    show.line(f"The role {show.one_line(role)} may {'look at' if read else 'charge'} {ledger.path}.")


def upgrade(path: Where, *, as_json: AsJson = False) -> None:
    """Bring a ledger on a server that version 0.2.0 made to the newest form, once, as its owner.

    Every charge is replayed first. From then on the database derives every total by itself, and earlier
    versions refuse the ledger. Nothing is spent.

    Example: sourdine ledger upgrade postgresql://db.example/budgets#survey
    """
    from sourdine.accounting.ledger import Ledger

    with Ledger.open(path) as ledger:
        ledger.upgrade()
        blocks = ledger.status().blocks
    if as_json:
        show.document({"ledger": str(ledger.path), "blocks": blocks})
        return
    show.line(f"{counted(blocks, 'charge')} replayed; {ledger.path} is of the newest form.")
