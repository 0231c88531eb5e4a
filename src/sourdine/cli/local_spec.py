"""`sourdine local spec`: what is asked and how, for devices and collectors alike."""

import json
import math
from fractions import Fraction
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli import show
from sourdine.cli.number import number
from sourdine.cli.text import lines_of
from sourdine.core import check, disk
from sourdine.core.digits import counted, shorten_up
from sourdine.core.errors import InvalidParameter

if TYPE_CHECKING:
    from sourdine.local.oracle import Oracle

_FAR = 1 << 60
_CROWD = 10_000  # people of a forecast


def spec(
    name: Annotated[str, typer.Argument(help="What is asked, in a few words.")],
    *,
    epsilon: Annotated[str, typer.Option(help="What one report may reveal, such as 1.")],
    labels: Annotated[Path | None, typer.Option(help="A file with the possible answers, one a line.")] = None,
    categories: Annotated[
        int | None, typer.Option(help="Instead of labels: how many answers there are, numbered from 0.")
    ] = None,
    lower: Annotated[str | None, typer.Option(help="For numbers: the least possible answer.")] = None,
    upper: Annotated[str | None, typer.Option(help="For numbers: the greatest possible answer.")] = None,
    oracle: Annotated[
        str, typer.Option(help="How reports are made. 'auto' takes the best and says why.")
    ] = "auto",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The specification. Without it: NAME.json, here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Write the specification of a question. Every report carries its fingerprint.

    Examples: sourdine local spec coffee --epsilon 1 --labels labels.txt -o coffee.json ·
    sourdine local spec age --epsilon 2 --lower 0 --upper 120 --oracle square-wave
    """
    from sourdine.local.named import frequency_oracle, numeric_oracle
    from sourdine.local.question import Question

    place = Path(f"{name}.json") if output is None else output
    show.check_place(place)
    level = number("local spec", "epsilon", epsilon, Fraction(1, 1 << 20), 512)
    if [labels is not None, categories is not None, lower is not None or upper is not None].count(True) != 1:
        raise InvalidParameter(
            "A question has either labels, or a number of categories, or a lower and an upper bound. "
            "Give one of --labels, --categories, or --lower with --upper."
        )
    listed = () if labels is None else tuple(lines_of(labels))
    made: Oracle
    forecast = ""
    if lower is not None or upper is not None:
        if lower is None or upper is None:
            raise InvalidParameter("Numbers need both bounds. Give --lower and --upper.")
        ends = [number("local spec", "bounds", bound, -_FAR, _FAR) for bound in (lower, upper)]
        made, why = numeric_oracle(oracle, epsilon=level, lower=ends[0], upper=ends[1])
    else:
        count = len(listed) if categories is None else categories
        if categories is None and count < 2:
            raise InvalidParameter(f"The file {labels} has one label. Write at least two, one a line.")
        count = check.integer("local spec", "categories", count, 2, 1 << 24)
        made, why = frequency_oracle(oracle, epsilon=level, categories=count)
        off = 100 * math.sqrt(made.variance(1 / count, _CROWD))
        forecast = (
            f" With {_CROWD:,} reports a share of 1/{count} is off by about {off:.2g} percentage points."
        )
    question = Question(name=name, oracle=made, labels=listed)
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
        f"Each report has {counted(made.width, 'byte')}. How reports are made: {why.rstrip('.')}.{forecast}"
    )
    show.line(f"Every new report costs whoever makes it epsilon {shorten_up(float(level), 6)}.")
    show.line(f"Next: sourdine local encode {quote(show.one_line(str(place)))} answers.txt -o reports.txt")
