"""`sourdine local spec` and `simulate`: what is asked and how, and how well it does on made-up people."""

import json
import math
from fractions import Fraction
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, Seed, bits_of, lines_of, number
from sourdine.core import check
from sourdine.core import files as disk
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, shorten_up

if TYPE_CHECKING:
    from sourdine.local.oracle import Oracle
    from sourdine.local.words import WordTree

_FAR = 1 << 60
_CROWD = 10_000  # people of a forecast
_MANY = 1_000_000  # where words are to be found


def spec(
    name: Annotated[str, typer.Argument(help="What is asked, in a few words.")],
    *,
    epsilon: Annotated[str, typer.Option(help="What one report may reveal, such as 1.")],
    labels: Annotated[
        Path | None, typer.Option(help="A file with the possible answers, one per line.")
    ] = None,
    categories: Annotated[
        int | None, typer.Option(help="Instead of labels: how many answers there are, numbered from 0.")
    ] = None,
    lower: Annotated[str | None, typer.Option(help="For numbers: the least possible answer.")] = None,
    upper: Annotated[str | None, typer.Option(help="For numbers: the greatest possible answer.")] = None,
    words: Annotated[
        bool, typer.Option("--unlisted-words", help="For words that nobody lists: the common ones are found.")
    ] = False,
    letters: Annotated[
        int, typer.Option(help="How many letters of a word count: 3, 6 or 12. Fewer are found better.")
    ] = 12,
    oracle: Annotated[
        str, typer.Option(help="How reports are made. 'auto' takes the best and says why.")
    ] = "auto",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The specification. Without it: NAME.json, here.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the specification of a question. Every report carries its fingerprint.

    Examples: sourdine local spec coffee --epsilon 1 --labels labels.txt -o coffee.json ·
    sourdine local spec age --epsilon 2 --lower 0 --upper 120 --oracle square-wave ·
    sourdine local spec snack --epsilon 4 --unlisted-words
    """
    from sourdine.local.choose import frequency_oracle, numeric_oracle
    from sourdine.local.question import Question
    from sourdine.local.words import WordTree

    place = Path(f"{name}.json") if output is None else output
    show.check_place(place)
    level = number("local spec", "epsilon", epsilon, Fraction(1, 1 << 20), 512)
    bounded = lower is not None or upper is not None
    if [labels is not None, categories is not None, bounded, words].count(True) != 1:
        raise InvalidParameter(
            "A question has either labels, or a number of categories, or a lower and an upper bound, or is "
            "about words. Give one of --labels, --categories, --lower with --upper, or --unlisted-words."
        )
    listed = () if labels is None else tuple(lines_of(labels))
    choice: Oracle
    forecast = ""
    if words:
        choice, why = WordTree(epsilon=level, letters=letters), "WordTree finds words that nobody listed"
        if oracle != "auto":
            raise check.fail("local spec", "oracle", "be auto for words", oracle)
        forecast = f" With {_MANY:,} reports a word is found if about {_told_from(choice):.2g} % have it."
    elif bounded:
        if lower is None or upper is None:
            raise InvalidParameter("Numbers need both bounds. Give --lower and --upper.")
        ends = [number("local spec", "bounds", bound, -_FAR, _FAR) for bound in (lower, upper)]
        choice, why = numeric_oracle(oracle, epsilon=level, lower=ends[0], upper=ends[1])
    else:
        count = len(listed) if categories is None else categories
        if categories is None and count < 2:
            raise InvalidParameter(f"The file {labels} has one label. Write at least two, one per line.")
        count = check.integer("local spec", "categories", count, 2, 1 << 24)
        choice, why = frequency_oracle(oracle, epsilon=level, categories=count)
        off = 100 * math.sqrt(choice.variance(1 / count, _CROWD))
        forecast = (
            f" With {_CROWD:,} reports a share of 1/{count} is off by about {off:.2g} percentage points."
        )
    question = Question(name=name, oracle=choice, labels=listed)
    content = question.to_json()
    try:
        disk.write_whole(place, json.dumps(content, indent=2, ensure_ascii=False) + "\n", over=False)
    except FileExistsError:
        raise InvalidParameter(
            f"{place} exists already and is not written over: reports may name it. "
            "Choose another place with -o."
        ) from None
    if as_json:
        show.document({"specification": str(place), "why": why, **content})
        return
    show.line(f"Wrote {place}, fingerprint {question.fingerprint}.")
    show.say(
        f"Each report has {counted(choice.width, 'byte')}. How reports are made: {why.rstrip('.')}.{forecast}"
    )
    show.line(f"Every new report costs whoever makes it epsilon {shorten_up(float(level), 6)}.")
    show.line(f"Next: sourdine local encode {quote(show.one_line(str(place)))} answers.txt -o reports.txt")


def _told_from(oracle: "WordTree") -> float:
    """The share of devices, in per cent, from which on a word is found half the time."""
    from sourdine.local.words import least_share

    return 100 * least_share(oracle, _MANY)


def simulate(
    *,
    epsilon: Annotated[str, typer.Option(help="What one report may reveal, such as 1.")] = "1",
    categories: Annotated[int, typer.Option(help="How many answers there are.")] = 100,
    people: Annotated[int, typer.Option(help="How many people report.")] = 100_000,
    law: Annotated[
        str, typer.Option(help="How their answers are spread: zipf, geometric, exponential or uniform.")
    ] = "zipf",
    oracle: Annotated[
        list[str] | None, typer.Option(help="An oracle by name; may be given several times. Without: all.")
    ] = None,
    seed: Seed = None,
    as_json: AsJson = False,
) -> None:
    """Make up people, report for each, and compare what is read with the truth. Nobody's data is touched.

    Example: sourdine local simulate --epsilon 1 --categories 1000 --people 1000000
    """
    from sourdine.local.choose import FREQUENCY, frequency_oracle
    from sourdine.local.simulation import population, rehearse

    level = number("local simulate", "epsilon", epsilon, Fraction(1, 1 << 20), 512)
    categories = check.integer("local simulate", "categories", categories, 2, 1 << 24)
    people = check.integer("local simulate", "people", people, 1, 1 << 32)
    names = list(dict.fromkeys(oracle or FREQUENCY))
    oracles = [frequency_oracle(name, epsilon=level, categories=categories)[0] for name in names]
    bits = bits_of("local simulate", seed)
    counts = population(law, categories, people)
    trials = [
        rehearse(each, counts, bits=bits, watch=partial(show.progress, name))
        for name, each in zip(names, oracles, strict=True)
    ]
    best = min(range(len(trials)), key=lambda i: trials[i].forecast)
    if as_json:
        show.document(
            {
                "epsilon": float(level),
                "categories": categories,
                "people": people,
                "law": law,
                "best": names[best],
                "oracles": [
                    {
                        "oracle": name,
                        "error": each.error,
                        "forecast": each.forecast,
                        "coverage": each.coverage,
                        "bytes": each.oracle.width,
                        "client_seconds": each.client_seconds,
                        "server_seconds": each.server_seconds,
                    }
                    for name, each in zip(names, trials, strict=True)
                ],
            }
        )
        return
    columns = ("oracle", "error", "forecast", "in interval", "bytes", "client values/s", "collector s")
    show.table(
        columns,
        [
            (
                name,
                f"{100 * each.error:.3g} %",
                f"{100 * each.forecast:.3g} %",
                f"{100 * each.coverage:.1f} %",
                f"{each.oracle.width:,}",
                f"{people / max(each.client_seconds, 1e-9):,.0f}",
                f"{each.server_seconds:.3g}",
            )
            for name, each in zip(names, trials, strict=True)
        ],
        numbers=columns[1:],
    )
    show.say(
        f"{people:,} made-up people, {categories:,} answers by a {law} law, epsilon {epsilon} a report. "
        "Errors are of shares (root mean square), in this run and as forecast; 'in interval' is how many "
        f"of the true shares lie in their 95 % intervals. The least error is forecast for {names[best]}."
    )
