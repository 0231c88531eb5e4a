"""`sourdine check`: exactly what does not fit, for the holder of the data alone."""

from sourdine.cli.plan import SpecFile
from sourdine.cli.shared import show
from sourdine.cli.shared.parse import AsJson


def check(
    spec: SpecFile,
    *,
    as_json: AsJson = False,
) -> None:
    """Count exactly which records do not fit the declarations. NOT PRIVATE: never publish what it prints.

    It is for whoever holds the data, to find wrong keys, bounds and ways to write numbers. It spends nothing,
    prints counts and never a value, and writes nothing but a mark into the specification: checked = true,
    before anything is shown. Declarations that are changed after reading it are outside the guarantee, so
    plans and certificates show the mark. A release tells the same privately.

    Examples: sourdine check people.toml · sourdine check people.toml --json
    """
    from sourdine.tables import Specification
    from sourdine.tables.quality import OUTSIDE, exact_quality, mark_checked
    from sourdine.tables.query import columns_of

    specification = Specification.load(spec)
    block, source = specification.series, specification.open()
    plan = specification.plan() if block is None else specification.series_plan()
    when = () if block is None else tuple(name for name in (block.arrived, block.happened) if name)
    columns = tuple(dict.fromkeys((*columns_of(plan.queries, plan.schema), *when)))
    mark_checked(spec)
    quality = exact_quality(source, columns, specification.unit)
    if not as_json:
        for line in quality.lines():
            show.line(show.one_line(line))
        return
    show.document(
        {
            "notice": f"{quality.notice}: {OUTSIDE}",
            "records": quality.records,
            "without_unit": quality.without_unit,
            "cells": [
                {"column": name, "what": str(cell), "records": many, "notice": quality.notice}
                for name, cell, many in quality.cells
            ],
        }
    )
