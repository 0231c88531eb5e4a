"""`sourdine series`: a table that grows, published period by period and paid once."""

import typer

from sourdine.cli.series.change import extend, resume
from sourdine.cli.series.publish import publish
from sourdine.cli.series.start import start, status
from sourdine.cli.series.write import report

app = typer.Typer(no_args_is_help=False)
app.command(name="start")(start)
app.command(name="publish")(publish)
app.command(name="status")(status)
app.command(name="report")(report)
app.command(name="extend")(extend)
app.command(name="resume")(resume)


@app.callback(invoke_without_command=True)
def series(ctx: typer.Context) -> None:
    """Publish a growing table week by week, and pay once for all weeks.

    Example: sourdine series start visits.toml, and then each week: sourdine series publish visits.toml
    """
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
