"""Pay for a synthetic table, read the records once, measure, draw. Nothing is read before the charge."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.ledger import Ledger, Receipt
from sourdine.accounting.release import Release
from sourdine.core.display import Figure, figure_of
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits, coins
from sourdine.frames.contributions import key_counts
from sourdine.frames.quality import record_codes
from sourdine.frames.schema import PrivacyUnit
from sourdine.frames.source import Source
from sourdine.tables.payment import DeclaredTable, admit, check_given, paid, read_again, silence
from sourdine.tables.synthetic.cells import MOST_KEYS, CellColumn, choose_keys
from sourdine.tables.synthetic.fit import NoisyTable, estimate_total, fit_tree, is_supported, noisy_tables
from sourdine.tables.synthetic.measure import Codes, PartMeasurement, measure_part, pair_tables
from sourdine.tables.synthetic.model import (
    Residual,
    SyntheticModel,
    SyntheticPart,
    SyntheticTable,
    residuals,
    shuffle_within,
)
from sourdine.tables.synthetic.plan import SyntheticPlan, tables_of
from sourdine.testing import SeededBits

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


# How close a synthetic table comes to the real one: exact, and for the holder of the data alone.


NOT_PRIVATE = (
    "NOT PRIVATE, AND NOT FOR PUBLICATION: these numbers are exact. They are for the holder of the data "
    "alone, and no choice of what is published may rest on them."
)
_MOST_TRIPLES = 2000  # tables of three columns; of more, these are drawn
_MOST_CELLS = 1 << 26
_MOST_ROWS = 100_000  # that models are trained on
_SEED = 1


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Exact distances, NOT private: total variation by pair, and means over tables of two and three columns.

    `propensity` is the area under the curve of a model that tells real from synthetic rows it has not seen,
    and `prediction` that of one trained on synthetic rows, and of one trained on real ones, on the other half
    of the real rows. Both are None where scikit-learn is not there, or nothing is to be predicted.
    """

    pairs: Mapping[tuple[str, str], float]
    two_way: float
    three_way: float
    propensity: float | None = None
    prediction: tuple[float, float] | None = None

    def plain(self) -> dict[str, object]:
        """The numbers by name, the notice first."""
        return {
            "notice": NOT_PRIVATE,
            "two_way": self.two_way,
            "three_way": self.three_way,
            "pairs": [{"columns": list(pair), "distance": each} for pair, each in self.pairs.items()],
            "propensity": self.propensity,
            "prediction": self.prediction,
        }


def evaluate_table(
    plan: SyntheticPlan, real: Source, synthetic: Source, *, label: str | None = None
) -> Evaluation:
    """Compare a synthetic table with the real one, both by the cells of a plan: NOT private.

    Texts that nobody listed are compared by the keys that the synthetic table has.
    """
    real = admit(plan, real)
    bits = SeededBits(_SEED)  # which record of a unit is compared: nothing is published
    plan = plan.with_keys({name: _keys(synthetic, name, bits) for name in plan.texts})
    columns = [*plan.columns, *([] if plan.target_cells is None else [plan.target_cells])]
    names = [column.name for column in columns]
    if label is not None and label not in names:
        raise InvalidParameter(
            f"There is no column '{label}' in the synthetic table to predict. Name another."
        )
    ours = _codes(real, columns, plan.unit, bits)
    theirs = _codes(synthetic, columns, PrivacyUnit(plan.unit.name), bits)
    if not (len(ours[0]) and len(theirs[0])):
        raise InvalidParameter("One of the two tables has no rows to compare.")
    sizes = [column.size for column in columns]
    pairs = two_way(ours, theirs, names, sizes)
    propensity, prediction = _models(ours, theirs, None if label is None else names.index(label))
    return Evaluation(
        pairs=pairs,
        two_way=float(np.mean(list(pairs.values()) or [0.0])),
        three_way=three_way(ours, theirs, sizes),
        propensity=propensity,
        prediction=prediction,
    )


def _keys(synthetic: Source, name: str, bits: SeededBits) -> tuple[str, ...]:
    counts = key_counts(synthetic, [name], unit=PrivacyUnit(), bits=bits)
    return tuple(str(key[0]) for key in counts.chosen(np.arange(counts.size))[:MOST_KEYS])


def _codes(table: Source, columns: Sequence[CellColumn], unit: PrivacyUnit, bits: SeededBits) -> list[Codes]:
    return record_codes(table, [column.grouping(table) for column in columns], unit=unit, bits=bits)


def two_way(
    real: Sequence[Codes], synthetic: Sequence[Codes], names: Sequence[str], sizes: Sequence[int]
) -> dict[tuple[str, str], float]:
    """The total variation of every table of two columns."""
    wide = [size + 1 for size in sizes]  # with what is missing, also where no cell is for it
    tables = zip(pair_tables(real, wide), pair_tables(synthetic, wide), strict=True)
    return {(names[pair[0]], names[pair[1]]): _distance(one, other) for (pair, one), (_, other) in tables}


def three_way(real: Sequence[Codes], synthetic: Sequence[Codes], sizes: Sequence[int]) -> float:
    """The mean total variation of tables of three columns: all of them, or many."""
    every = list(combinations(range(len(sizes)), 3))
    step = -(-len(every) // _MOST_TRIPLES) if every else 1
    distances = []
    for triple in islice(every, 0, None, step):
        wide = [sizes[column] + 1 for column in triple]
        if np.prod(wide, dtype=float) <= _MOST_CELLS:
            counts = [
                np.bincount(_joint([rows[column] for column in triple], wide), minlength=int(np.prod(wide)))
                for rows in (real, synthetic)
            ]
            distances.append(_distance(*counts))
    return float(np.mean(distances or [0.0]))


def _joint(codes: Sequence[Codes], sizes: Sequence[int]) -> NDArray[np.int64]:
    joint = np.zeros(len(codes[0]), np.int64)
    for code, size in zip(codes, sizes, strict=True):
        joint = joint * size + code
    return joint


def _distance(one: NDArray[Any], other: NDArray[Any]) -> float:
    return float(np.abs(one / one.sum() - other / other.sum()).sum() / 2)


def _models(
    real: Sequence[Codes], synthetic: Sequence[Codes], label: int | None
) -> tuple[float | None, tuple[float, float] | None]:
    """How well real rows are told from synthetic ones, and how well a column is predicted."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.metrics import roc_auc_score
    except ImportError:
        return None, None

    bits = SeededBits(_SEED)
    ours, theirs = (np.stack([*each], axis=1)[_order(len(each[0]), bits)] for each in (real, synthetic))

    def area(rows: NDArray[Any], classes: NDArray[Any], tests: NDArray[Any], truth: NDArray[Any]) -> float:
        model = HistGradientBoostingClassifier(random_state=_SEED).fit(rows, classes)
        chances = model.predict_proba(tests)
        areas = [
            float(roc_auc_score(truth == key, chances[:, place]))
            for place, key in enumerate(model.classes_)
            if 0 < (truth == key).sum() < len(truth)
        ]
        return float(np.mean(areas or [0.5]))  # one class against the others, on average

    mixed = np.concatenate([ours, theirs])
    whose = np.concatenate([np.ones(len(ours)), np.zeros(len(theirs))])
    half = coins(bits, len(mixed))
    propensity = area(mixed[half], whose[half], mixed[~half], whose[~half])
    if label is None:
        return propensity, None
    others = [column for column in range(len(real)) if column != label]
    train = np.arange(len(ours)) % 2 == 0
    tests, truth = ours[~train][:, others], ours[~train][:, label]
    from_synthetic = area(theirs[:, others], theirs[:, label], tests, truth)
    from_real = area(ours[train][:, others], ours[train][:, label], tests, truth)
    return propensity, (from_synthetic, from_real)


def _order(count: int, bits: SeededBits) -> NDArray[np.int64]:
    """Some rows, in random order."""
    return shuffle_within(np.zeros(count, np.int64), bits)[:_MOST_ROWS]
