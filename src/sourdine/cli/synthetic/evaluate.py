"""`sourdine synthesize evaluate`: how close a synthetic table comes, for the holder of the data alone."""

from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson

_WORST = 10


def evaluate(
    spec: Annotated[Path, typer.Argument(help="The specification, a TOML file.")],
    table: Annotated[Path, typer.Argument(help="The synthetic table.")],
    *,
    label: Annotated[
        str | None,
        typer.Option(help="A column that models predict, with the extra sklearn. Without it: the target."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare a synthetic table with the real one, exactly: NOT private, and NOT for publication.

    It reports distances of all tables of two and of three columns, how well a model tells real rows from
    synthetic ones, and how well one that was trained on synthetic rows predicts the real ones. Nothing is
    spent, so nothing of it may be passed on, and no choice of what to publish may rest on it.

    Example: sourdine synthesize evaluate people.toml published/synthetic.csv --label income
    """
    from sourdine.tables.specification import Specification
    from sourdine.tables.synthetic.synthesis import NOT_PRIVATE, evaluate_table

    specification = Specification.load(spec)
    plan = specification.synthetic_plan()
    real, synthetic = specification.open(), specification.open_synthetic(table)
    evaluation = evaluate_table(plan, real, synthetic, label=label or plan.target)
    if as_json:
        show.document(evaluation.plain())
        return
    show.warn(NOT_PRIVATE)
    show.say(
        f"Total variation, from 0 to 1: {evaluation.two_way:.4f} on average over {len(evaluation.pairs)} "
        f"tables of two columns, {evaluation.three_way:.4f} of three."
    )
    show.table(
        ("columns", "total variation"),
        [
            (show.one_line(" and ".join(pair)), f"{distance:.4f}")
            for pair, distance in sorted(evaluation.pairs.items(), key=lambda item: -item[1])[:_WORST]
        ],
        numbers=("total variation",),
    )
    if evaluation.propensity is not None:
        show.say(
            "A model tells real rows from synthetic ones with an area under the curve of "
            f"{evaluation.propensity:.3f}: 0.5 would mean not at all."
        )
    if evaluation.prediction is not None:
        trained, best = evaluation.prediction
        show.say(
            "A model trained on synthetic rows predicts real ones with an area under the curve of "
            f"{trained:.3f}; trained on real ones, {best:.3f}."
        )
