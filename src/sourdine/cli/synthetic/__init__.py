"""`sourdine synthesize`: a synthetic table, and how close it comes."""

import typer

from sourdine.cli.shared.app import VerbOrName
from sourdine.cli.synthetic import evaluate, synthesize

app = typer.Typer(cls=VerbOrName, rich_markup_mode="markdown")
app.callback(invoke_without_command=True)(synthesize.synthesize)
app.command(name="evaluate")(evaluate.evaluate)
