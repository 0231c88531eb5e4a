"""Models that draw at random while they train: what must hold of them, and how they are kept from drawing."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.trees import Tree, count_of
from sourdine.learning.model_state import StateSnapshot

RANDOM_INSIDE = (nn.MultiheadAttention, nn.RNNBase)
_RANDOM = (nn.modules.dropout._DropoutNd,)
_FULL = 1e-3  # what a loss in a large batch may be off by
_FULL_AGAIN = 1e-2  # with trained weights
_FINER = 64  # the same examples at the same places of the same shape differ by far less than other shapes do


def silence(model: nn.Module, losses: Callable[..., Tensor], batch: Tree, tolerance: float) -> None:
    """Let a model draw nothing at random: dropout draws otherwise for a batch than for its examples.

    Other layers stay as they train if they can: one may mix examples in training alone. Where they cannot,
    it is tried first that they do not, as the model trains and with the same draws.
    """

    def run() -> Tensor:
        return losses(*batch)

    if not _draws(run):
        return
    for layer in model.modules():
        if isinstance(layer, _RANDOM):
            layer.training = False
        elif isinstance(layer, RANDOM_INSIDE):
            layer.dropout = 0.0
    if not _draws(run):
        return
    _check_draws(model, losses, batch, tolerance / _FINER)
    model.eval()
    if _is_random(run):
        raise InvalidParameter(
            "The model or its loss draws at random even when the model evaluates, so its gradients cannot be "
            "tested. Draw only where self.training is true: to torch.nn.functional.dropout, pass "
            "training=self.training."
        )


def _draws(run: Callable[[], Tensor]) -> bool:
    """Whether something is drawn, be it so seldom that it changes nothing this time."""
    before = torch.get_rng_state()
    return _is_random(run) or not torch.equal(before, torch.get_rng_state())


def _is_random(run: Callable[[], Tensor]) -> bool:
    with torch.no_grad():
        return not torch.allclose(run(), run(), rtol=0, atol=0, equal_nan=True)


def _check_draws(model: nn.Module, losses: Callable[..., Tensor], batch: Tree, tolerance: float) -> None:
    """Refuse a model in which, for the same draws, one example moves the loss or the gradient of another."""
    trained = [value for value in model.parameters() if value.requires_grad]

    def drawn(some: Tree, place: int) -> tuple[Tensor, list[Tensor]]:
        torch.manual_seed(1)  # of all devices; the caller keeps what was
        each = losses(*some)
        gradients: Sequence[Tensor | None] = torch.autograd.grad(each[place], trained, allow_unused=True)
        return each.detach(), [one.to_dense() for one in gradients if one is not None and one.numel()]

    count = count_of(batch)
    for place in (0, count - 1):
        each, gradients = drawn(batch, place)
        again, _ = drawn(batch, place)
        if not _close([each], [again], tolerance):
            raise InvalidParameter(
                "The model or its loss gives other numbers for the same examples and draws of torch. "
                "Either it keeps something from one call to the next, by which people move the gradients of "
                "others, or it draws from numpy, random or a generator of its own, which others may foresee. "
                "Keep nothing, and draw by torch.rand, nn.Dropout and the like: they get secret bits here."
            )
        others, theirs = drawn(_repeated(batch, place, count), place)
        if not (_close([each[place]], [others[place]], tolerance) and _close(gradients, theirs, tolerance)):
            raise InvalidParameter(
                "What the model makes of one example while it trains depends on the others in its batch, so "
                "that no gradient belongs to one person alone. Take out what mixes them (means over the "
                "first axis, mixup), or what lets one example have more random draws than another."
            )


def full_batch(batch_size: int, physical_batch_size: int | None) -> int:
    """How many units may be computed at once: batches that are drawn are seldom twice as large as usual."""
    most = 2 * batch_size + 16
    return most if physical_batch_size is None else min(physical_batch_size, most)


def check_full_batch(
    model: nn.Module, losses: Callable[..., Tensor], batch: Tree, *, again: bool = False
) -> None:
    """Refuse losses that in a batch as large as a run has them depend on the other examples.

    A few examples do not show what is done from some size on. Draws are the same, and no gradients are made.
    All places are looked at: in the batch in another order, and in one where all examples are the same, so
    that whatever has room for a part of the batch alone, as an expert may, has too little.
    """
    count = count_of(batch)
    state = StateSnapshot(model, losses)
    with torch.no_grad(), torch.random.fork_rng(), state.stand_ins(batch):
        try:
            for place in (0, count - 1):
                loss, other = (
                    _drawn_losses(losses, some)[place] for some in (batch, _repeated(batch, place, count))
                )
                _check_alike(loss.reshape(1), other.reshape(1), count, again)
            with _silenced(model):
                _check_places(losses, batch, again)
        finally:
            state.put_back()


def _check_places(losses: Callable[..., Tensor], batch: Tree, again: bool) -> None:
    """Compare the losses of all places with those in other orders, unless something is drawn by place."""
    count = count_of(batch)
    before = torch.get_rng_state()
    whole = losses(*batch)
    if not torch.equal(before, torch.get_rng_state()):
        return
    for order in (
        torch.arange(count).flip(0),
        torch.randperm(count, generator=torch.Generator().manual_seed(2)),
    ):
        moved = losses(*_at(batch, order))
        _check_alike(whole[order.to(whole.device)], moved, count, again)
    same = losses(*_repeated(batch, 0, count))
    _check_alike(same[:1].expand(count), same, count, again)


@contextmanager
def _silenced(model: nn.Module) -> Iterator[None]:
    """Let dropout draw nothing meanwhile."""
    modes = [(layer, layer.training) for layer in model.modules() if isinstance(layer, _RANDOM)]
    shares = [(layer, layer.dropout) for layer in model.modules() if isinstance(layer, RANDOM_INSIDE)]
    try:
        for layer, _ in modes:
            layer.training = False
        for inside, _ in shares:
            inside.dropout = 0.0
        yield
    finally:
        for layer, mode in modes:
            layer.training = mode
        for inside, share in shares:
            inside.dropout = share


def _check_alike(some: Tensor, others: Tensor, count: int, again: bool) -> None:
    if not bool((some.isfinite() & others.isfinite()).all()):  # of which no difference tells anything
        if again:
            return
        raise InvalidParameter(
            f"In a batch of {count:,} made-up examples a loss is not finite, so that nothing shows "
            "whether the loss of one depends on the others. Let losses be finite for such examples, "
            "or pass a smaller physical_batch_size."
        )
    if bool(((some - others).abs() > (_FULL_AGAIN if again else _FULL) * some.abs().clamp(min=1.0)).any()):
        raise InvalidParameter(
            f"In a batch of {count:,} examples the loss of one depends on the others, so that no "
            "gradient belongs to one person alone, though among a few it does not. Take out what "
            "mixes them, or pass a smaller physical_batch_size."
        )


def _drawn_losses(losses: Callable[..., Tensor], batch: Tree) -> Tensor:
    torch.manual_seed(1)  # of all devices; the caller keeps what was
    return losses(*batch).detach()


def _repeated(batch: Tree, place: int, count: int) -> Tree:
    """A batch in which all are the example at one place."""
    return _at(batch, torch.full((count,), place))


def _at(batch: Tree, places: Tensor) -> Tree:
    """The examples of a batch at some places."""
    moved: Tree = tree_map_only(
        Tensor, lambda each: each[places.to(each.device)] if each.ndim else each, batch
    )
    return moved


def _close(some: Sequence[Tensor], others: Sequence[Tensor], tolerance: float) -> bool:
    """Whether numbers differ by less than a part of the largest of them."""
    if len(some) != len(others):
        return False
    most = tolerance * max((float(each.abs().max()) for each in some), default=0.0)
    return all(float((a - b).abs().max()) <= most for a, b in zip(some, others, strict=True))
