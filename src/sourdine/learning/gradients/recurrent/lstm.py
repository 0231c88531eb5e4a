"""The steps of an LSTM as one function of what its inputs came to, with a backward pass of its own.

Autograd would make a dozen nodes a step. What a step back multiplies by is known for all steps beforehand, so
a few operations are left for each: those in which one step needs another.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class LstmSteps(torch.autograd.Function):
    """Outputs and the last cell from `inner`, what the inputs of all steps came to: step, example, gate.

    The gradient at `inner` is that before the gates, at which the gradients of all parameters hang. Gates are
    in torch's order: taken in, kept, candidate, shown.
    """

    @staticmethod
    def forward(ctx: Any, inner: Tensor, h: Tensor, c: Tensor, across: Tensor) -> tuple[Tensor, Tensor]:
        steps, examples, size = len(inner), inner.shape[1], h.shape[1]
        gates = inner.clone(memory_format=torch.contiguous_format)
        cells, shown = inner.new_empty(steps + 1, examples, size), inner.new_empty(steps, examples, size)
        outputs, candidates, back = torch.empty_like(shown), torch.empty_like(shown), across.t()
        cells[0] = c
        # all views at once: made in turn they take as long as the arithmetic of small layers
        now, before, after, tanh, out = (each.unbind(0) for each in (gates, cells, cells[1:], shown, outputs))
        taken, keep, before_tanh, open_ = (each.unbind(0) for each in gates.chunk(4, dim=2))
        both, candidate = gates[:, :, : 2 * size].unbind(0), candidates.unbind(0)
        for t in range(steps):
            now[t].addmm_(h, back)
            both[t].sigmoid_()
            # of a part of each row it takes twice as long
            torch.tanh(before_tanh[t].contiguous(), out=candidate[t])
            open_[t].sigmoid_()
            torch.mul(keep[t], before[t], out=after[t])
            after[t].addcmul_(taken[t], candidate[t])
            torch.tanh(after[t], out=tanh[t])
            h = torch.mul(open_[t], tanh[t], out=out[t])
        ctx.save_for_backward(gates, cells, shown, candidates, across)
        return outputs, cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, at_outputs: Tensor, at_cell: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        gates, cells, shown, candidate, across = ctx.saved_tensors
        steps, examples, size = shown.shape
        taken, keep, _, open_ = gates.view(steps, examples, 4, size).unbind(2)
        # how a change before each gate moves the cell, and one of the output moves the last gate and the cell
        factors = torch.stack(
            (candidate * _slope(taken), cells[:-1] * _slope(keep), taken * (1 - candidate.square())),
            dim=2,
        )
        by_gate, by_cell = shown * _slope(open_), open_ * (1 - shown.square())
        at_gates = gates.new_empty(steps, examples, 4, size)
        dc, dh = at_cell.clone(), at_outputs[-1].clone() if steps else torch.zeros_like(at_cell)
        at_three, at_last = at_gates[:, :, :3].unbind(0), at_gates[:, :, 3].unbind(0)
        at_all, wide = at_gates.view(steps, examples, -1).unbind(0), dc.unsqueeze(1)
        views = (each.unbind(0) for each in (at_outputs, by_cell, by_gate, factors, keep))
        at_output, cell_by, gate_by, factor, forget = views
        for t in range(steps - 1, -1, -1):
            dc.addcmul_(dh, cell_by[t])
            torch.mul(wide, factor[t], out=at_three[t])
            torch.mul(dh, gate_by[t], out=at_last[t])
            dc.mul_(forget[t])
            if t:
                torch.addmm(at_output[t - 1], at_all[t], across, out=dh)
            else:
                torch.mm(at_all[t], across, out=dh)
        return at_gates.view(steps, examples, -1), dh, dc, None


def lstm_steps(inner: Tensor, h: Tensor, c: Tensor, across: Tensor) -> tuple[Tensor, Tensor]:
    """What `LstmSteps` gives."""
    outputs, cell = LstmSteps.apply(inner, h, c, across)  # type: ignore[no-untyped-call]
    return outputs, cell


def _slope(gate: Tensor) -> Tensor:
    """Of the sigmoid, where it gave this."""
    return gate * (1 - gate)
