"""Which public callables take numbers: found by introspection, so that a new one cannot be forgotten."""

import inspect
from collections.abc import Callable, Iterator
from fractions import Fraction
from importlib import import_module
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

ROOMS = (
    "core.distance",
    "core.loss",
    "accounting",
    "accounting.explain",
    "mechanisms",
    "local",
    "local.words",
    "anonymity",
    "tables",
    "frames",
    "audit",
    "learning",
)
_HERE = {"core.distance": ("Distance",), "core.loss": ("PrivacyLoss",)}


def public_callables() -> dict[str, tuple[str, ...]]:
    """The name of every public function, class and method that takes numbers, and which parameters do."""
    found: dict[str, tuple[str, ...]] = {}
    for room in ROOMS:
        module = import_module(f"sourdine.{room}")
        for name in _HERE.get(room) or module.__all__:
            for one in _callables(getattr(module, name)):
                if numbers := tuple(_numbers(one)):
                    found.setdefault(_name(one), numbers)
    return found


def _callables(thing: Any) -> Iterator[Callable[..., object]]:
    """A function; a class that can be made, and its public methods."""
    if not callable(thing) or not thing.__module__.startswith("sourdine."):
        return
    if not inspect.isclass(thing):
        yield thing
        return
    if not inspect.isabstract(thing):
        yield thing
    for name, member in inspect.getmembers(thing):
        ours = (inspect.isfunction(member) or inspect.ismethod(member)) and not name.startswith("_")
        if (
            ours
            and member.__module__.startswith("sourdine.")
            and not getattr(member, "__isabstractmethod__", False)
        ):
            yield member


def _numbers(one: Any) -> Iterator[str]:
    if hasattr(one, "model_fields"):
        hints = {name: field.annotation for name, field in one.model_fields.items()}
    else:
        called = one.__init__ if inspect.isclass(one) else one
        try:
            hints = get_type_hints(called)
        except NameError:  # some are written as texts, of what is loaded late or is optional
            hints = inspect.get_annotations(called)
    for name in hints:
        if name != "return" and _is_number(hints[name]):
            yield name


def _is_number(hint: object) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return any(map(_is_number, get_args(hint)))
    return hint in (int, float, Fraction)


def _name(one: Any) -> str:
    return f"{one.__module__.split('.')[1]}.{one.__qualname__}"
