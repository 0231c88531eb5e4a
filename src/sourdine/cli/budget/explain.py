"""`sourdine budget explain`: what a guarantee means, in words, numbers and pictures."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.budget.options import (
    BatchSize,
    Draw,
    Epochs,
    Size,
    read_delta,
    read_noise_multiplier,
    read_relation,
    read_training,
)
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, number, one_line
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import plain

if TYPE_CHECKING:
    from sourdine.accounting.explain import Explanation

_WHAT = (
    "Say what to explain: an epsilon (such as 1.17, with or without --delta), a training run "
    "(-s, -b, -n and -e), or a ledger (--ledger)."
)


def explain(
    epsilon: Annotated[str | None, typer.Argument(help="An epsilon, such as 1.17 or 1/2.")] = None,
    *,
    delta: Annotated[
        str | None, typer.Option("--delta", "-d", help="Its delta. [default: 0, or 1e-5 for a run]")
    ] = None,
    size: Size = None,
    batch_size: BatchSize = None,
    noise_multiplier: Annotated[
        str | None, typer.Option("--noise-multiplier", "-n", help="Noise, in clipping norms.")
    ] = None,
    epochs: Epochs = None,
    sampler: Draw = "poisson",
    unit: Annotated[str | None, typer.Option(help="Whom an epsilon protects. [default: person]")] = None,
    neighbours: Annotated[
        str | None, typer.Option("--neighbours", help="What an epsilon hides. [default: add-remove]")
    ] = None,
    ledger: Annotated[str | None, typer.Option(help="Explain all that a ledger has paid.")] = None,
    prior: Annotated[str, typer.Option(help="The belief before, between 0 and 1.")] = "1/2",
    table: Annotated[bool, typer.Option("--table", help="Print beliefs for other epsilons too.")] = False,
    output: Annotated[
        Path | None, typer.Option("--html", help="Write a page with charts and sliders.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say what an epsilon, an (epsilon, delta), a training run or a ledger means.

    Examples: sourdine budget explain 1.17 · sourdine budget explain 1 --delta 1e-5 --prior 0.1 ·
    sourdine budget explain -s 60000 -b 64 -n 1.0 -e 15 --html meaning.html ·
    sourdine budget explain --ledger survey.ledger
    """
    from sourdine.cli.shared import show

    show.check_page(output)
    before = number("explain", "prior", prior, 0, 1)
    run = any(value is not None for value in (size, batch_size, noise_multiplier, epochs))
    if [epsilon is not None, run, ledger is not None].count(True) > 1:
        raise InvalidParameter(f"More than one thing to explain was given. {_WHAT}")
    if ledger is not None:
        explanation = _ledger(ledger, delta, unit, neighbours)
    elif epsilon is not None:
        relation = read_relation("explain", neighbours) or Neighbours.ADD_REMOVE
        whom = "person" if unit is None else one_line("explain", "unit", unit)
        explanation = _guarantee(epsilon, delta, whom, relation)
    elif unit is not None or neighbours is not None:
        raise InvalidParameter(
            "The unit and the neighbours of a training run follow from its sampler. Leave them out."
        )
    else:
        explanation = _run(
            size=size,
            batch_size=batch_size,
            noise_multiplier=noise_multiplier,
            epochs=epochs,
            delta=delta,
            sampler=sampler,
        )
    if output is not None:
        from sourdine.report.pages.ledger import explanation_page

        show.keep(explanation_page(explanation).html(), output)
    if as_json:
        from sourdine.accounting.explain import sentences

        show.document(explanation.to_json() | {"words": list(sentences(explanation, before))})
    else:
        _print(explanation, before, table)
        if output is not None:
            show.line()
            show.line(f"The page is in {output}.")


def _guarantee(epsilon: str, delta: str | None, unit: str, neighbours: Neighbours) -> "Explanation":
    from sourdine.accounting.explain import explain_guarantee

    exact = number("explain", "epsilon", epsilon, 0, 10**4)
    rest = number("explain", "delta", delta, 0, 1) if delta is not None else Fraction(0)
    return explain_guarantee(exact, rest, unit=unit, neighbours=neighbours)


def _ledger(path: str, delta: str | None, unit: str | None, neighbours: str | None) -> "Explanation":
    from sourdine.accounting.explain import explain_ledger
    from sourdine.accounting.ledger import Ledger

    if any(value is not None for value in (delta, unit, neighbours)):
        raise InvalidParameter("The delta, unit and neighbours of a ledger are its terms. Leave them out.")
    return explain_ledger(Ledger.open(path))


def _run(
    *,
    size: int | None,
    batch_size: int | None,
    noise_multiplier: str | None,
    epochs: int | None,
    delta: str | None,
    sampler: str,
) -> "Explanation":
    from sourdine.accounting.explain import explain_training

    if noise_multiplier is None:
        nothing = all(value is None for value in (size, batch_size, epochs))
        raise InvalidParameter(_WHAT if nothing else "A training run also needs --noise-multiplier.")
    training = read_training(
        "explain",
        size=size,
        batch_size=batch_size,
        noise_multiplier=read_noise_multiplier("explain", noise_multiplier),
        epochs=epochs,
        sampler=sampler,
    )
    return explain_training(training, read_delta("explain", delta if delta is not None else "1e-5"))


def _print(explanation: "Explanation", prior: Fraction, table: bool) -> None:
    from sourdine.accounting.explain import DEPLOYMENTS, sentences
    from sourdine.accounting.explain.deployments import UNITS_DIFFER
    from sourdine.accounting.explain.explanation import COVER, PREMIUM
    from sourdine.accounting.explain.words import at_most, money_up
    from sourdine.cli.shared import show
    from sourdine.core.format import shorten_down, shorten_up

    delta = f", δ = {plain(explanation.delta)}" if explanation.delta else ""
    show.line(f"ε = {shorten_up(explanation.epsilon.upper)}{delta}")
    show.say(f"For one {explanation.unit} ({explanation.neighbours} neighbours). From {explanation.subject}.")
    if explanation.epsilon.width:
        show.say(f"The least possible ε is at least {shorten_down(explanation.epsilon.lower)}.")
    _title("In words")
    for sentence in sentences(explanation, prior):
        show.say(sentence, "- ")
    rare = f", in all but {at_most(explanation.chance)} cases at most" if explanation.chance else ""
    _title(f"Belief before and after{rare}")
    _print_beliefs(explanation)
    if table:
        _print_table()
    _title("The best attack")
    _print_attack(explanation)
    _title("An example")
    show.say(
        f"If an insurer would ask {PREMIUM:,} a year for a cover of {COVER:,} without your data, then with "
        f"them the premium is at most {money_up(explanation.premium)} on average."
    )
    _title("Systems in use")
    show.table(
        ("system", "ε", "δ", "protects", "spent", "model"),
        [
            (each.name, f"{each.epsilon:g}", plain(each.delta), each.unit, each.period, each.model)
            for each in DEPLOYMENTS
        ],
        numbers=("ε", "δ"),
    )
    show.say(UNITS_DIFFER)
    if explanation.assumptions:
        _title("What this assumes")
        for assumption in explanation.assumptions:
            show.say(assumption, "- ")


def _print_beliefs(explanation: "Explanation") -> None:
    from sourdine.accounting.explain import PRIORS
    from sourdine.accounting.explain.words import percent_down, percent_up
    from sourdine.cli.shared import show

    columns = ("before", "after, at least", "after, at most")
    rows = []
    for prior in PRIORS:
        bounds = explanation.posterior(prior)
        rows.append((f"{100 * prior} %", percent_down(bounds.lower), percent_up(bounds.upper)))
    show.table(columns, rows, numbers=columns)


def _print_table() -> None:
    from sourdine.accounting.explain import EPSILONS, PRIORS, posterior_table
    from sourdine.cli.shared import show

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
    from sourdine.cli.shared import show
    from sourdine.core.format import shorten_up

    curve = explanation.curve
    show.say(
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
    show.line()
    show.line(text)
