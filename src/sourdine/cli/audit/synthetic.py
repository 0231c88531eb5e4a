"""`sourdine audit synthetic`: tables with and without a canary, and what comes out of them."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, SeedNumber, bits_of


def synthetic(
    *,
    spec: Annotated[
        Path | None, typer.Argument(help="A specification, whose declarations are audited as well.")
    ] = None,
    runs: Annotated[int, typer.Option(help="Synthetic tables with the canary, and as many without.")] = 4000,
    pairs: Annotated[int, typer.Option(help="With SPEC: pairs of neighbouring tables.")] = 200,
    seed: SeedNumber = 1,
    as_json: AsJson = False,
) -> None:
    """Bound the epsilon of synthetic tables from below, by an outlying record that is there or not.

    With a specification, made-up neighbouring tables are also read by its declarations: no unit may move
    counts and scores farther than the plan pays for. No real table is read. Exit code 1 means that a claim
    is refuted.

    Examples: sourdine audit synthetic · sourdine audit synthetic people.toml
    """
    from sourdine.audit.plans.synthetic import audit_synthetic_plan
    from sourdine.audit.synthetic import audit_synthetic
    from sourdine.tables.specification import Specification

    bits = bits_of("audit synthetic", seed)
    moved = None
    if spec is not None:
        moved = audit_synthetic_plan(Specification.load(spec).synthetic_plan(), pairs=pairs, bits=bits)
    audit = audit_synthetic(runs=runs, bits=bits)
    good = audit.passed and (moved is None or moved.passed)
    if as_json:
        show.document(
            {
                "tables": dataclasses.asdict(audit.tables),
                "rows": dataclasses.asdict(audit.rows),
                "plan": None if moved is None else dataclasses.asdict(moved),
                "good": good,
            }
        )
        raise typer.Exit(0 if good else 1)
    show.table(
        ("what is looked at", "epsilon at least", "claimed", "at delta"),
        [
            (name, f"{each.audited:.3f}", f"{each.claimed:.3f}", f"{each.delta:g}")
            for name, each in (("noisy tables", audit.tables), ("rows alone", audit.rows))
        ],
        numbers=("epsilon at least", "claimed", "at delta"),
    )
    if moved is not None:
        show.say(
            f"Of {moved.pairs} pairs of neighbouring tables none may move a table of counts by more than 1 "
            f"of what is paid for: {moved.counts:.3g}; nor a score: {moved.scores:.3g}."
        )
    show.say("Nothing refutes the claim." if good else "THE CLAIM IS REFUTED.")
    raise typer.Exit(0 if good else 1)
