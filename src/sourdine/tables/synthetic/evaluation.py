"""How close a synthetic table comes to the real one: exact, and for the holder of the data alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import coins
from sourdine.frames.contributions import key_counts
from sourdine.frames.quality import record_codes
from sourdine.frames.schema import PrivacyUnit
from sourdine.frames.source import Source
from sourdine.tables.payment import admit
from sourdine.tables.synthetic.cells import CellColumn
from sourdine.tables.synthetic.drawing import shuffle_within
from sourdine.tables.synthetic.pairs import Codes, pair_tables
from sourdine.tables.synthetic.plan import SyntheticPlan
from sourdine.tables.synthetic.texts import MOST_KEYS
from sourdine.testing import SeededBits

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
