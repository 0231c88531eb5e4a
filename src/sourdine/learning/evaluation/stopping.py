"""A rule by which a run ends early, stated before its first step: it looks at public examples only."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.result import Progress

LOSS, ACCURACY = "loss", "accuracy"
_OWNER = "EarlyStopping"


@dataclass(frozen=True, kw_only=True)
class EarlyStopping:
    """Ends a run when a measure on the public examples has not improved for some epochs.

    It costs no epsilon and saves none: what was paid for is the whole plan, and models that are judged on
    public examples are what was paid for. The loss on private examples would be a look at them, which nobody
    paid for, so there is no such rule.

    - `measure`: "loss", "accuracy", or the name of one of the metrics of `fit`.
    - `patience`: how many epochs in a row may bring nothing.
    - `least`: what counts as an improvement.
    - `larger`: whether more is better; must be stated for a metric of one's own.

    >>> told = [Progress(step=i, steps=9, epoch=i, epsilon=1.0, loss=2.0) for i in (1, 2, 3)]
    >>> EarlyStopping(patience=2).ends(told), EarlyStopping(patience=3).ends(told)
    (True, False)
    """

    measure: str = LOSS
    patience: int = 3
    least: float = 0.0
    larger: bool | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.measure, str):
            raise check.fail(_OWNER, "measure", "be 'loss', 'accuracy' or the name of a metric", self.measure)
        known = {LOSS: False, ACCURACY: True}
        if self.larger is None and self.measure not in known:
            remedy = "Write larger=True where more is better, as of accuracies."
            raise check.fail(_OWNER, "larger", "be stated for a metric of one's own", None, remedy)
        larger = known[self.measure] if self.larger is None else check.boolean(_OWNER, "larger", self.larger)
        if larger is not known.get(self.measure, larger):
            raise check.fail(_OWNER, "larger", f"be {not larger} or left out for {self.measure}", larger)
        check.keep(
            self,
            patience=check.integer(_OWNER, "patience", self.patience, 1, 1 << 30),
            least=float(check.between(_OWNER, "least", self.least, Fraction(0), Fraction(1 << 30))),
            larger=larger,
        )

    def ends(self, history: Sequence[Progress]) -> bool:
        """Whether a run ends after these epochs; what is not a number is no improvement."""
        best, since = -math.inf, 0
        for each in history:
            value = {LOSS: each.loss, ACCURACY: each.accuracy}.get(self.measure)
            value = each.metrics.get(self.measure) if value is None else value
            score = -math.inf if value is None or math.isnan(value) else value if self.larger else -value
            if score > best + self.least:
                best, since = score, 0
            else:
                since += 1
        return since >= self.patience

    @property
    def words(self) -> str:
        """The rule, as ledgers and cards state it."""
        return (
            f"after {self.patience} epochs without a better {self.measure} on public data, by {self.least:g}"
        )


def check_stopping(stopping: object, public: object, metrics: Collection[str]) -> EarlyStopping | None:
    """The rule, if one was stated and there is something public to judge by."""
    if stopping is None:
        return None
    if not isinstance(stopping, EarlyStopping):
        raise check.fail(
            "fit", "stopping", "be an EarlyStopping", stopping, "Write EarlyStopping(patience=3)."
        )
    if public is None:
        raise InvalidParameter(
            "The 'stopping' of fit needs 'public' examples to judge by: a look at the loss on private ones "
            "was not paid for. Pass public=(inputs, targets)."
        )
    if stopping.measure not in {LOSS, ACCURACY, *metrics}:
        raise check.fail(
            "fit", "stopping", "name 'loss', 'accuracy' or one of the 'metrics'", stopping.measure
        )
    return stopping
