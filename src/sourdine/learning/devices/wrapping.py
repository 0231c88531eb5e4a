"""Models as other parts of torch wrap them: for several processes, or compiled.

Gradients of single examples are noted layer by layer while a model runs. What wraps it would add up gradients
over processes without noise, or run all layers as one compiled function, so meanwhile the model inside is
called instead.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from sourdine.core.errors import InvalidParameter
from sourdine.learning.devices.processes import ALONE, Processes, begun

_COMPILED = "_orig_mod"  # as torch.compile names the module that it wraps


def unwrap(model: nn.Module, processes: Processes | None = None) -> tuple[nn.Module, Processes]:
    """The model inside what wraps it, and the processes that train it together.

    A DistributedDataParallel says by itself which. Where torch.distributed runs with several and nobody says
    whether they train one model, it is asked for.

    >>> model = nn.Linear(1, 1)
    >>> unwrap(model) == (model, ALONE)
    True
    """
    inner = model
    while (wrapped := _inside(inner)) is not None:
        if isinstance(inner, DistributedDataParallel) and processes is None:
            processes = Processes(inner.process_group)
        inner = wrapped
    _check_numbers(inner)
    if processes is None:
        if begun() and Processes().several:
            raise InvalidParameter(
                "torch.distributed runs with several processes here, and nobody said whether they train this "
                "model together. Pass processes=sourdine.learning.Processes() if they do, to fit in its "
                "Execution; processes=sourdine.learning.ALONE if this one trains a model of its own."
            )
        processes = ALONE
    return inner, processes


def _inside(model: nn.Module) -> nn.Module | None:
    if isinstance(model, nn.DataParallel):
        raise InvalidParameter(
            "A DataParallel copies the model to other devices in every call, where no gradient of an example "
            "is seen. Pass model.module, and start one process for each device "
            "(sourdine.learning.Processes)."
        )
    if isinstance(model, DistributedDataParallel):
        inner: nn.Module = model.module
        return inner
    compiled = model._modules.get(_COMPILED)
    return compiled if compiled is not None and _is_compiled(model) else None


def _is_compiled(model: nn.Module) -> bool:
    return type(model).__name__ == "OptimizedModule"


def _check_numbers(model: nn.Module) -> None:
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if value.is_meta:
            raise InvalidParameter(
                f"The model has no numbers yet: '{name}' is on the device 'meta'. Make it with "
                "model.to_empty(device='cpu') and initialise it, or load_state_dict(..., assign=True)."
            )
        if type(value.data) is not Tensor and hasattr(value, "placements"):
            raise InvalidParameter(
                f"The parameter '{name}' is cut into pieces over several processes, where no norm of a "
                "gradient is seen whole. Train with DistributedDataParallel, which keeps it whole."
            )


@contextmanager
def plain_calls(model: nn.Module) -> Iterator[None]:
    """Let a wrapped model, and compiled parts of it that are trained, run layer by layer meanwhile.

    Compiled parts whose parameters are all frozen stay compiled.
    """
    with ExitStack() as stack:
        for layer in model.modules():
            if isinstance(layer, DistributedDataParallel):
                stack.enter_context(_put(layer, "forward", layer.module.__call__))
                continue
            called = layer.__dict__.get("_compiled_call_impl") is not None
            if (called or _is_compiled(layer)) and any(value.requires_grad for value in layer.parameters()):
                if _is_compiled(layer) and (inner := layer._modules[_COMPILED]) is not None:
                    stack.enter_context(_put(layer, "forward", inner.__call__))
                if called:
                    stack.enter_context(_put(layer, "_compiled_call_impl", None))
        yield


@contextmanager
def _put(layer: nn.Module, name: str, value: object) -> Iterator[None]:
    """Give an attribute of a layer another value meanwhile."""
    there, before = name in layer.__dict__, layer.__dict__.get(name)
    layer.__dict__[name] = value
    try:
        yield
    finally:
        if there:
            layer.__dict__[name] = before
        else:
            del layer.__dict__[name]
