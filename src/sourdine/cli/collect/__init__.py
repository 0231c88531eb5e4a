"""`sourdine collect`: a server for reports from phones and browsers."""

import typer

from sourdine.cli.collect import announce, serve, shuffle, store, tokens

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Take reports from phones and browsers, count each once, and keep nothing else.\n\n"
    "Example: sourdine collect announce coffee.json --key office.key --closes 2026-12-31",
)
app.command(name="announce")(announce.announce)
app.command(name="serve")(serve.serve)
app.command(name="shuffle")(shuffle.shuffle)
app.command(name="token-key")(tokens.token_key)
app.command(name="issue")(tokens.issue)
app.command(name="status")(store.status)
app.command(name="export")(store.export)
app.command(name="close")(store.close)
app.command(name="prune")(store.prune)
