"""Lists of settings for `sourdine train sweep`, read from text with commas."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from sourdine.cli.shared.parse import number
from sourdine.cli.train.model import ChosenModel
from sourdine.cli.train.options import EPSILON, NOISE
from sourdine.core import check

if TYPE_CHECKING:
    from sourdine.learning.models import Recipe
    from sourdine.learning.sweep.settings import Setting

SWEEP = "train sweep"
_MOST_VALUES = 100  # in one list


@dataclass(frozen=True, kw_only=True)
class Lists:
    """The lists of values, read from text; where one is empty, the usual value is taken."""

    chosen: ChosenModel
    rates: tuple[float, ...]
    batches: tuple[int, ...]
    epochs: tuple[int, ...]
    epsilons: tuple[float, ...]
    noises: tuple[float, ...]
    clips: tuple[float, ...]
    hidden: tuple[int, ...]

    @classmethod
    def read(
        cls,
        chosen: ChosenModel,
        *,
        rates: str | None,
        batches: str | None,
        epochs: str | None,
        epsilons: str | None,
        noises: str | None,
        clips: str | None,
        hidden: str | None,
    ) -> "Lists":
        from sourdine.learning.models import LAYERED

        if (epsilons is None) == (noises is None):
            remedy = "Of a list of both, one would decide the other."
            raise check.fail(
                SWEEP, "epsilon", "be listed, or else 'noise-multiplier', and not both", epsilons, remedy
            )
        if hidden is not None and chosen.kind not in LAYERED:
            raise check.fail(SWEEP, "hidden", f"be left out for the model {chosen.kind}", hidden)
        return cls(
            chosen=chosen,
            rates=_values("learning-rate", rates, Fraction(1, 10**9), 10**6),
            batches=_whole("batch-size", batches, 1 << 40),
            epochs=_whole("epochs", epochs, 1 << 20),
            epsilons=_values("epsilon", epsilons, *EPSILON),
            noises=_values("noise-multiplier", noises, *NOISE),
            clips=_values("clip", clips, Fraction(1, 10**6), 10**6),
            hidden=_whole("hidden", hidden, 1 << 16),
        )

    def settings(self, size: int) -> "tuple[Setting, ...]":
        """Every combination; what is usual may depend on epsilon."""
        from sourdine.learning.sweep.settings import product

        alike: dict[Recipe, list[float]] = {}
        for epsilon in self.epsilons:
            alike.setdefault(self.chosen.recipe(epsilon), []).append(epsilon)
        return tuple(
            setting
            for usual, epsilons in (alike or {self.chosen.recipe(None): []}).items()
            for setting in product(
                learning_rate=self.rates or (usual.learning_rate,),
                batch_size=self.batches or (_usual_batch(usual, size),),
                epochs=self.epochs or (usual.epochs,),
                clip=self.clips or (usual.clip,),
                epsilon=epsilons,
                noise_multiplier=self.noises,
                hidden=self.hidden,
            )
        )


def _usual_batch(usual: "Recipe", size: int) -> int:
    batch = usual.batch_size_for(size)
    if batch is None:
        raise check.fail(
            SWEEP, "batch-size", "be listed for this model", None, "Write --batch-size 256,1024."
        )
    return batch


def _values(name: str, text: str | None, least: Fraction | int, most: Fraction | int) -> tuple[float, ...]:
    """The numbers of a list with commas, none twice."""
    if text is None:
        return ()
    parts = [part.strip() for part in text.split(",")]
    if len(parts) > _MOST_VALUES:
        raise check.fail(SWEEP, name, f"list at most {_MOST_VALUES} values", text)
    numbers = [float(number(SWEEP, name, part, least, most)) for part in parts]
    if len(set(numbers)) < len(numbers):
        raise check.fail(SWEEP, name, "list each value once", text)
    return tuple(numbers)


def _whole(name: str, text: str | None, most: int) -> tuple[int, ...]:
    numbers = _values(name, text, 1, most)
    if any(each != int(each) for each in numbers):
        raise check.fail(SWEEP, name, "list whole numbers", text)
    return tuple(map(int, numbers))
