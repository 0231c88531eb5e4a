"""What there is to audit: the examples of every mechanism of the package."""

import dataclasses
import difflib
from fractions import Fraction
from importlib import import_module
from inspect import isabstract

from sourdine.core import check
from sourdine.core.distance import Norm
from sourdine.core.mechanism import Example, Mechanism

_ROOMS = ("mechanisms", "tables.quantiles", "local", "local.rappor")


def kinds() -> dict[str, type[Mechanism]]:
    """Every mechanism a room exports, by name."""
    found = {}
    for room in _ROOMS:
        module = import_module(f"sourdine.{room}")
        for name in module.__all__:
            kind = getattr(module, name)
            if isinstance(kind, type) and issubclass(kind, Mechanism) and not isabstract(kind):
                found[name] = kind
    return dict(sorted(found.items()))


def find_examples(name: str | None = None) -> list[Example]:
    """The examples of one mechanism, or of all."""
    found = kinds()
    if name is None:
        return [example for kind in found.values() for example in kind.examples()]
    chosen = {known.lower(): kind for known, kind in found.items()}.get(name.lower())
    if chosen is None:
        near = difflib.get_close_matches(name, found, n=1)
        remedy = f"Did you mean {near[0]}?" if near else ""
        raise check.fail("audit", "name", f"be one of {', '.join(found)}", name, remedy)
    return list(chosen.examples())


def title(mechanism: Mechanism) -> str:
    """A mechanism with its parameters, as short as it can be said.

    >>> from sourdine.mechanisms import Laplace
    >>> title(Laplace(scale=1.5))
    'Laplace(scale=3/2)'
    """
    fields = dataclasses.fields(mechanism)  # type: ignore[arg-type]
    given = [(field, getattr(mechanism, field.name)) for field in fields]
    shown = [f"{field.name}={_short(value)}" for field, value in given if value != field.default]
    return f"{type(mechanism).__name__}({', '.join(shown)})"


def change(example: Example) -> str:
    """How far apart the neighbours of an example are.

    >>> from sourdine.mechanisms import Gaussian
    >>> [change(example) for example in Gaussian.examples()][::3]
    ['1 in L2', '√2 in L2']
    """
    distance = example.distance
    amount = str(distance.amount)
    if distance.norm is Norm.L2:
        root = float(distance.amount) ** 0.5
        amount = f"{root:g}" if root == round(root, 6) else f"√{distance.amount}"
    return f"{amount} in {distance.norm}"


def _short(value: object) -> str:
    """A parameter in a few characters; a long fraction is rounded, for reading only."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_short, value))})"
    text = str(value)
    return f"~{float(value):.6g}" if isinstance(value, Fraction) and len(text) > 12 else text
