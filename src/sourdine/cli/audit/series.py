"""`sourdine audit series`: publish made-up neighbours to the end of a series, before any real one is read."""

from typing import Annotated

import typer

from sourdine.cli.plan import SpecFile
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson, SeedNumber, check_seed
from sourdine.core import check
from sourdine.core.format import counted

_MOST = 10**5  # pairs


def series(
    spec: SpecFile,
    *,
    pairs: Annotated[int, typer.Option(help="Pairs of neighbouring tables, each published to the end.")] = 20,
    seed: SeedNumber = 1,
    as_json: AsJson = False,
) -> None:
    """Check that no unit moves the rows of a series, all periods together, farther than its plan pays for.

    Registers are made up from the declarations, with a unit that comes in every period, as often as it may,
    or here and there, and are published to their end, with a state on the disk. The real table is not read,
    and nothing is spent. An audit can refute a plan, never prove it. Exit code 1 means that it did.

    Examples: sourdine audit series visits.toml · sourdine audit series visits.toml --pairs 200
    """
    check_seed("audit series", seed)
    many = check.integer("audit series", "pairs", pairs, 1, _MOST)
    from sourdine.audit.plans import audit_series
    from sourdine.tables.specification import Specification
    from sourdine.testing import SeededBits

    plan = Specification.load(spec).series_plan()
    audit = audit_series(plan, pairs=many, bits=SeededBits(seed))
    if as_json:
        show.document(
            {
                "unit": plan.unit.name,
                "neighbours": str(plan.neighbours),
                "periods": plan.block.periods,
                "pairs": audit.pairs,
                "farthest": audit.worst,
                "line": audit.line,
                "good": audit.passed,
            }
        )
    else:
        show.say(
            f"{counted(audit.pairs, 'pair')} of neighbours were published over "
            f"{counted(plan.block.periods, 'period')}. The unit that differs moved the rows at most "
            f"{audit.worst:.4f} times as far as is paid for ({show.one_line(audit.line)}): "
            + ("not refuted." if audit.passed else "VIOLATED.")
        )
    raise typer.Exit(0 if audit.passed else 1)
