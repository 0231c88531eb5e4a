"""`sourdine local shuffle`: reports in an order that tells nobody, and how much more that protects."""

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.local.estimate import read_bytes
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, number, plain_bracket, read_json, say_bracket
from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, shorten_up

if TYPE_CHECKING:
    from sourdine.accounting.accountant import Bracket
    from sourdine.local.oracle import Bytes, Oracle
    from sourdine.local.question import Question


def shuffle(
    spec: Annotated[
        Path | None, typer.Argument(help="The specification of the question. Without: --epsilon.")
    ] = None,
    reports: Annotated[
        Path | None, typer.Argument(help="Reports to put in a random order. Without: only the forecast.")
    ] = None,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The same reports, in an order that is drawn.")
    ] = None,
    epsilon: Annotated[
        str | None, typer.Option(help="Instead of a specification: what one report reveals.")
    ] = None,
    categories: Annotated[
        int | None, typer.Option(help="With --epsilon: how many answers k-ary randomized response has.")
    ] = None,
    people: Annotated[
        int | None, typer.Option(help="How many people report once, unless reports do.")
    ] = None,
    delta: Annotated[str, typer.Option("--delta", "-d", help="The probability that is left out.")] = "1e-6",
    as_json: AsJson = False,
) -> None:
    """How much many reports in a random order protect each one, and the order itself for a file of reports.

    It holds against whoever sees the shuffled reports only, for one report a person, if whoever shuffles
    keeps the order secret. A report by RAPPOR hides among those of its own cohort.

    Examples: sourdine local shuffle --epsilon 4 --categories 10 --people 1000000 ·
    sourdine local shuffle coffee.json reports.txt -o shuffled.txt
    """
    owner = "local shuffle"
    if (spec is None) == (epsilon is None) or (spec is not None and categories is not None):
        raise InvalidParameter(
            "How are reports made? Give a specification, or else --epsilon, and --categories if known."
        )
    if (reports is None) != (output is None) or (reports is None) == (people is None):
        raise InvalidParameter(
            "Give reports with -o for what is shuffled, or else --people for a forecast alone."
        )
    share = float(number(owner, "delta", delta, Fraction(1, 10**15), Fraction(1, 2)))
    show.check_place(output)
    show.refuse_existing([output])
    local, oracle = 0.0, None
    if epsilon is not None:
        level = number(owner, "epsilon", epsilon, Fraction(1, 1 << 20), 512)
        local, oracle = float(level), _kary(level, categories)
        many = alike = check.integer(owner, "people", people, 1, 1 << 40)
    else:
        assert spec is not None
        question = _question(spec)
        oracle, local = question.oracle, float(question.oracle.spend.loss().epsilon)
        if reports is None or output is None:
            many = alike = check.integer(owner, "people", people, 1, 1 << 40)
        else:
            many, alike = _shuffled(question, reports, output)
    bracket = _amplified(oracle, local, alike, share)
    if as_json:
        show.document(
            {
                "reports": many,
                "look_alike": alike,
                "delta": share,
                "epsilon_one": local,
                "epsilon": plain_bracket(bracket),
                "shuffled": str(output) if output else None,
            }
        )
        return
    if output is not None:
        show.line(f"Wrote {counted(many, 'report')} to {output}, in an order that is drawn.")
    among = "" if alike == many else f", {alike:,} of them in the smallest cohort"
    show.line(f"One report alone: epsilon {shorten_up(local)}.")
    show.line(f"Among {counted(many, 'report')}{among}, shuffled: epsilon {say_bracket(bracket, share)}.")
    show.say(
        "For one report a person, and against whoever sees nothing but the shuffled reports. Who shuffles "
        "them, or sees reports before, learns what one report tells alone."
    )


def _kary(epsilon: Fraction, categories: int | None) -> "Oracle | None":
    from sourdine.local import GRR

    return None if categories is None else GRR(epsilon=epsilon, categories=categories)


def _question(spec: Path) -> "Question":
    from sourdine.local.question import Question

    return Question.from_json(read_json(spec))


def _shuffled(question: "Question", reports: Path, output: Path) -> tuple[int, int]:
    """Write the reports in another order; how many there are, and among how many each one hides."""
    from sourdine.core.random.bits import SYSTEM
    from sourdine.local.lines import read, written
    from sourdine.local.shuffle import look_alike, permutation

    try:
        rows: Bytes = read(read_bytes(reports), question.fingerprint, question.oracle)
    except InvalidParameter as problem:
        raise InvalidParameter(f"In {reports}: {problem}") from None
    if not len(rows):
        raise InvalidParameter(f"The file {reports} is empty. Collect reports first.")
    mixed = rows[permutation(len(rows), SYSTEM)]
    disk.write_whole(output, written(question.fingerprint, mixed), over=False)
    return len(rows), look_alike(question.oracle, rows)


def _amplified(oracle: "Oracle | None", local: float, alike: int, delta: float) -> "Bracket":
    from sourdine.accounting.accountant import Bracket
    from sourdine.accounting.shuffling.clones import shuffle_model
    from sourdine.local.shuffle import amplified

    if oracle is None:  # any report with this epsilon
        return Bracket(0.0, shuffle_model(local, alike, delta))
    return amplified(oracle, alike, delta)
