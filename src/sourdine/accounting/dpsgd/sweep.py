"""The epsilons of many settings of private training at once: a table, or a curve."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.dpsgd.training import step_loss
from sourdine.accounting.joint import either_order
from sourdine.accounting.pld.accountant import PLD
from sourdine.accounting.pld.several import Guess, LawFamily
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import Floats
from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import PrivacyLoss

_NEAR = 0.05  # how far the logarithms of a setting may lie from those a tilt was found for
_APART = 1e3  # how many times each other deltas may be that are read off the same sums


class Brackets(NamedTuple):
    """Proven bounds on many numbers, as arrays; `upper` is the claim."""

    lower: Floats
    upper: Floats


class _Setting(NamedTuple):
    """One place of a sweep; settings that share a loss, then a number of steps, stand together in order."""

    rate: Fraction
    noise: float
    steps: int
    delta: float

    @property
    def place(self) -> Floats:
        return np.log([float(self.rate), self.noise, self.steps, self.delta])


def dpsgd_epsilons(
    noise_multipliers: ArrayLike,
    sampling_rates: ArrayLike,
    steps: ArrayLike,
    deltas: ArrayLike,
    width: float = 1e-3,
    *,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    group: int = 1,
) -> Brackets:
    """epsilon of DP-SGD for many settings at once: `dpsgd_epsilon` for each; several deltas take less time.

    The parameters are numbers or arrays of them, which are broadcast against each other as NumPy does. Both
    ends have the shape that comes of it. No bracket is wider than `width`, but where `dpsgd_epsilon`'s is.

    >>> lower, upper = dpsgd_epsilons([1.0, 2.0], 64 / 60000, [[140], [14070]], 1e-5)
    >>> upper.shape, bool(upper[1, 0] < 0.612)
    ((2, 2), True)
    """
    accountant = PLD(width=width)
    noises = _checked("noise_multipliers", noise_multipliers, _noise)
    rates = _checked("sampling_rates", sampling_rates, _rate)
    counts, levels = _checked("steps", steps, _steps), _checked("deltas", deltas, _delta)
    try:
        grids = np.broadcast_arrays(rates, noises, counts, levels)
    except ValueError:
        shapes = ", ".join(str(each.shape) for each in (noises, rates, counts, levels))
        raise InvalidParameter(
            "The 'noise_multipliers', 'sampling_rates', 'steps' and 'deltas' of dpsgd_epsilons must have "
            f"shapes that NumPy can broadcast. Got {shapes}. For a grid, give each its own axis, as np.ix_ "
            "does."
        ) from None
    settings = [_Setting(*each) for each in zip(*(grid.flat for grid in grids), strict=True)]
    brackets = dict(_sweep(sorted(set(settings)), accountant, neighbours, group))
    lower, upper = (
        np.array([getattr(brackets[each], end) for each in settings], float).reshape(grids[0].shape)
        for end in ("lower", "upper")
    )
    return Brackets(lower, upper)


def _noise(name: str, value: object) -> float:
    return float(check.positive("dpsgd_epsilons", name, value, 2**20))


def _rate(name: str, value: object) -> Fraction:
    return check.positive("dpsgd_epsilons", name, value, 1)


def _steps(name: str, value: object) -> int:
    return check.integer("dpsgd_epsilons", name, value, 1, 2**62)


def _delta(name: str, value: object) -> float:
    return float(check.inside("dpsgd_epsilons", name, value, 0, 1))


def _checked(name: str, values: ArrayLike, one: Callable[[str, object], object]) -> NDArray[np.object_]:
    """Every number as its check returns it, in an array of the same shape."""
    try:
        array = np.asarray(values)
    except ValueError:
        remedy = "Pass lists of the same length, or an array."
        raise check.fail(
            "dpsgd_epsilons", name, "be a number or an array of numbers", values, remedy
        ) from None
    numbers = np.empty(array.size, dtype=object)
    numbers[:] = [one(name, each) for each in array.flat]
    return numbers.reshape(array.shape)


@dataclass
class _Neighbour:
    """What did for the last setting of a direction, as long as the next ones are near it."""

    place: Floats = field(default_factory=lambda: np.full(4, math.inf))
    guess: Guess | None = None

    def brackets(
        self, family: LawFamily, settings: Sequence[_Setting], width: float, leasts: Sequence[float]
    ) -> list[Bracket]:
        """epsilon of settings that differ in delta alone; a tilt is found anew where the last one is far."""
        place = np.mean([each.place for each in settings], axis=0)
        known = self.guess is not None and len(self.guess.uppers) == len(settings)
        if not known or not float(np.abs(self.place - place).sum()) <= _NEAR:
            self.place, self.guess = place, None
        deltas = [each.delta for each in settings]
        brackets, self.guess = family.brackets(settings[0].steps, deltas, width, leasts, self.guess)
        return brackets


def _sweep(
    settings: list[_Setting], accountant: PLD, neighbours: Neighbours, group: int
) -> Iterator[tuple[_Setting, Bracket]]:
    """The bracket of each setting; they are in order, so that what is near stands near."""
    guesses = _Neighbour(), _Neighbour()
    for (rate, noise), same_loss in groupby(settings, lambda each: (each.rate, each.noise)):
        alike = list(same_loss)
        loss = either_order(step_loss(noise, rate, neighbours, group))
        if not _shares(loss):
            cost = accountant.lift(loss)
            for each in alike:
                yield each, accountant.epsilon(accountant.repeat(cost, each.steps), each.delta)
            continue
        pairs = [(each.steps, each.delta) for each in alike]
        remove = LawFamily.of(loss.remove, pairs)
        add = remove if loss.add is loss.remove else LawFamily.of(loss.add, pairs)
        for together in _close(alike):
            brackets = _both(remove, add, together, accountant.width, guesses)
            for each, bracket in zip(together, brackets, strict=True):
                if accountant.meets(bracket):
                    yield each, bracket
                else:
                    cost = accountant.repeat(accountant.lift(loss), each.steps)
                    yield each, accountant.epsilon(cost, each.delta)


def _both(
    remove: LawFamily,
    add: LawFamily,
    settings: Sequence[_Setting],
    width: float,
    neighbours: tuple[_Neighbour, _Neighbour],
) -> list[Bracket]:
    """The worse of both directions; the second is only looked for where nothing simpler says it is less.

    That is Chernoff's bound, then one sum with the tilt of the first.
    """
    brackets = neighbours[0].brackets(remove, settings, width, [0.0] * len(settings))
    if add is remove:
        return brackets
    open_ = [
        k
        for k, (each, first) in enumerate(zip(settings, brackets, strict=True))
        if first.lower < math.inf and not add.surely_within(each.steps, first.lower, each.delta)
    ]
    if open_ and (first := neighbours[0].guess) is not None:
        lowers, deltas = [brackets[k].lower for k in open_], [settings[k].delta for k in open_]
        certain = add.told_within(settings[0].steps, lowers, deltas, width, first.tilt)
        open_ = [k for k, sure in zip(open_, certain, strict=True) if not sure]
    if open_:
        leasts = [brackets[k].lower for k in open_]
        others = neighbours[1].brackets(add, [settings[k] for k in open_], width, leasts)
        for k, other in zip(open_, others, strict=True):
            brackets[k] = Bracket(max(brackets[k].lower, other.lower), max(brackets[k].upper, other.upper))
    return brackets


def _shares(loss: PrivacyLoss) -> bool:
    """Whether its laws alone say what it costs, each of them known exactly."""
    alone = loss.epsilon == math.inf and loss.rho == math.inf and loss.delta == 0
    return alone and all(law.least is law for law in (loss.remove, loss.add))


def _close(settings: Sequence[_Setting]) -> Iterator[list[_Setting]]:
    """Settings of one loss in parts of as many steps each, with deltas that are close to each other."""
    for _, same_steps in groupby(settings, lambda each: each.steps):
        part: list[_Setting] = []
        for each in same_steps:
            if part and each.delta > _APART * part[0].delta:
                yield part
                part = []
            part.append(each)
        yield part
