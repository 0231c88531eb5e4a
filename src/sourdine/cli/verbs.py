"""Which verbs there are, without loading what they do.

A command loads the one verb that it is asked for; the others are known by their names and first sentences. So
`sourdine --help` does not wait for numpy, and no verb for what another one needs.
"""

import importlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any

import typer

from sourdine.cli.shared.app import OneSentence, Shared, rights
from sourdine.core.errors import SourdineError

PLUGINS = "sourdine.commands"  # the entry points by which an installed package adds commands
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


@dataclass(frozen=True)
class PluginVerb(Verb):
    """A command that an installed package adds: a function for typer, or a `typer.Typer` with its own verbs.

    Its package is imported when the command is called, not when commands are listed.
    """

    entry_point: EntryPoint

    def load(self) -> Any:
        try:
            return self.entry_point.load()
        except (ImportError, AttributeError) as problem:
            raise SourdineError(
                f"The command '{self.name}' is added by {self.module}, which cannot be imported. "
                "Reinstall that package, or remove it."
            ) from problem


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


IN_CHECKOUT = {"reproduce": "./reproduction"}  # commands that the wheel lacks, and what installs them


@cache
def plugin_verbs() -> tuple[PluginVerb, ...]:
    """The commands of installed packages, by name; none can take the name of a command of ours."""
    ours = {verb.name for verb in VERBS}
    return tuple(
        PluginVerb(point.name, point.module, point.attr, _summary(point), point)
        for point in sorted(entry_points(group=PLUGINS), key=lambda point: point.name)
        if point.name not in ours
    )


def _summary(point: EntryPoint) -> str:
    """What the list of commands shows of a plug-in: nothing of it is imported for that."""
    return f"Added by {point.module.partition('.')[0] if point.dist is None else point.dist.name}."


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
            named = tuple(verb for verb in VERBS if verb.name == word)
            return named or tuple(verb for verb in plugin_verbs() if verb.name == word) or VERBS
    return ()


def make_app(loaded: Iterable[Verb] | None = None) -> typer.Typer:
    """The command line, with these verbs in full and the others by name; all in full without them."""
    loaded = (*VERBS, *plugin_verbs()) if loaded is None else loaded
    app = typer.Typer(
        cls=OneSentence,
        name="sourdine",
        rich_markup_mode="markdown",
        pretty_exceptions_enable=False,  # a plain trace, and only for whoever asked for it
    )
    full = {verb.name for verb in loaded}
    # One command of ours runs without a search through all installed packages for those that add some.
    others = () if len(full) == 1 and full <= {verb.name for verb in VERBS} else plugin_verbs()
    for verb in (*VERBS, *others):
        target = verb.load() if verb.name in full else None
        if verb.is_group or isinstance(target, typer.Typer):
            app.add_typer(target or typer.Typer(help=verb.summary), name=verb.name)
        else:
            app.command(name=verb.name)(target or _known_by(verb.summary))
    for name in IN_CHECKOUT.keys() - {verb.name for verb in others}:
        # Whatever follows is not looked at: what it means is known to the command that is missing.
        anything = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
        app.command(name=name, hidden=True, context_settings=anything)(_missing(name))
    app.callback(invoke_without_command=True)(root)
    return app


def _missing(name: str) -> Callable[[], None]:
    def verb() -> None:
        raise SourdineError(f"This command is in the source checkout: pip install {IN_CHECKOUT[name]}")

    return verb


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
