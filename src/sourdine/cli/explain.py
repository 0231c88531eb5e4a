"""`sourdine budget explain`: what a guarantee means, in words, numbers and pictures."""

import textwrap
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.accounting.explain import Explanation

_WIDTH = 100  # characters of a line of prose
_WHAT = (
    "Say what to explain: an epsilon (such as 1.17, with or without --delta), or a training run "
    "(-s, -b, -n and -e)."
)


def explain(
    epsilon: Annotated[str | None, typer.Argument(help="An epsilon, such as 1.17 or 1/2.")] = None,
    *,
    delta: Annotated[
        str | None, typer.Option("--delta", "-d", help="Its delta. [default: 0, or 1e-5 for a run]")
    ] = None,
    size: Annotated[int | None, typer.Option("--size", "-s", help="Run: examples in the data.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", "-b", help="Run: examples in a batch.")] = None,
    noise: Annotated[
        str | None, typer.Option("--noise", "-n", help="Run: noise, in units of the clipping norm.")
    ] = None,
    epochs: Annotated[int | None, typer.Option("--epochs", "-e", help="Run: passes over the data.")] = None,
    sampler: Annotated[
        str, typer.Option(help="Run: how batches are drawn: poisson, fixed or shuffle.")
    ] = "poisson",
    unit: Annotated[str, typer.Option(help="Whom an epsilon protects.")] = "person",
    neighbours: Annotated[Neighbours, typer.Option(help="What an epsilon hides.")] = Neighbours.ADD_REMOVE,
    prior: Annotated[str, typer.Option(help="The belief before, between 0 and 1.")] = "1/2",
    table: Annotated[bool, typer.Option("--table", help="Print beliefs for other epsilons too.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a page with charts and sliders.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what an epsilon, an (epsilon, delta) or a training run means.

    Examples: sourdine budget explain 1.17 · sourdine budget explain 1 --delta 1e-5 --prior 0.1 ·
    sourdine budget explain -s 60000 -b 64 -n 1.0 -e 15 -o meaning.html
    """
    from sourdine.cli import show
    from sourdine.cli.number import number

    before = number("explain", "prior", prior, 0, 1)
    run = {"size": size, "batch": batch, "noise": noise, "epochs": epochs}
    if epsilon is not None and any(value is not None for value in run.values()):
        raise InvalidParameter(f"An epsilon and a training run were given. {_WHAT}")
    if epsilon is not None:
        explanation = _guarantee(epsilon, delta, unit, neighbours)
    else:
        explanation = _run(run, delta, sampler)
    if output is not None:
        from sourdine.report.explanation import explanation_page

        _write(explanation_page(explanation).html(), output)
    if as_json:
        from sourdine.accounting.explain import sentences

        show.document(explanation.to_json() | {"words": list(sentences(explanation, before))})
    else:
        _print(explanation, before, table)
        if output is not None:
            print(f"\nThe page is in {output}.")


def _guarantee(epsilon: str, delta: str | None, unit: str, neighbours: Neighbours) -> "Explanation":
    from sourdine.accounting.explain import explain_guarantee
    from sourdine.cli.number import number

    exact = number("explain", "epsilon", epsilon, 0, 10**4)
    rest = number("explain", "delta", delta, 0, 1) if delta is not None else Fraction(0)
    return explain_guarantee(exact, rest, unit=unit, neighbours=neighbours)


def _run(run: dict[str, int | str | None], delta: str | None, sampler: str) -> "Explanation":
    from sourdine.accounting.dpsgd import Sampler, Training
    from sourdine.accounting.explain import explain_training
    from sourdine.cli.number import number
    from sourdine.core import check

    missing = [f"--{name}" for name, value in run.items() if value is None]
    if missing:
        raise InvalidParameter(
            _WHAT if len(missing) == len(run) else f"A training run also needs {' and '.join(missing)}."
        )
    kinds = {kind.value: kind for kind in Sampler}
    if sampler not in kinds:
        raise check.fail("explain", "sampler", f"be one of {', '.join(kinds)}", sampler)
    training = Training(
        size=int(run["size"] or 0),
        batch=int(run["batch"] or 0),
        noise=float(number("explain", "noise", str(run["noise"]), 0, 2**20)),
        epochs=int(run["epochs"] or 0),
        sampler=kinds[sampler],
    )
    return explain_training(training, float(number("explain", "delta", delta or "1e-5", 0, 1)))


def _write(page: str, path: Path) -> None:
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as problem:
        raise InvalidParameter(
            f"The page cannot be written to {path} ({problem.strerror}). Choose another place."
        ) from None


def _print(explanation: "Explanation", prior: Fraction, table: bool) -> None:
    from sourdine.accounting.explain import DEPLOYMENTS, sentences
    from sourdine.accounting.explain.deployed import UNITS_DIFFER
    from sourdine.accounting.explain.explanation import COVER, PREMIUM
    from sourdine.accounting.explain.words import at_most
    from sourdine.cli import show
    from sourdine.core.digits import shorten_down, shorten_up

    delta = f", δ = {explanation.delta:g}" if explanation.delta else ""
    print(f"ε = {shorten_up(explanation.epsilon.upper)}{delta}")
    _say(f"For one {explanation.unit} ({explanation.neighbours} neighbours). From {explanation.subject}.")
    if explanation.epsilon.width:
        _say(f"The least possible ε is at least {shorten_down(explanation.epsilon.lower)}.")
    _title("In words")
    for sentence in sentences(explanation, prior):
        _say(sentence, "- ")
    rare = f", in all but {at_most(explanation.chance)} cases at most" if explanation.chance else ""
    _title(f"Belief before and after{rare}")
    _print_beliefs(explanation)
    if table:
        _print_table()
    _title("The best attack")
    _print_attack(explanation)
    _title("An example")
    _say(
        f"If an insurer would ask {PREMIUM:,} a year for a cover of {COVER:,} without your data, then with "
        f"them the premium is at most {shorten_up(explanation.premium, 6)} on average."
    )
    _title("Systems in use")
    show.table(
        ("system", "ε", "δ", "protects", "spent", "model"),
        [
            (each.name, f"{each.epsilon:g}", f"{each.delta:g}", each.unit, each.period, each.model)
            for each in DEPLOYMENTS
        ],
        numbers=("ε", "δ"),
    )
    _say(UNITS_DIFFER)
    if explanation.assumptions:
        _title("What this assumes")
        for assumption in explanation.assumptions:
            _say(assumption, "- ")


def _print_beliefs(explanation: "Explanation") -> None:
    from sourdine.accounting.explain import PRIORS
    from sourdine.accounting.explain.words import percent_down, percent_up
    from sourdine.cli import show

    columns = ("before", "after, at least", "after, at most")
    rows = []
    for prior in PRIORS:
        bounds = explanation.posterior(prior)
        rows.append((f"{100 * prior} %", percent_down(bounds.lower), percent_up(bounds.upper)))
    show.table(columns, rows, numbers=columns)


def _print_table() -> None:
    from sourdine.accounting.explain import EPSILONS, PRIORS, posterior_table
    from sourdine.cli import show

    _title("Greatest belief after, in %, by the belief before and by ε; the least one below it")
    columns = ("before", *(f"ε {epsilon:g}" for epsilon in EPSILONS))
    rows = [
        (f"{100 * prior}", *(f"{100 * bounds.upper:.2f}\n{100 * bounds.lower:.2f}" for bounds in row))
        for prior, row in zip(PRIORS, posterior_table(), strict=True)
    ]
    show.table(columns, rows, numbers=columns)


def _print_attack(explanation: "Explanation") -> None:
    from sourdine.accounting.explain.explanation import FALSE_POSITIVES
    from sourdine.accounting.explain.words import percent_up
    from sourdine.cli import show
    from sourdine.core.digits import shorten_up

    curve = explanation.curve
    _say(
        f"Right guesses {percent_up(curve.accuracy(), 3)} at most, a coin's are 50 %; advantage "
        f"{shorten_up(curve.advantage, 2)} at most, certainty's is 1."
    )
    columns = ("false positives", "true positives, at most", "alarms that are right, at most")
    rows = [
        (
            f"{100 * rate:g} %",
            percent_up(float(curve.true_positives(rate)), 3),
            percent_up(curve.precision(0.5, rate), 3),
        )
        for rate in FALSE_POSITIVES
    ]
    show.table(columns, rows, numbers=columns)


def _title(text: str) -> None:
    print(f"\n{text}")


def _say(text: str, mark: str = "") -> None:
    print(textwrap.fill(text, _WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark)))
