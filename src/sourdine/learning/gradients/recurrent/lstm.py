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
        outputs, back = torch.empty_like(shown), across.t()
        cells[0] = c
        for t in range(steps):
            now = gates[t].addmm_(h, back)
            now[:, : 2 * size].sigmoid_()
            candidate = now[:, 2 * size : 3 * size].tanh_()
            now[:, 3 * size :].sigmoid_()
            torch.mul(now[:, size : 2 * size], cells[t], out=cells[t + 1])
            cells[t + 1].addcmul_(now[:, :size], candidate)
            torch.tanh(cells[t + 1], out=shown[t])
            h = torch.mul(now[:, 3 * size :], shown[t], out=outputs[t])
        ctx.save_for_backward(gates, cells, shown, across)
        return outputs, cells[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, at_outputs: Tensor, at_cell: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        gates, cells, shown, across = ctx.saved_tensors
        steps, examples, size = shown.shape
        taken, keep, candidate, open_ = gates.view(steps, examples, 4, size).unbind(2)
        # how a change before each gate moves the cell, and one of the output moves the last gate and the cell
        factors = torch.stack(
            (candidate * _slope(taken), cells[:-1] * _slope(keep), taken * (1 - candidate.square())),
            dim=2,
        )
        by_gate, by_cell = shown * _slope(open_), open_ * (1 - shown.square())
        at_gates = gates.new_empty(steps, examples, 4, size)
        dc, dh = at_cell.clone(), torch.zeros_like(at_cell)
        for t in range(steps - 1, -1, -1):
            dh = dh.add_(at_outputs[t])
            dc.addcmul_(dh, by_cell[t])
            torch.mul(dc.unsqueeze(1), factors[t], out=at_gates[t, :, :3])
            torch.mul(dh, by_gate[t], out=at_gates[t, :, 3])
            dc.mul_(keep[t])
            dh = torch.mm(at_gates[t].view(examples, -1), across)
        return at_gates.view(steps, examples, -1), dh, dc, None


def lstm_steps(inner: Tensor, h: Tensor, c: Tensor, across: Tensor) -> tuple[Tensor, Tensor]:
    """What `LstmSteps` gives."""
    outputs, cell = LstmSteps.apply(inner, h, c, across)  # type: ignore[no-untyped-call]
    return outputs, cell


def _slope(gate: Tensor) -> Tensor:
    """Of the sigmoid, where it gave this."""
    return gate * (1 - gate)
