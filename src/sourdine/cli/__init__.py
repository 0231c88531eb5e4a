"""The command line, one module a verb."""

from typing import Annotated

import typer

from sourdine.cli import (
    anonymity,
    bounds,
    budget,
    certificate,
    check,
    collect,
    demo,
    init,
    local,
    plan,
    release,
    reproduce,
    series,
    sql,
    studio,
    synthetic,
    train,
)
from sourdine.cli.audit import mechanisms
from sourdine.cli.ledger import commands
from sourdine.cli.shared import show
from sourdine.cli.shared.app import OneSentence, Shared, rights, soften_streams

app = typer.Typer(
    cls=OneSentence,
    name="sourdine",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,  # a plain trace, and only for whoever asked for it
)
app.add_typer(anonymity.app, name="anonymity")
app.add_typer(mechanisms.app, name="audit")
app.add_typer(commands.app, name="ledger")
app.add_typer(certificate.app, name="certificate")
app.add_typer(budget.app, name="budget")
app.add_typer(local.app, name="local")
app.add_typer(collect.app, name="collect")
app.add_typer(series.app, name="series")
app.add_typer(synthetic.app, name="synthesize")
app.add_typer(train.app, name="train")
app.command(name="bounds")(bounds.bounds)
app.command(name="check")(check.check)
app.command(name="demo")(demo.demo)
app.command(name="init")(init.init)
app.command(name="plan")(plan.plan)
app.command(name="release")(release.release)
app.command(name="report")(release.report)
app.command(name="reproduce")(reproduce.reproduce)
app.command(name="sql")(sql.sql)
app.command(name="studio")(studio.studio)


@app.callback(invoke_without_command=True)
def root(
    ctx: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    shared: Shared = False,
    allowance: Annotated[
        str | None, typer.Option(help="Take what is paid from this allowance of the ledger.")
    ] = None,
) -> None:
    """Differential privacy that is stated, proven, audited and paid from a durable budget.

    Start with: sourdine demo
    """
    ctx.with_resource(rights(shared))
    if allowance is not None:
        from sourdine.accounting.ledger.allowance import spending_from

        ctx.with_resource(spending_from(allowance))
    if version:
        import sourdine

        show.line(f"sourdine {sourdine.__version__}")
    elif ctx.invoked_subcommand is None:
        print(ctx.get_help())


def main() -> None:
    """The `sourdine` command."""
    soften_streams()
    app()
