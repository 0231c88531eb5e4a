"""`sourdine local`: collect answers without having to be trusted."""

import typer

from sourdine.cli.local import (
    clean,
    compare,
    encode,
    estimate,
    queries,
    questionnaire,
    rappor,
    regress,
    shuffle,
    spec,
    utility,
    words,
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Collect answers that are made private on each person's own device, and read them together.\n\n"
    "Example: sourdine local spec coffee --epsilon 1 --labels labels.txt -o coffee.json",
)
app.command(name="spec")(spec.spec)
app.command(name="encode")(encode.encode)
app.command(name="estimate")(estimate.estimate)
app.command(name="words")(words.words)
app.command(name="shuffle")(shuffle.shuffle)
app.command(name="questionnaire")(questionnaire.questionnaire)
app.command(name="queries")(queries.queries)
app.command(name="regress")(regress.regress)
app.command(name="compare")(compare.compare)
app.command(name="clean")(clean.clean)
app.command(name="utility")(utility.utility)
app.command(name="simulate")(spec.simulate)
app.add_typer(rappor.app, name="rappor")
