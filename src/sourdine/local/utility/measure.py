"""Clean, learn, test: what a classifier learns from a table cleaned at each of several epsilons.

The rows to learn from are cleaned, those to test by are not, and each cleaning is done several times over.
What comes out are exact scores on true rows: they are not private, and are for whoever holds public or
made-up rows and has to choose an epsilon and a noise before cleaning other people's.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.local.cleaner.cleaner import Cleaner
from sourdine.local.cleaner.numbers import Method, NumberCells
from sourdine.local.cleaner.specification import CleaningSpecification
from sourdine.local.utility.models import (
    Always,
    Classifier,
    LearningModel,
    Rows,
    Scores,
    check_installed,
    learn,
    quality,
)
from sourdine.local.utility.rows import PrivateRows, Split, cleaned_rows, true_rows

NOTICE = "NOT PRIVATE: exact scores on true rows, for public or made-up data alone"
MOST_REPEATS = 10_000
_OWNER = "a measurement of utility"


class JudgedOn(StrEnum):
    """The rows that a classifier is tested by: as they are, cleaned but for the label, or cleaned."""

    UNTOUCHED = "untouched"
    CLEANED_FEATURES = "cleaned-features"
    CLEANED = "cleaned"


@dataclass(frozen=True, eq=False, kw_only=True)
class UtilityPoint:
    """A model that learned from rows cleaned with one noise at one epsilon.

    `target` is the epsilon that was asked for, and `price` what the cleaning really costs a person.
    """

    method: Method
    model: LearningModel
    target: Fraction
    price: Fraction
    scores: Mapping[JudgedOn, Scores]


@dataclass(frozen=True, eq=False, kw_only=True)
class Utility:
    """All points, and what is reached without noise: accuracy and F1 of each model, and of one that always
    says the commonest label.

    `by_column` says that the epsilons that were asked for are those of a column and not of a person.
    """

    label: str
    labels: tuple[str, ...]
    unit: str
    by_column: bool
    points: tuple[UtilityPoint, ...]
    without_noise: Mapping[LearningModel, tuple[float, float]]
    commonest: tuple[float, float]
    tested: tuple[JudgedOn, ...]
    train: int
    test: int
    repeats: int
    numbers: bool

    @property
    def models(self) -> tuple[LearningModel, ...]:
        """The models, in order."""
        return tuple(self.without_noise)

    @property
    def methods(self) -> tuple[Method, ...]:
        """The noises, in order."""
        return tuple(dict.fromkeys(point.method for point in self.points))


def measure_utility(
    table: object,
    specification: CleaningSpecification | Mapping[str, object],
    *,
    label: str,
    epsilon: Sequence[Fraction | float] | Fraction | float | None = None,
    each: Sequence[Fraction | float] | Fraction | float | None = None,
    models: Sequence[LearningModel] = (LearningModel.NAIVE_BAYES,),
    methods: Sequence[Method] = tuple(Method),
    test: object = 0.2,
    seed: int = 0,
    repeats: int = 30,
    tested: Sequence[JudgedOn] = (JudgedOn.UNTOUCHED,),
    bits: Bits = SYSTEM,
    watch: Callable[[Sequence[Cleaner]], Iterable[Cleaner]] = lambda cleaners: cleaners,
) -> Utility:
    """What classifiers learn from a table cleaned at several epsilons, tested on untouched rows. NOT PRIVATE.

    The specification is that of a cleaning: a block of columns and one of how they are cleaned. Epsilons are
    those of a person (`epsilon`) or of every column (`each`). `test` is the share of the rows to test by,
    drawn by a seed as scikit-learn does, or a second table. Every cleaning is done `repeats` times.

    >>> from sourdine.testing import SeededBits
    >>> from sourdine.frames.files import relation_of
    >>> import numpy as np
    >>> x = np.arange(400) % 20
    >>> table = relation_of({"x": x, "big": x > 9})
    >>> columns = {"x": {"type": "integer", "lower": 0, "upper": 19}, "big": {"type": "flag"}}
    >>> found = measure_utility(
    ...     table, {"columns": columns}, label="big", epsilon=[1, 40], repeats=5, bits=SeededBits(1)
    ... )
    >>> low, high = (point.scores["untouched"].accuracy.mean() for point in found.points[::3])
    >>> bool(low < high), found.without_noise["naive-bayes"][0] > 0.9
    (True, True)
    """
    spec = (
        specification
        if isinstance(specification, CleaningSpecification)
        else CleaningSpecification.read(specification)
    )
    many = check.integer(_OWNER, "repeats", repeats, 2, MOST_REPEATS)
    if (epsilon is None) == (each is None):
        raise InvalidParameter(
            "Utility is measured at epsilons of a person (epsilon) or of every column (each). Give one."
        )
    levels = _listed(epsilon if each is None else each)
    for model in dict.fromkeys(models):
        check_installed(check.member(_OWNER, "model", model, LearningModel))
    chosen = [check.member(_OWNER, "method", method, Method) for method in dict.fromkeys(methods)]
    judged = tuple(check.member(_OWNER, "tested", kind, JudgedOn) for kind in dict.fromkeys(tested))
    if not (levels and models and chosen and judged):
        raise InvalidParameter("Utility needs an epsilon, a model, a noise and rows to test by. Name some.")
    cases = [
        (
            level,
            method,
            spec.cleaner(
                epsilon=level if each is None else None,
                each=None if each is None else level,
                method=method,
            ),
        )
        for level in levels
        for method in chosen
    ]
    first = cases[0][2]
    _check_label(first, label)
    numbers = any(isinstance(cells, NumberCells) for cells in first.cells)
    if not numbers:  # they differ in the noise of numbers alone
        cases = [case for case in cases if case[1] is chosen[0]]
    private = PrivateRows.read(first, table, test, seed, spec.text)
    truth = true_rows(first, label, private.cells)
    train, judge = truth.part(private.split.train), truth.part(private.split.test)
    if not len(train.labels) or not len(judge.labels):
        raise InvalidParameter("No row to learn from, or none to test by, has a label that is declared.")
    asked_of = {id(cleaner): (level, method) for level, method, cleaner in cases}
    points: list[UtilityPoint] = []
    for cleaner in watch([cleaner for _, _, cleaner in cases]):
        level, method = asked_of[id(cleaner)]
        results = try_models(
            truth,
            private.split,
            cleaned_rows(cleaner, label, private.cells, many, bits),
            lambda rows: {model: learn(model, rows) for model in models},
        )
        points += [
            UtilityPoint(
                method=method,
                model=model,
                target=level,
                price=cleaner.total,
                scores={kind: scores[kind] for kind in judged},
            )
            for model, scores in results.items()
        ]
    (labels,) = (cells.labels for cells in first.cells if cells.name == label)
    return Utility(
        label=label,
        labels=tuple(map(str, labels or ())),
        unit=first.unit,
        by_column=each is not None,
        points=tuple(points),
        without_noise={model: _score(learn(model, train), judge) for model in dict.fromkeys(models)},
        commonest=_score(Always.commonest(train), judge),
        tested=judged,
        train=len(train.labels),
        test=len(judge.labels),
        repeats=many,
        numbers=numbers,
    )


M = TypeVar("M")


def try_models(
    truth: Rows, split: Split, cleanings: Iterable[Rows], learned: Callable[[Rows], Mapping[M, Classifier]]
) -> dict[M, dict[JudgedOn, Scores]]:
    """The scores of what is learned from the rows of each cleaning that are for that, by the others."""
    test = truth.part(split.test)
    pairs: dict[M, dict[JudgedOn, list[tuple[float, float]]]] = {}
    for rows in cleanings:
        cleaned = rows.part(split.test)
        mixed = Rows(rows.features, truth.labels, rows.keys, rows.classes).part(split.test)
        for model, classifier in learned(rows.part(split.train)).items():
            by_kind = pairs.setdefault(model, {kind: [] for kind in JudgedOn})
            for kind, judge in zip(JudgedOn, (test, mixed, cleaned), strict=True):
                by_kind[kind].append(_score(classifier, judge))
    return {
        model: {kind: Scores.of(each) for kind, each in by_kind.items()} for model, by_kind in pairs.items()
    }


def _score(classifier: Classifier, rows: Rows) -> tuple[float, float]:
    return quality(rows.labels, classifier.guess(rows.features), rows.classes)


def _listed(epsilon: Sequence[Fraction | float] | Fraction | float | None) -> list[Fraction]:
    levels = epsilon if isinstance(epsilon, Sequence) else [epsilon]
    return list(dict.fromkeys(check.positive(_OWNER, "epsilon", value) for value in levels))


def _check_label(cleaner: Cleaner, label: str) -> None:
    matches = [cells for cells in cleaner.cells if cells.name == label]
    if not matches or matches[0].labels is None:
        raise InvalidParameter(
            f"The label '{label}' is not declared as a flag or a category, whose keys are the classes. "
            "Declare it so, or name another column."
        )
    if len(cleaner.cells) < 2:
        raise InvalidParameter(f"Nothing but the label '{label}' is declared. Declare what to learn it from.")
