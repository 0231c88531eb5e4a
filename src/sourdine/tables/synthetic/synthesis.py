"""Pay for a synthetic table, read the records once, measure, draw. Nothing is read before the charge."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from sourdine.accounting.ledger import Ledger, Receipt
from sourdine.accounting.release import Release
from sourdine.core.display import Figure, figure_of
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.quality import record_codes
from sourdine.frames.source import Source
from sourdine.tables.payment import DeclaredTable, admit, check_given, paid, read_again, silence
from sourdine.tables.synthetic.fit import NoisyTable, estimate_total, fit_tree, is_supported, noisy_tables
from sourdine.tables.synthetic.known import tables_of
from sourdine.tables.synthetic.model import Residual, SyntheticModel, SyntheticPart, SyntheticTable, residuals
from sourdine.tables.synthetic.pairs import Codes
from sourdine.tables.synthetic.part import PartMeasurement, measure_part
from sourdine.tables.synthetic.plan import SyntheticPlan
from sourdine.tables.synthetic.texts import choose_keys

PURPOSE = "synthetic table"
_MISSING = "there is no synthetic table"
LIMITS = (
    "A row is of nobody: do not look for people in it, and do not join it with other tables.",
    "Only pairs of columns in the tree were measured. All else follows from them as if the rest were "
    "independent, and may be wrong.",
    "Do not test hypotheses or give intervals as if the rows were a sample: the noise is in all of them.",
    "Rare keys, outliers and small groups are mostly noise.",
)
"""What not to conclude, for every page and certificate."""


@dataclass(frozen=True, kw_only=True)
class SyntheticRelease(Release):
    """A synthetic table that was paid for: `values` are its rows, `model` is what they were drawn from.

    More rows cost nothing: `model.draw`.
    """

    plan: SyntheticPlan
    values: SyntheticTable
    model: SyntheticModel

    def __repr__(self) -> str:
        paid = "not paid" if self.receipt is None else f"paid by line {self.receipt.number} of its ledger"
        seeded = "" if self.secure else ", seeded: protects nobody"
        return f"<SyntheticRelease of {len(self.values):,} rows, {paid}{seeded}>"

    @property
    def residuals(self) -> list[Residual]:
        """Every table that was measured beside the rows, in deviations of its noise."""
        return residuals(self.model, self.values)

    def chart(self) -> Figure:
        """The tree: which relations were measured, and may be trusted."""
        return figure_of(self)


def synthesize(
    plan: SyntheticPlan,
    table: Source | DeclaredTable,
    ledger: Ledger | Path | str,
    *,
    purpose: str = PURPOSE,
    prior: Sequence[NoisyTable] = (),
    bits: Bits = SYSTEM,
) -> SyntheticRelease:
    """Pay for a plan from a ledger, or from the one in a file, then make the table.

    The guarantee is the plan's: (epsilon, delta) for one unit under the plan's neighbours, for the model and
    for all that is drawn from it. The charge is on the disk before any record is read, and stands whatever
    happens after it; no error tells of the data. `prior` are tables that were published before.
    """
    check_given(ledger)
    source = check_source(plan, table)
    with paid(plan, ledger, bits, purpose=purpose, missing=_MISSING) as receipt:
        return carry_out(plan, source, receipt=receipt, prior=prior, bits=bits)


def check_source(plan: SyntheticPlan, table: Source | DeclaredTable) -> Source:
    """Return the records of a table, or refuse it by names and types alone."""
    source = admit(plan, table)
    source.view  # noqa: B018 (what cannot be computed is refused here, and not after the charge)
    for column in plan.columns:
        column.grouping(source)
    return source


def carry_out(
    plan: SyntheticPlan,
    source: Source,
    *,
    receipt: Receipt | None = None,
    prior: Sequence[NoisyTable] = (),
    bits: Bits = SYSTEM,
) -> SyntheticRelease:
    """The synthetic table of a plan. Without a receipt it is for rehearsals and measurements only."""
    source = admit(plan, source)
    with silence(_MISSING):
        if plan.texts:
            plan = plan.with_keys(choose_keys(plan.selections, source, plan.unit, bits))
        prior = (*prior, *tables_of(plan.totals, plan.columns))
        known = {column for each in prior for column in each.columns}
        read = partial(codes_by_part, plan, source, bits)
        # where keys were chosen, noise was drawn
        parts = read() if plan.texts else read_again(source, read)
        measured = [measure_one(plan, codes, bits, known=known) for codes in parts]
        model = model_of(plan, measured, prior)
        table = model.draw(plan.block.rows, bits=bits)
    return SyntheticRelease(
        plan=plan,
        values=table,
        model=model,
        intervals=None,
        spends=plan.spends,
        receipt=receipt,
        secure=bool(getattr(bits, "secure", False)),
        notes=(*plan.notes, *LIMITS),
        declarations=plan.declared,
    )


def codes_by_part(plan: SyntheticPlan, source: Source, bits: Bits) -> list[list[Codes]]:
    """The cells of the records, by part and column: exact, and for `measure_one` alone."""
    source, target = admit(plan, source), plan.target_cells
    cells = [*plan.columns, *([] if target is None else [target])]
    read = record_codes(source, [each.grouping(source) for each in cells], unit=plan.unit, bits=bits)
    for place, column in enumerate(cells):  # a total step: no record may lie in no cell
        np.minimum(read[place], column.size - 1, out=read[place])
    if target is None:
        return [read]
    key = read.pop()
    return [[column[key == part] for column in read] for part in range(target.size)]


def measure_one(
    plan: SyntheticPlan, codes: Sequence[Codes], bits: Bits, *, known: Collection[int] = ()
) -> PartMeasurement:
    """The noisy tables of one part; of columns that are `known` from elsewhere no cells are joined."""
    sizes = [column.size for column in plan.columns]
    whole = {*known, *(column for pair in plan.zeros for column in pair)}
    return measure_part(codes, sizes, plan.noise, bits, fixed=plan.fixed, whole=whole)


def model_of(
    plan: SyntheticPlan, measured: Sequence[PartMeasurement], prior: Sequence[NoisyTable] = ()
) -> SyntheticModel:
    """The trees of what was measured: post-processing.

    What is missing has a cell in a column, and of a target a part. Nobody is drawn there unless noisy counts
    support it.
    """
    parts = []
    missing = [place for place, column in enumerate(plan.columns) if column.missing]
    lost = plan.parts[-1] if plan.target_cells is not None and plan.target_cells.missing else None
    totals: Sequence[float | None] = plan.totals.get(plan.target or "", [None] * len(plan.parts))  # type: ignore[assignment]
    for name, each, total in zip(plan.parts, measured, totals, strict=True):
        tables = noisy_tables(each, plan.noise)
        about = [*tables, *prior]
        nobody = total is None and name == lost and not is_supported(*estimate_total(about))
        tree = fit_tree(
            about, each.cells, each.edges, plan.zeros, total=0.0 if nobody else total, missing=missing
        )
        parts.append(SyntheticPart(name=name, tables=tables, tree=tree))
    return SyntheticModel(
        order=plan.names,
        columns=plan.columns,
        target=plan.target_cells,
        parts=tuple(parts),
        hierarchies=plan.hierarchies,
        mark=plan.block.mark,
    )
