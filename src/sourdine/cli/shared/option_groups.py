"""Groups of options that several commands share: a dataclass whose fields typer shows one by one."""

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import get_type_hints

Command = Callable[..., None]


def with_groups(command: Command) -> Command:
    """A command for typer, where each parameter that is a dataclass stands for the options in its fields.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Batches:
    ...     size: int = 64
    >>> @with_groups
    ... def train(*, batches: Batches, epochs: int = 1) -> None:
    ...     print(batches.size * epochs)
    >>> list(inspect.signature(train).parameters)
    ['size', 'epochs']
    >>> train(size=10, epochs=3)
    30
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    shown: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        shown += _options(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]

    @wraps(command)
    def grouped(**values: object) -> None:
        for name, kind in groups.items():
            values[name] = kind(
                **{each.name: values.pop(each.name) for each in fields(kind) if each.name in values}
            )
        command(**values)

    grouped.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    grouped.__annotations__ = {each.name: each.annotation for each in shown}
    del grouped.__wrapped__
    return grouped


def _options(kind: type) -> list[inspect.Parameter]:
    """The fields of a group as parameters that are given by name."""
    hints = get_type_hints(kind, include_extras=True)
    return [
        inspect.Parameter(
            each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=hints[each.name]
        )
        for each in fields(kind)
    ]
