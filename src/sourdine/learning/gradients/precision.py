"""Clipped sums and noise in all digits of their type, whatever the caller's loop has switched on."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

_FULL = ("ieee", "none")  # what torch calls products of float32 in float32


@contextmanager
def full_precision(device: torch.device) -> Iterator[None]:
    """Let products of float32 be computed in float32 while the block lasts.

    Under autocast, or with TF32 or bfloat16 allowed for products, a clipped gradient would be rounded after
    its norm was taken, to more than the clipping norm, and a sum by more than one example may move it. What
    the model computes in is its own affair; norms, weighted sums and noise are ours.
    """
    with ExitStack() as stack:
        for kind in {"cpu", device.type}:
            if torch.is_autocast_enabled(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        if not hasattr(torch.backends, "fp32_precision"):  # before torch 2.9
            before = torch.get_float32_matmul_precision()
            if before != "highest":
                torch.set_float32_matmul_precision("highest")
                stack.callback(torch.set_float32_matmul_precision, before)
            yield
            return
        for products in (torch.backends.cuda.matmul, torch.backends.mkldnn.matmul):  # type: ignore[attr-defined]
            allowed = products.fp32_precision
            if allowed not in _FULL:
                products.fp32_precision = "ieee"
                stack.callback(setattr, products, "fp32_precision", allowed)
        yield
