"""What every mechanism promises, checked on every example of every mechanism that a room exports."""

import dataclasses
import functools
import importlib
import inspect
import json
from collections.abc import Iterable, Iterator
from fractions import Fraction

import numpy as np
import pytest

from sourdine import local
from sourdine.audit.outcomes import title
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example, Mechanism
from sourdine.local import FrequencyOracle

ROOMS = ("mechanisms", "learning", "local", "local.rappor", "local.words", "tables.quantiles")


def mechanisms() -> Iterator[type[Mechanism]]:
    """Every concrete mechanism that a room exports."""
    for room in ROOMS:
        try:
            module = importlib.import_module(f"sourdine.{room}")
        except ModuleNotFoundError:
            continue
        for name in module.__all__:
            found = getattr(module, name)
            if isinstance(found, type) and issubclass(found, Mechanism) and not inspect.isabstract(found):
                yield found


def oracles(base: type = FrequencyOracle) -> list[type[FrequencyOracle]]:
    """Every concrete oracle of a base that `sourdine.local` exports."""
    found = (getattr(local, name) for name in local.__all__)
    kinds = (kind for kind in found if isinstance(kind, type) and issubclass(kind, FrequencyOracle))
    return [kind for kind in kinds if issubclass(kind, base) and not inspect.isabstract(kind)]


@functools.cache  # some are calibrated, and ten tests ask for them
def examples() -> list[object]:
    """Every example as a pytest parameter."""
    return [
        pytest.param(example, id=f"{kind.__name__}-{i}")
        for kind in mechanisms()
        for i, example in enumerate(kind.examples())
    ]


def examples_of_laws() -> list[object]:
    """Every example, for tests of samples: of those that take long to draw, all but the first are slow."""
    return [
        pytest.param(example, id=f"{kind.__name__}-{i}", marks=[pytest.mark.slow] if i and long else [])
        for kind in mechanisms()
        for long in [kind.__name__ in ("JointExponential", "RecursiveQuantiles")]
        for i, example in enumerate(kind.examples())
    ]


def one_of_each(found: Iterable[Example]) -> list[object]:
    """Examples as parameters, of which the first of each mechanism is quick and the others are slow."""
    seen: set[type[Mechanism]] = set()
    listed: list[object] = []
    for i, example in enumerate(found):
        kind = type(example.mechanism)
        marks = [pytest.mark.slow] if kind in seen else []
        listed.append(pytest.param(example, id=f"{i}-{title(example.mechanism)}", marks=marks))
        seen.add(kind)
    return listed


def all_kinds() -> list[object]:
    return [pytest.param(kind, id=kind.__name__) for kind in mechanisms()]


def claimed(example: Example, delta: float) -> float:
    """The least epsilon with profile(epsilon) <= delta, by bisection."""
    loss = example.mechanism.loss(example.distance)
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if float(loss.profile(middle)) <= delta else (middle, high)
    return high


def off(mechanism: Mechanism, field: str, factor: Fraction = Fraction(11, 10)) -> Mechanism:
    """The same mechanism with one parameter 10 % off."""
    return dataclasses.replace(mechanism, **{field: getattr(mechanism, field) * factor})  # type: ignore[type-var]


def through_json(mechanism: Mechanism) -> Mechanism:
    return Mechanism.from_json(json.loads(json.dumps(mechanism.to_json())))


def check_profile(loss: PrivacyLoss) -> None:
    """It falls, and is convex in e^epsilon; of a loss of nothing too, where no epsilon lies below its own."""
    epsilons = np.linspace(0, min(float(loss.epsilon), 6.0) or 1.0, 200)
    deltas = loss.profile(epsilons)
    assert np.all(np.diff(deltas) <= 1e-12)
    assert convex_in_exp(epsilons, deltas)


def convex_in_exp(epsilons: np.ndarray, deltas: np.ndarray) -> bool:
    slopes = np.diff(deltas) / np.diff(np.exp(epsilons))
    return bool(np.all(np.diff(slopes) >= -1e-9))
