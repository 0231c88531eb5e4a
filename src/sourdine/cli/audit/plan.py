"""`sourdine audit plan`: replay neighbouring tables through a plan, before any real one is read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, SeedNumber, check_seed
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted

if TYPE_CHECKING:
    from sourdine.audit.plans import PlanAudit

_SHOWN = 5  # violations that are told to people


def plan(
    *,
    spec: Annotated[Path, typer.Argument(help="The specification (TOML).")],
    pairs: Annotated[int, typer.Option(help="Pairs of neighbouring tables on each engine.")] = 300,
    engine: Annotated[
        list[str] | None,
        typer.Option(help="An engine, such as csv or spark; once for each. All but spark by default."),
    ] = None,
    seed: SeedNumber = 1,
    as_json: AsJson = False,
) -> None:
    """Check that no unit moves the exact numbers of a plan farther than the plan pays for.

    Tables are made up from the declarations, with the worst that records could hold; the real table is not
    read, and nothing is spent. An audit can refute a plan's distances, never prove them. Exit code 1 means
    that a pair of neighbouring tables refutes them.

    Examples: sourdine audit plan people.toml · sourdine audit plan people.toml --pairs 10000 ·
    sourdine audit plan people.toml --engine csv
    """
    check_seed("audit plan", seed)
    from sourdine.audit.plans import audit_plan
    from sourdine.frames.joins import read_joins
    from sourdine.tables.specification import Specification

    specification = Specification.load(spec)
    audit = audit_plan(
        specification.plan(),
        joins=read_joins(specification.joins, specification.folder),
        pairs=pairs,
        engines=engine,
        seed=seed,
        watch=lambda stretches: show.progress("replaying", stretches),
    )
    if not audit.engines:
        reasons = "; ".join(f"{name}, since {why}" for name, why in audit.skipped.items())
        raise InvalidParameter(f"Nothing was replayed. Left out: {reasons}. Name another engine.")
    if as_json:
        show.document(plain(audit))
    else:
        _print(audit)
    raise typer.Exit(0 if audit.good else 1)


def plain(audit: "PlanAudit") -> dict[str, object]:
    """What was found, for machines."""
    from sourdine.core.serialization import encoded

    return {
        "unit": audit.plan.unit.name,
        "neighbours": str(audit.plan.neighbours),
        "engines": audit.engines,
        "skipped": audit.skipped,
        "lines": [
            {
                "query": each.line.measurement.scope.query,
                "statistic": each.line.measurement.label,
                "norm": str(each.line.distance.norm),
                "declared": str(each.line.distance.amount),
                "groups": each.line.count,
                "pairs": each.pairs,
                "moved": each.moved,
                "left_out": each.still,
                "ratio": each.ratio,
            }
            for each in audit.lines
        ],
        "violations": [encoded(each) for each in audit.violations],
        "good": audit.good,
    }


def _print(audit: "PlanAudit") -> None:
    bad = {(each.query, each.line) for each in audit.violations}
    show.table(
        ("query", "statistic", "declared", "compared", "farthest", "verdict"),
        [
            (
                each.line.measurement.scope.query,
                each.line.measurement.label,
                _declared(each.line),
                f"{each.pairs:,}",
                f"{each.ratio:.2f}",
                "VIOLATED"
                if (each.line.measurement.scope.query, each.line.measurement.label) in bad
                else "not refuted",
            )
            for each in audit.lines
        ],
        numbers=("compared", "farthest"),
    )
    whole = "is replaced" if str(audit.plan.neighbours) == "replace" else "comes or goes"
    engines = ", ".join(f"{name} ({counted(many, 'pair')})" for name, many in audit.engines.items())
    show.say(
        f"In each pair one {audit.plan.unit.name} {whole}. Some pairs are compared twice, and those that "
        "differ only in what a query leaves out are not counted. Farthest is the most that a pair moved a "
        f"line, in parts of what is declared: 1.00 uses all of it. Engines: {engines}."
    )
    for name, why in audit.skipped.items():
        show.say(f"Left out: {name}, since {why}.")
    show.line(f"{counted(len(audit.violations), 'violation')}.")
    for each in audit.violations[:_SHOWN]:
        show.say(each.words, mark="- ")


def _declared(line: object) -> str:
    from sourdine.core.distance import Norm
    from sourdine.tables.measurement import PlannedMeasurement

    assert isinstance(line, PlannedMeasurement)
    far = line.distance
    amount = f"{float(far.amount):g}"
    if far.norm is Norm.L2:
        return f"L2² {amount}"
    if far.norm is Norm.HAMMING:
        values = counted(float(far.amount), "value", "g")
        return f"{values} in {line.count} groups" if line.count > 1 else values
    return f"{far.norm} {amount}"
