"""Steps in whole numbers: gradients on a grid, exact lengths, exact sums, and noise rounded exactly.

What a step costs then follows without a word about how floats round (docs/guarantees/learning_methods.md).
"""

from collections.abc import Callable, Mapping
from fractions import Fraction

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.core.random.samplers import rounded_normal
from sourdine.learning.data.places import SeparatePlaces
from sourdine.learning.data.trees import Tree, count_of, made_up
from sourdine.learning.gradients.alone import lacks_memory
from sourdine.learning.gradients.clipping import Clipping
from sourdine.learning.gradients.engine import Engine, Sums
from sourdine.learning.gradients.way import GradientWay, of_each_example

_TURNS = 32  # units for each place of a batch: with fewer, more places stay free
_MOST_NUMBERS = 1 << 26  # of all gradients of a batch


def usual_places(model: nn.Module, batch_size: int) -> int:
    """How many places for units a batch has, by what the gradients of all of them take.

    >>> usual_places(nn.Linear(10, 2), 1024)
    32
    """
    numbers = sum(value.numel() for value in model.parameters() if value.requires_grad)
    return max(1, min(batch_size // _TURNS, _MOST_NUMBERS // max(1, numbers)))


class WholeSums:
    """Takes units in as whole numbers, each at a place of its own in batches of one fixed shape."""

    def __init__(
        self, model: nn.Module, clipping: Clipping, way: GradientWay, places: int, bits: Bits
    ) -> None:
        if way.reason is not None:
            raise InvalidParameter(
                "Exact training takes the gradients of a batch at once, which this model does not allow: "
                f"{way.reason} Train it without 'exact', or mend that."
            )
        self._engine, self._bits = Engine(model, clipping, shared=way.shared), bits
        self._count = places
        self._places: SeparatePlaces | None = None

    def sums(self, losses: Callable[..., Tensor], batch: Tree, examples_per_unit: int) -> "list[Sums]":
        """The clipped gradients of a batch in steps of the grid, in parts.

        Where the model cannot run on a part, its units run one by one where they stand, and a unit on which
        it cannot run alone adds exactly nothing.
        """
        places, sums_of_places = self._placing(batch, examples_per_unit), []
        for some, counted in places.batches(batch, self._bits):
            sums = self._tried(losses, some, counted, examples_per_unit)
            if sums is None:
                alone = (places.alone(some, place) for place in torch.nonzero(counted).flatten().tolist())
                sums_of_places += [self._tried(losses, *each, examples_per_unit) for each in alone]
            else:
                sums_of_places.append(sums)
        return [each for each in sums_of_places if each is not None]

    def check(self, losses: Callable[..., Tensor], like: Tree, examples_per_unit: int) -> None:
        """Refuse a model that computes something else of an example when others stand beside it.

        The first and the last place of a batch of made-up examples are looked at, to the last digit.
        """
        places = self._placing(like, examples_per_unit)
        batch: Tree = tree_map_only(
            Tensor,
            lambda each: each.flip(0) if each.ndim else each,
            made_up(like, places.places * examples_per_unit),
        )
        for place in {0, places.places - 1}:
            beside, _ = places.alone(batch, place)
            gradients = []
            for some in (batch, beside):
                with torch.random.fork_rng():
                    torch.manual_seed(1)  # masks of both are the same, and made-up like the examples
                    gradients.append(self._gradients(losses, some, place, examples_per_unit))
            if any(not torch.equal(gradients[0][name], gradients[1][name]) for name in gradients[0]):
                raise InvalidParameter(
                    "The last digits of an example's gradient depend on the examples beside it, by the model "
                    "or by the libraries that compute it. Exact training then needs a physical_batch_size "
                    "of 1."
                )

    def _gradients(
        self, losses: Callable[..., Tensor], batch: Tree, place: int, examples_per_unit: int
    ) -> Sums:
        return self._engine.gradients_of(
            lambda: of_each_example(losses)(*batch),
            place,
            examples=count_of(batch),
            examples_per_unit=examples_per_unit,
        )

    def _placing(self, like: Tree, examples_per_unit: int) -> SeparatePlaces:
        if self._places is None or self._places.examples_per_unit != examples_per_unit:
            self._places = SeparatePlaces(self._count, examples_per_unit, like)
        return self._places

    def _tried(
        self, losses: Callable[..., Tensor], batch: Tree, counted: Tensor, examples_per_unit: int
    ) -> Sums | None:
        try:
            return self._engine.whole_sum(
                lambda: of_each_example(losses)(*batch),
                examples=count_of(batch),
                examples_per_unit=examples_per_unit,
                strict=False,
                counted=counted,
            )
        except Exception as problem:  # a model may say anything of an example
            if lacks_memory(problem):
                raise
            return None


def add_whole_noise(sums: Sums, sigma: Fraction, wanted: Mapping[str, Tensor], bits: Bits) -> Sums:
    """Whole noise on whole sums, as floats that hold them exactly, by parameter."""
    sizes = [value.numel() for value in wanted.values()]
    noise = torch.from_numpy(rounded_normal(sigma, sum(sizes), bits))
    parts = zip(wanted.items(), torch.split(noise, sizes), strict=True)
    return {
        name: (part.to(value.device) + sums[name] if name in sums else part.to(value.device)).double()
        for (name, value), part in parts
    }
