"""Which verbs there are, without loading what they do.

A command loads the one verb that it is asked for; the others are known by their names and first sentences. So
`sourdine --help` does not wait for numpy, and no verb for what another one needs.
"""

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from sourdine.cli.shared.app import OneSentence, Shared, rights

_GROUP = "app"  # what modules call a group of verbs
_TAKES_A_WORD = ("--allowance",)  # options before a verb that are followed by a word


@dataclass(frozen=True)
class Verb:
    """A verb, the module and the name in it that do it, and what it does: the first words of its help."""

    name: str
    module: str
    attribute: str
    summary: str

    def load(self) -> Any:
        """The function, or the group of verbs."""
        return getattr(importlib.import_module(f"sourdine.cli.{self.module}"), self.attribute)

    @property
    def is_group(self) -> bool:
        return self.attribute == _GROUP


VERBS = (
    Verb(
        "bounds",
        "bounds",
        "bounds",
        "Pay from the ledger to find bounds of a column, and print its block for the specification.",
    ),
    Verb(
        "check",
        "check",
        "check",
        "Count exactly which records do not fit the declarations. NOT PRIVATE: never publish what it prints.",
    ),
    Verb(
        "demo",
        "demo",
        "demo",
        "Make up a register of 50,000 people, publish six private statistics of it, and spend its budget.",
    ),
    Verb(
        "init",
        "init",
        "init",
        "Write a specification to fill in. Only names and types of columns are looked at, never a value.",
    ),
    Verb(
        "plan",
        "plan",
        "plan",
        "Forecast the error of every answer, and what the release costs. "
        "No record is read, nothing is spent.",
    ),
    Verb(
        "release",
        "release",
        "release",
        "Pay from the ledger, then publish noisy answers with a certificate and a report.",
    ),
    Verb(
        "report",
        "release",
        "report",
        "Make the report of a release again, from its answers and its certificate. Nothing is read or spent.",
    ),
    Verb(
        "reproduce",
        "reproduce",
        "reproduce",
        "Repeat a published experiment: verdicts here; a page, CSV tables and PNG figures in a folder.",
    ),
    Verb(
        "sql",
        "sql",
        "sql",
        "Ask a declared table in SQL. The words become queries like others; none reaches an engine.",
    ),
    Verb(
        "studio",
        "studio",
        "studio",
        "Open a page that takes a table from its file to a certified release, served by this machine alone.",
    ),
    Verb(
        "anonymity",
        "anonymity",
        "app",
        "Measure how identifiable the people in a table are, and make it coarser. "
        "This is not differential privacy.",
    ),
    Verb(
        "audit",
        "audit.mechanisms",
        "app",
        "Audit mechanisms: a lower bound on epsilon from answers alone, beside the epsilon they claim.",
    ),
    Verb(
        "ledger",
        "ledger.commands",
        "app",
        "Keep a durable budget for one data set: paid before any noise is drawn, never refunded.",
    ),
    Verb(
        "certificate",
        "certificate",
        "app",
        "Is a release safe, as published, paid and signed? Start with show.",
    ),
    Verb(
        "budget",
        "budget",
        "app",
        "Plan a privacy budget: price a run, find the noise for a budget, say what it means, "
        "draw the curves.",
    ),
    Verb(
        "local",
        "local",
        "app",
        "Collect answers that are made private on each person's own device, and read them together.",
    ),
    Verb(
        "collect",
        "collect",
        "app",
        "Take reports from phones and browsers, count each once, and keep nothing else.",
    ),
    Verb("series", "series", "app", "Publish a growing table week by week, and pay once for all weeks."),
    Verb(
        "synthesize",
        "synthetic",
        "app",
        "Pay from the ledger, then draw a synthetic table: rows like the real ones, of nobody.",
    ),
    Verb(
        "train",
        "train",
        "app",
        "Train on sensitive data: what it will cost and take, then a model with its certificate.",
    ),
)


def asked_for(words: Sequence[str]) -> tuple[Verb, ...]:
    """The verbs to load for a command line: the one it names; none to list them; all where it names none of
    them, to say which was meant.

    >>> [verb.name for verb in asked_for(["--shared", "demo", "--html", "page.html"])]
    ['demo']
    >>> asked_for(["--help"])
    ()
    """
    left = iter(words)
    for word in left:
        if word in _TAKES_A_WORD:
            next(left, None)
        elif not word.startswith("-"):
            return tuple(verb for verb in VERBS if verb.name == word) or VERBS
    return ()


def make_app(loaded: Iterable[Verb] = VERBS) -> typer.Typer:
    """The command line, with these verbs in full and the others by name."""
    app = typer.Typer(
        cls=OneSentence,
        name="sourdine",
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,  # a plain trace, and only for whoever asked for it
    )
    full = {verb.name for verb in loaded}
    for verb in VERBS:
        if verb.is_group:
            app.add_typer(
                verb.load() if verb.name in full else typer.Typer(help=verb.summary), name=verb.name
            )
        else:
            app.command(name=verb.name)(verb.load() if verb.name in full else _known_by(verb.summary))
    app.callback(invoke_without_command=True)(root)
    return app


def _known_by(summary: str) -> Callable[[], None]:
    def verb() -> None: ...

    verb.__doc__ = summary
    return verb


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
        from sourdine.cli.shared import show

        show.line(f"sourdine {sourdine.__version__}")
    elif ctx.invoked_subcommand is None:
        print(ctx.get_help())
