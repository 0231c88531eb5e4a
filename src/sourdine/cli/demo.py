"""`sourdine demo`: one noisy count, and what it means."""

import math
from fractions import Fraction
from typing import Annotated

import typer


def demo(
    epsilon: Annotated[str, typer.Option(help="The privacy parameter, from 1/1000 to 100.")] = "1",
    count: Annotated[int, typer.Option(help="How many people said yes.")] = 1234,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Publish one count about people with noise, and say what that guarantees.

    Example: sourdine demo --epsilon 0.1
    """
    from sourdine.cli import show
    from sourdine.cli.number import number
    from sourdine.core import check
    from sourdine.core.distance import Distance
    from sourdine.mechanisms import Geometric

    exact = number("demo", "epsilon", epsilon, Fraction(1, 1000), 100)
    check.integer("demo", "count", count, 0, 10**15)
    mechanism = Geometric(scale=1 / exact, lower=0)
    loss = mechanism.loss(Distance.l1(1))
    noisy = int(mechanism.sample(count))
    error = round(mechanism.error(0.95))
    if as_json:
        show.document(
            {
                "noisy_count": noisy,
                "error": {"confidence": 0.95, "people": error},
                "epsilon": str(loss.epsilon),
                "neighbours": str(loss.neighbours),
                "unit": "person",
                "mechanism": mechanism.to_json(),
            }
        )
        return
    people = "person" if error == 1 else "people"
    other = _short(exact / 10 if exact > Fraction(1, 100) else exact * 10)
    steps = {
        f"sourdine demo --epsilon {other}": "the same count under another guarantee",
        "sourdine audit Geometric": "try to break the guarantee you just read",
        "sourdine audit --mutants": "watch the audit catch mechanisms broken on purpose",
    }
    print(
        f"A made-up survey: {count:,} people said yes.\n\n"
        f"Noisy count   {noisy:,}\n"
        f"Error         at most {error:,} {people}, 95 % of the time\n"
        f"Guarantee     epsilon = {_short(exact)} for each person, added or removed\n\n"
        "In words: whoever sees the noisy count, and whatever they knew before, their odds on whether any\n"
        f"one person was counted change by a factor of at most e^epsilon = {math.exp(exact):.3g}.\n\n"
        "Next:\n" + "\n".join(f"  {command:<32}{why}" for command, why in steps.items())
    )


def _short(number: Fraction) -> str:
    """A number as people write it."""
    text = f"{float(number):g}"
    return text if Fraction(text) == number else str(number)
