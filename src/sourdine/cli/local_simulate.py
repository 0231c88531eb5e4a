"""`sourdine local simulate`: how well an oracle would do, on made-up people."""

from fractions import Fraction
from functools import partial
from typing import Annotated

import typer

from sourdine.cli import show
from sourdine.cli.number import number
from sourdine.cli.seed import Seed, bits_of
from sourdine.core import check


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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Make up people, report for each, and compare what is read with the truth. Nobody's data is touched.

    Example: sourdine local simulate --epsilon 1 --categories 1000 --people 1000000
    """
    from sourdine.local.named import FREQUENCY, frequency_oracle
    from sourdine.local.simulation import population, rehearse

    level = number("local simulate", "epsilon", epsilon, Fraction(1, 1 << 20), 512)
    categories = check.integer("local simulate", "categories", categories, 2, 1 << 24)
    people = check.integer("local simulate", "people", people, 1, 1 << 32)
    names = list(dict.fromkeys(oracle or FREQUENCY))
    oracles = [frequency_oracle(name, epsilon=level, categories=categories)[0] for name in names]
    bits = bits_of("local simulate", seed)
    counts = population(law, categories, people)
    found = [
        rehearse(each, counts, bits=bits, watch=partial(show.progress, name))
        for name, each in zip(names, oracles, strict=True)
    ]
    best = min(range(len(found)), key=lambda i: found[i].forecast)
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
                    for name, each in zip(names, found, strict=True)
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
            for name, each in zip(names, found, strict=True)
        ],
        numbers=columns[1:],
    )
    show.say(
        f"{people:,} made-up people, {categories:,} answers by a {law} law, epsilon {epsilon} a report. "
        "Errors are of shares (root mean square), in this run and as forecast; 'in interval' is how many "
        f"of the true shares lie in their 95 % intervals. The least error is forecast for {names[best]}."
    )
