"""Where a model is trained and in which numbers, as a user states them."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sourdine.core import check
from sourdine.core.errors import InvalidParameter

META = "meta"  # the device of torch without numbers: shapes alone
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float64": torch.float64}


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one core: with small tensors, threads wait for each other longer than they work."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A device, and the numbers that a model computes in; where the model is and as it is, unless told.

    With bfloat16 the parameters are float32 and the layers compute in bfloat16, by torch's autocast. Clipped
    sums and noise are float32 in any case.

    >>> Placement(dtype="bfloat16").autocast
    torch.bfloat16
    """

    device: torch.device | str | None = None
    dtype: torch.dtype | str | None = None

    def __post_init__(self) -> None:
        check.keep(self, device=_device(self.device), dtype=_dtype(self.dtype))

    @property
    def autocast(self) -> torch.dtype | None:
        """What layers compute in, if it is not what their parameters are made of."""
        return torch.bfloat16 if self.dtype == torch.bfloat16 else None

    @property
    def without_numbers(self) -> bool:
        """Whether there is no device, but only shapes."""
        return isinstance(self.device, torch.device) and self.device.type == META

    def copy_of(self, model: nn.Module) -> nn.Module:
        """A copy of a model there, to forecast with; one without numbers gets some, in memory."""
        if self.without_numbers or any(value.is_meta for value in model.parameters()):
            where = None if self.without_numbers else self.device
            return Placement(device=where, dtype=self.dtype).put(_with_numbers(model))
        return self.put(copy.deepcopy(model))

    def put(self, model: nn.Module) -> nn.Module:
        """Move a model there, in place."""
        if isinstance(self.dtype, torch.dtype):
            model = model.to(torch.float64 if self.dtype == torch.float64 else torch.float32)
        if isinstance(self.device, torch.device):
            try:
                torch.empty(1, device=self.device)
            except (AssertionError, NotImplementedError, RuntimeError) as problem:
                raise InvalidParameter(
                    f"There is no device {self.device} here: {str(problem).splitlines()[0].rstrip('. ')}. "
                    "Nothing was paid for. Take device='cpu', or install a torch that knows it."
                ) from problem
            model = model.to(self.device)
        return model


def _with_numbers(model: nn.Module) -> nn.Module:
    """A copy with made-up numbers for those that are missing: what a step takes depends on shapes alone."""
    model, source = copy.deepcopy(model), torch.Generator().manual_seed(1)
    substitutes: dict[int, Tensor] = {}  # one for all places of what is shared

    def number(value: Tensor) -> Tensor:
        if id(value) not in substitutes:
            real = torch.zeros_like(value, device="cpu")
            if real.is_floating_point():
                real.data.normal_(0, 0.02, generator=source)
            substitutes[id(value)] = (
                nn.Parameter(real, value.requires_grad) if isinstance(value, nn.Parameter) else real
            )
        return substitutes[id(value)]

    for layer in model.modules():
        for values in (layer._parameters, layer._buffers):
            for name, value in values.items():
                if value is not None and value.is_meta:
                    values[name] = number(value)  # type: ignore[assignment]
    return model


def _device(device: object) -> torch.device | None:
    if device is None or isinstance(device, torch.device):
        return device
    try:
        return torch.device(device)  # type: ignore[call-overload, no-any-return]
    except (RuntimeError, TypeError):
        remedy = "Write cpu, cuda or cuda:1."
        raise check.fail("Execution", "device", "be a device of torch", device, remedy) from None


def _dtype(dtype: object) -> torch.dtype | None:
    known = _DTYPES.get(dtype) if isinstance(dtype, str) else dtype
    if dtype is None or known in _DTYPES.values():
        return known  # type: ignore[return-value]
    remedy = (
        "Gradients of one example are too small for float16, or too large: take bfloat16."
        if dtype in (torch.float16, "float16", "half")
        else ""
    )
    raise check.fail("Execution", "dtype", f"be one of {', '.join(_DTYPES)}", dtype, remedy)
