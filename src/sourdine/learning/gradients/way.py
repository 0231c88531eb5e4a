"""How the clipped sums of a model are taken: all examples at once, or one at a time where that cannot be."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.trees import Tree, count_of
from sourdine.learning.gradients.alone import Alone
from sourdine.learning.gradients.clipping import Clipping, Flat
from sourdine.learning.gradients.engine import Engine, Sums
from sourdine.learning.gradients.entangled import Entangled
from sourdine.learning.gradients.layout import shared_layers


@dataclass(frozen=True)
class GradientWay:
    """How gradients are taken apart by example: found on made-up examples, and so the same for all data.

    - `shared`: layers that are given the same for all examples.
    - `reason`: why examples are run one at a time, or None where they are run at once.
    """

    shared: frozenset[str] = frozenset()
    reason: str | None = None


def way_of(model: nn.Module, losses: Callable[..., Tensor], batch: Tree) -> GradientWay:
    """The way to the gradients of a model, found on a few examples that are nobody's secret.

    What cannot be taken apart, or fails while it is tried, is run one example at a time.
    """
    try:
        way = GradientWay(shared_layers(Engine(model, Flat()).owners, losses, batch))
        ClippedSums(model, Flat(), way).add_up(losses, batch)
    except Entangled as problem:
        return GradientWay(reason=str(problem))
    except RuntimeError:
        return GradientWay(
            reason="A layer is given no axis of examples, and what is made of its outputs leaves no room for "
            "one. Give it one of length 1, first."
        )
    return way


class ClippedSums:
    """Clipped sums of the gradients of one model, in one way."""

    def __init__(self, model: nn.Module, clipping: Clipping, way: GradientWay) -> None:
        self._alone = Alone(model, clipping)
        self._engine = Engine(model, clipping, shared=way.shared)
        self._at_once = way.reason is None

    def clip_by(self, clipping: Clipping) -> None:
        """Go on with another clipping."""
        self._alone.clipping = self._engine.clipping = clipping

    def add_up(
        self, losses: Callable[..., Tensor], batch: Tree, *, examples_per_unit: int = 1, strict: bool = True
    ) -> Sums:
        """The clipped gradients of a batch, added up; `losses` runs the model on the parts of one.

        If not `strict`, no error depends on an example as far as the gradients go: what cannot be taken apart
        at once is run one at a time, and a unit on which that fails adds exactly nothing.
        """
        counted = of_each_example(losses)
        if self._at_once:
            try:
                return self._engine.clipped_sum(
                    lambda: counted(*batch),
                    examples=count_of(batch),
                    examples_per_unit=examples_per_unit,
                    strict=strict,
                )
            except InvalidParameter:
                if strict:
                    raise
        return self._alone.clipped_sum(counted, batch, examples_per_unit=examples_per_unit, strict=strict)


def of_each_example(losses: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same losses, refused unless there is one for each example."""

    def run(*batch: object) -> Tensor:
        each, count = losses(*batch), count_of(batch)
        if each.ndim == 1 and len(each) != count:
            raise InvalidParameter(
                f"The losses are {len(each):,} numbers for {count:,} examples. There must be one for "
                "each, or parts of an example are clipped on their own. Take the mean over its places."
            )
        return each

    return run
