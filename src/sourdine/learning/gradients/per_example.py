"""The gradients of one parameter for each example of a batch, kept as products if they are large.

Clipping needs the norm of every example's gradient, and training needs a weighted sum of them. Both can be
had from the inputs of a layer and the gradients at its outputs (Goodfellow 2015; Bu, Wang, Zha, Karypis
2023), so that the gradients themselves, one copy of the parameter for each example, need not exist. Where
they are hardly larger than what they are made of, and it is quicker (`cost`), they are made once: the sum
then weighs the very numbers that were measured.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property, reduce

import torch
from torch import Tensor
from torch.nn import functional

from sourdine.learning.gradients import cost

_CHUNK = 1 << 20  # numbers that are made at a time where all at once would not stay in the cache
_BLOCK = 512
_THIN = 16  # inputs up to which a product is several times as quick the other way round
_CANCELLED = 2.0**-9  # of the length of all terms: what counts as norm where they cancel to less
_HUGE = 2.0**64  # a factor that is longer counts as infinite, as its square is in float32
_ROUNDED = {torch.float32: 2.0**-24, torch.float64: 2.0**-53}  # the most that one operation is off by


class PerExample(ABC):
    """Gradients of one parameter, one for each example."""

    @abstractmethod
    def squares(self) -> Tensor:
        """The squared Euclidean norm of each, a row of numbers."""

    @abstractmethod
    def weighted(self, weights: Tensor) -> Tensor:
        """Their sum, each times its weight, shaped like the parameter."""

    @abstractmethod
    def whole(self) -> Tensor:
        """All of them, the first axis counting examples."""

    @abstractmethod
    def merged(self, size: int) -> "PerExample":
        """The sums over so many examples in a row, which belong to one person."""

    @abstractmethod
    def without(self, left_out: Tensor) -> "PerExample":
        """The same, but exactly zero for some examples, whatever their numbers were."""


class GradientRows(PerExample):
    """Gradients that are there: those of small parameters."""

    def __init__(self, gradients: Tensor) -> None:
        self._gradients = gradients

    def squares(self) -> Tensor:
        return _squares(self._gradients.reshape(len(self._gradients), -1))

    def weighted(self, weights: Tensor) -> Tensor:
        total: Tensor = torch.tensordot(weights.to(self._gradients.dtype), self._gradients, dims=1)
        return total

    def whole(self) -> Tensor:
        return self._gradients

    def merged(self, size: int) -> PerExample:
        return GradientRows(self._gradients.reshape(-1, size, *self._gradients.shape[1:]).sum(1))

    def without(self, left_out: Tensor) -> PerExample:
        return GradientRows(_zeroed(self._gradients, left_out))


class Outer(PerExample):
    """Gradients that are sums over places t of g_t a_t^T: those of matrices, in groups that do not mix.

    `a` has the axes example, group, place, input and `g` example, group, place, output; the parameter has
    groups * outputs rows of inputs.
    """

    def __init__(self, a: Tensor, g: Tensor, shape: torch.Size) -> None:
        self.a, self.g, self.shape = a, g, shape

    def squares(self) -> Tensor:
        if self.a.shape[2] == 1:
            return (_normal_squares(self.a.flatten(2)) * _normal_squares(self.g.flatten(2))).sum(1)
        examples, groups, places, inputs = self.a.shape
        size = max(1, _CHUNK // (groups * places * (inputs + self.g.shape[3] + places)))
        off = (places + 8) * _ROUNDED[self.a.dtype]
        parts = [
            _squares_of_products(
                self.a[start : start + size].double(), self.g[start : start + size].double(), off
            )
            for start in range(0, examples, size)
        ]
        return torch.cat(parts).to(self.a.dtype)

    def weighted(self, weights: Tensor) -> Tensor:
        groups, inputs, outputs = self.a.shape[1], self.a.shape[3], self.g.shape[3]
        scaled = self.g * weights.to(self.g.dtype)[:, None, None, None]
        left = scaled.permute(1, 3, 0, 2).reshape(groups, outputs, -1)
        right = self.a.transpose(0, 1).reshape(groups, -1, inputs)
        return torch.bmm(left, right).reshape(self.shape)

    def whole(self) -> Tensor:
        if self.a.shape[3] <= _THIN:
            turned = torch.matmul(self.a.transpose(2, 3), self.g)
            return turned.transpose(2, 3).reshape(-1, *self.shape)
        return torch.matmul(self.g.transpose(2, 3), self.a).reshape(-1, *self.shape)

    def merged(self, size: int) -> PerExample:
        a, g = (
            each.reshape(-1, size, *each.shape[1:]).transpose(1, 2).flatten(2, 3) for each in (self.a, self.g)
        )
        return Outer(a, g, self.shape)

    def without(self, left_out: Tensor) -> PerExample:
        return Outer(_zeroed(self.a, left_out), _zeroed(self.g, left_out), self.shape)


class Lookup(PerExample):
    """Gradients of a table that is looked up: g_t is added to row i_t, and some row gets none."""

    def __init__(self, indices: Tensor, g: Tensor, rows: int, without: int | None = None) -> None:
        self._i, self._rows = indices.reshape(len(indices), -1).long(), rows
        g = g.reshape(*self._i.shape, g.shape[-1])
        self._g = g if without is None else g.masked_fill((self._i == without).unsqueeze(-1), 0)

    @cached_property
    def _sums(self) -> tuple[Tensor, Tensor, Tensor]:
        """Whose each changed row is, which row it is, and the change."""
        examples = torch.arange(len(self._i), device=self._i.device).unsqueeze(1)
        keys, place = torch.unique(self._i + examples * self._rows, return_inverse=True)
        sums = self._g.new_zeros(len(keys), self._g.shape[-1])
        sums.index_add_(0, place.flatten(), self._g.flatten(0, 1))
        return keys // self._rows, keys % self._rows, sums

    def squares(self) -> Tensor:
        owner, _, sums = self._sums
        return sums.new_zeros(len(self._i)).index_add_(0, owner, _squares(sums))

    def weighted(self, weights: Tensor) -> Tensor:
        owner, row, sums = self._sums
        out = sums.new_zeros(self._rows, sums.shape[1])
        return out.index_add_(0, row, sums * weights.to(sums.dtype)[owner].unsqueeze(1))

    def whole(self) -> Tensor:
        owner, row, sums = self._sums
        out = sums.new_zeros(len(self._i), self._rows, sums.shape[1])
        out[owner, row] = sums
        return out

    def merged(self, size: int) -> PerExample:
        return Lookup(self._i.reshape(-1, size * self._i.shape[1]), self._g.flatten(0, 1), self._rows)

    def without(self, left_out: Tensor) -> PerExample:
        return Lookup(self._i, _zeroed(self._g, left_out), self._rows)

    def as_outer(self) -> Outer:
        """The same as products: the row of a table is its product with a unit vector."""
        chosen = functional.one_hot(self._i, self._rows).to(self._g.dtype)
        return Outer(self._g.unsqueeze(1), chosen.unsqueeze(1), torch.Size((self._rows, self._g.shape[-1])))


def products(a: Tensor, g: Tensor, shape: torch.Size) -> PerExample:
    """Gradients that are sums of products (`Outer`), made whole if that is quicker."""
    outer = Outer(a, g, shape)
    use = cost.MatrixUse(a.shape[0], a.shape[1], a.shape[2], a.shape[3], g.shape[3])
    return GradientRows(outer.whole()) if cost.quickest(use) is cost.Route.COPIES else outer


def together(parts: Sequence[PerExample]) -> PerExample:
    """The gradients of a parameter that is used several times: their sum, cross terms and all."""
    if len(parts) == 1:
        return parts[0]
    if any(isinstance(part, Outer) for part in parts):
        parts = [part.as_outer() if isinstance(part, Lookup) else part for part in parts]
    outer = [part for part in parts if isinstance(part, Outer)]
    if len(outer) == len(parts) and len({(part.shape, part.a.shape[1]) for part in outer}) == 1:
        a = torch.cat([part.a for part in outer], dim=2)
        g = torch.cat([part.g for part in outer], dim=2)
        return Outer(a, g, outer[0].shape)
    return GradientRows(reduce(torch.add, (part.whole() for part in parts)))


def _squares(rows: Tensor) -> Tensor:
    """Squared norms along the last axis, in blocks: torch adds up long rows so simply that rounding shows."""
    whole = rows.shape[-1] // _BLOCK * _BLOCK
    rest = _short_squares(rows[..., whole:])
    if not whole:
        return rest
    return rest + _short_squares(rows[..., :whole].reshape(*rows.shape[:-1], -1, _BLOCK)).sum(-1)


def _normal_squares(rows: Tensor) -> Tensor:
    """The same, but no less than floats hold with all their digits: 0 times something huge may be large."""
    return _squares(rows).clamp(min=rows.shape[-1] * torch.finfo(rows.dtype).tiny)


def _short_squares(rows: Tensor) -> Tensor:
    norms: Tensor = torch.linalg.vector_norm(rows, dim=-1)
    return norms.square()


def _squares_of_products(a: Tensor, g: Tensor, off: float) -> Tensor:
    """An upper bound of |sum of g_t a_t^T|^2 = sum over s, t of (a_s . a_t)(g_s . g_t), as added up later.

    Terms may cancel almost wholly, and what floats then leave of them in the weighted sum is rounding. In
    whatever order n products are scaled and added up, each entry is off by at most (n + 2) roundings of the
    sum of their absolute values, so the whole is off by that part of the length of all terms together
    (Higham 2002, section 3.1). It is added to the norm, `off` being that part with room for the roundings
    here. And no norm is taken to be below a fixed part of that length, so that an example that cancels can
    not fill the sum with the rounding of huge terms, which others would then move.
    """
    inputs, outputs = torch.matmul(a, a.transpose(2, 3)), torch.matmul(g, g.transpose(2, 3))
    long, wide = inputs.diagonal(dim1=2, dim2=3).sqrt(), outputs.diagonal(dim1=2, dim2=3).sqrt()
    lengths = (long * wide).sum(2)
    exact = (inputs * outputs).sum((2, 3)).clamp(min=0.0)
    terms = a.shape[3] + g.shape[3] + a.shape[2] ** 2
    exact += terms * _ROUNDED[a.dtype] * lengths.square()  # which this sum may be off by itself
    norms = torch.maximum(exact.sqrt() + off * lengths, _CANCELLED * lengths)
    huge = (long > _HUGE) | (wide > _HUGE)
    return norms.masked_fill(huge.any(2), torch.inf).square().sum(1)


def _zeroed(rows: Tensor, left_out: Tensor) -> Tensor:
    return rows.masked_fill(left_out.reshape(-1, *[1] * (rows.ndim - 1)), 0)
