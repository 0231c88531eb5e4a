"""Questions in SQL beside what the engine itself makes of their text: are the same records counted?

A plan is audited as it was read, so a word of SQL that was read wrongly would show nowhere. Here the text
itself is put to DuckDB, on made-up tables that hold declared values or nothing, and must give the
same counts.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from sourdine.audit.plans.engines import ENGINES, Workplace
from sourdine.audit.plans.walk import Walk
from sourdine.frames import PrivacyUnit, Schema, Source, Totals, open_source
from sourdine.frames.keys import Combination
from sourdine.tables import Privacy, ReleasePlan
from sourdine.tables.measurement import expect
from sourdine.tables.release import exact_of
from sourdine.tables.sql import SqlTable, read_sql
from sourdine.tables.statistics import Count, Units
from sourdine.testing import SeededBits

_TABLES = 24
_UNBOUNDED = 1000  # records and groups of a unit, more than any made-up table has


def misread(
    texts: Mapping[str, str], schema: Schema, unit: PrivacyUnit, place: Workplace, seed: int = 1
) -> dict[str, int]:
    """The questions whose counts are not those of their text, each with the first table that shows it.

    Those that ask for anything but one count are left out.
    """
    whole = replace(unit, max_rows=_UNBOUNDED, max_groups=_UNBOUNDED) if unit.column is not None else unit
    wrong: dict[str, int] = {}
    for name, text in texts.items():
        query = read_sql(text, SqlTable(schema=schema, unit=whole), name).query
        if len(query.ask) != 1 or not isinstance(query.ask[0], Count | Units):
            continue
        plan = ReleasePlan(
            schema=schema, queries=(query,), privacy=Privacy(epsilon=Fraction(1)), unit=whole, quality=False
        )
        walk = Walk(plan, seed, plain=True)
        for number, step in enumerate(walk.steps(_TABLES)):
            table: Any = ENGINES["duckdb"].make(walk.layout, step.rows, place)
            source = open_source(table, plan.schema, [] if unit.column is None else [unit.column])
            lines = table.query("people", text).fetchall()
            if _counts(plan, source) != {
                tuple(row[:-1]): row[-1] for row in lines if None not in row and row[-1]
            }:
                wrong[name] = number
                break
    return wrong


def _counts(plan: ReleasePlan, source: Source) -> dict[Combination, int]:
    """The counts that a release would add noise to, where there are any."""
    (exact,) = exact_of(plan.lines, plan, source, SeededBits(1))
    totals = expect(Totals, exact)
    counts = totals.sums[0].reshape(-1).tolist()
    keys = plan.lines[0].measurement.keys(plan.schema)
    return {tuple(key): count for key, count in zip(keys, counts, strict=True) if count}
