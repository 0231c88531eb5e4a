"""`sourdine audit attack`: watch an attack succeed without protection, and fail with it."""

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, SeedNumber, bits_of
from sourdine.core import check
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.audit.attacks import AttackResult, Outcome
    from sourdine.core.random.bits import Bits


def attack(
    *,
    name: Annotated[str | None, typer.Argument(help="An attack. Without it: which there are.")] = None,
    output: Annotated[
        Path | None, typer.Option("--html", help="Write a page with charts to this file.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(help="Attack your own table, for some attacks. What is shown is NOT PRIVATE."),
    ] = None,
    secret: Annotated[
        str | None, typer.Option(help="With --table: a column and a value, such as 'disease = flu'.")
    ] = None,
    known: Annotated[
        list[str] | None,
        typer.Option(help="With --table: columns an outsider may know, separated by commas."),
    ] = None,
    spec: Annotated[
        Path | None, typer.Option(help="With --table: a specification whose [columns] say how it is read.")
    ] = None,
    seed: SeedNumber = 1,
    as_json: AsJson = False,
) -> None:
    """Try a published attack on made-up people: on a target without protection, and on the same with it.

    Exit code 1 means that it failed where it should succeed, or got through where it should be stopped. With
    --table it is your own people who are attacked, and nothing that is shown is private.

    Examples: sourdine audit attack · sourdine audit attack reconstruction --html reconstruction.html ·
    sourdine audit attack differencing --table people.csv --secret "disease = flu" --known age,sex
    """
    from sourdine.audit.attacks import ATTACKS

    if table is None and (secret is not None or known or spec is not None):
        raise InvalidParameter("Which table? Give --table with --secret, --known and --spec.")
    if name is None:
        if table is not None:
            raise InvalidParameter("Which attack? Name one before --table.")
        if output is not None:
            raise InvalidParameter(f"Which attack is the page about? Name one of {', '.join(ATTACKS)}.")
        _list(as_json)
        return
    if name not in ATTACKS:
        raise check.fail("audit attack", "name", f"be one of {', '.join(ATTACKS)}", name)
    bits = bits_of("audit attack", seed)
    show.check_page(output)
    result = (
        ATTACKS[name].run(bits)
        if table is None
        else _own(name, bits, table=table, secret=secret, known=known, spec=spec)
    )
    if output is not None:
        from sourdine.report.pages.training_audit import attack_page

        show.keep(attack_page(result).html(), output)
    if as_json:
        show.document({**plain(result), "page": str(output) if output else None})
    else:
        _print(result, output)
    raise typer.Exit(0 if (result.succeeds or result.own) and result.stopped else 1)


def _own(
    name: str, bits: "Bits", *, table: Path, secret: str | None, known: list[str] | None, spec: Path | None
) -> "AttackResult":
    """The attack on a table of the user's own."""
    from sourdine.audit.attacks import ATTACKS
    from sourdine.audit.attacks.own_table import OwnTable
    from sourdine.cli.anonymity.options import names, schema_of

    attack_on = ATTACKS[name].run_on
    if attack_on is None:
        able = ", ".join(each.name for each in ATTACKS.values() if each.run_on)
        raise InvalidParameter(
            f"The attack '{name}' is on made-up people alone. With --table, name one of {able}."
        )
    if secret is None:
        raise InvalidParameter("What is the secret? Give --secret, such as --secret 'disease = flu'.")
    own = OwnTable.read(table, secret=secret, known=names(known), columns=schema_of(spec))
    result: AttackResult = attack_on(own, bits)
    return result


def plain(result: "AttackResult") -> dict[str, object]:
    """What was found, for machines."""
    document = dataclasses.asdict(result)
    document["unprotected"], document["protected"] = (
        _outcome(each) for each in (result.unprotected, result.protected)
    )
    for chart in document["charts"]:
        chart["points"] = [list(point) for point in chart["points"]]
    return {**document, "succeeds": result.succeeds, "stopped": result.stopped}


def _outcome(outcome: "Outcome") -> dict[str, object]:
    return dataclasses.asdict(outcome) | {"success": outcome.success}


def _list(as_json: bool) -> None:
    from sourdine.audit.attacks import ATTACKS

    known = ATTACKS.values()
    if as_json:
        show.document({"attacks": [{"name": each.name, "title": each.title} for each in known]})
    else:
        show.table(("attack", "what it does"), [(each.name, each.title) for each in known])
        show.line(f"Next: sourdine audit attack {next(iter(ATTACKS))}")


def _print(result: "AttackResult", output: Path | None) -> None:
    from sourdine.report.pages.training_audit import ATTACK_COLUMNS, OWN, attack_rows

    if result.own:
        show.line(OWN)
    show.line(result.finding)
    show.say(result.attacked)
    show.line(f"Success: {result.goal}.")
    show.table(ATTACK_COLUMNS, attack_rows(result), numbers=ATTACK_COLUMNS[2:])
    if not result.succeeds and not result.own:
        show.line("The attack FAILED without protection.")
    if not result.stopped:
        show.line("The attack GOT THROUGH the protection.")
    show.say(result.lesson)
    if output is not None:
        show.line(f"Wrote {output}.")
