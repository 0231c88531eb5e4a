"""Spends from the events of the package dp_accounting, and events from spends.

Events are known by the names of their classes, so that package is needed only to make events. In either
direction what comes out is never less than what went in: docs/guarantees/dp_events.md has the reasons.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sourdine.accounting.subsampling.samplers import FixedSize, Poisson, Sampling
from sourdine.core import check
from sourdine.core.balls import above, exponential, precision
from sourdine.core.distance import Distance, Neighbours, Norm, root_above
from sourdine.core.distributions import float_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import one_moves
from sourdine.core.mechanism import Mechanism
from sourdine.core.registry import class_of
from sourdine.mechanisms.finite_pair import FinitePair
from sourdine.mechanisms.gaussian import Gaussian
from sourdine.mechanisms.geometric import Geometric
from sourdine.mechanisms.laplace import Laplace
from sourdine.mechanisms.randomized_response import LEAST_EPSILON, KaryResponse

if TYPE_CHECKING:
    from sourdine.accounting.spend import Spend

_OWNER = "Spend.from_dp_event"
_DEEPEST = 50
_FINE = Fraction(1 << 30)  # a sigma in steps, of which the least change that is taken is two
_INSTEAD = (
    "State what it loses as a pair of laws instead: Spend(mechanism=FinitePair.between(first, second), "
    "distance=Distance.hamming())."
)


def spends_of_event(event: object, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> "tuple[Spend, ...]":
    """What an event of dp_accounting spends, each mechanism on its own; nothing for a NoOpDpEvent."""
    check.member(_OWNER, "neighbours", neighbours, Neighbours)
    return _read(event, neighbours, 0)


def _read(event: object, neighbours: Neighbours, depth: int) -> "tuple[Spend, ...]":
    if depth > _DEEPEST:
        raise InvalidParameter(f"Events within events are read {_DEEPEST} deep. Flatten this one.")
    kind = type(event).__name__
    if kind == "NoOpDpEvent":
        return ()
    if kind == "ComposedDpEvent":
        inner = _field(event, "events")
        if not isinstance(inner, Sequence):
            raise check.fail(_OWNER, "events", "be a list of events", inner)
        return tuple(spend for each in inner for spend in _read(each, neighbours, depth + 1))
    if kind == "SelfComposedDpEvent":
        count = check.integer(_OWNER, "count", _field(event, "count"), 0, 1 << 62)
        inside = _read(_field(event, "event"), neighbours, depth + 1) if count else ()
        return tuple(replace(spend, count=spend.count * count) for spend in inside)
    if kind in ("PoissonSampledDpEvent", "SampledWithoutReplacementDpEvent"):
        return _sampled(event, kind, neighbours, depth)
    if kind not in _EVENTS:
        raise InvalidParameter(
            f"An event of the class {kind} has no spend here that is known to cover it. {_INSTEAD}"
        )
    mechanism, distance = _EVENTS[kind](event, neighbours)
    from sourdine.accounting.spend import Spend

    return (Spend(mechanism=mechanism, distance=distance),)


def _sampled(event: object, kind: str, neighbours: Neighbours, depth: int) -> "tuple[Spend, ...]":
    inside = _read(_field(event, "event"), neighbours, depth + 1)
    if any(spend.count > 1 or spend.sampling is not None for spend in inside) or len(inside) > 1:
        raise InvalidParameter(
            "Several mechanisms on one sample are not the same as one sample for each, which is what spends "
            "can tell. Sample each event on its own, and compose the sampled ones."
        )
    sampling: Sampling
    if kind == "PoissonSampledDpEvent":
        rate = check.between(
            _OWNER, "sampling_probability", _field(event, "sampling_probability"), Fraction(0), Fraction(1)
        )
        if rate == 0:
            return ()
        sampling = Poisson(sampling_rate=rate)
    else:
        sampling = FixedSize(
            batch_size=_field(event, "sample_size"),  # type: ignore[arg-type]
            size=_field(event, "source_dataset_size"),  # type: ignore[arg-type]
        )
    spends = tuple(replace(spend, sampling=sampling) for spend in inside)
    for spend in spends:
        spend.one_loss()  # a sampling that is not proven for these neighbours is refused now
    return spends


def _field(event: object, name: str) -> object:
    missing = object()
    value = getattr(event, name, missing)
    if value is missing:
        raise InvalidParameter(f"An event of the class {type(event).__name__} must have '{name}'.")
    return value


def _positive(event: object, name: str) -> Fraction:
    value = _field(event, name)
    exact = check.rational(_OWNER, name, value)
    if exact <= 0:
        remedy = "Without noise nothing is private, and nothing can pay for it."
        raise check.fail(_OWNER, name, "be above 0", value, remedy)
    return exact


def _moves(neighbours: Neighbours) -> int:
    """By how many norms of a record a sum moves: one is replaced by another."""
    return 2 if neighbours is Neighbours.REPLACE else 1


Read = Callable[[object, Neighbours], tuple[Mechanism, Distance]]


def _gaussian(event: object, neighbours: Neighbours) -> tuple[Mechanism, Distance]:
    continuous: Any = class_of("noisy-gradient/1")
    mechanism: Mechanism = continuous(sigma=_positive(event, "noise_multiplier"))
    return mechanism, Distance.l2(_moves(neighbours), neighbours=neighbours)


def _laplace(event: object, neighbours: Neighbours) -> tuple[Mechanism, Distance]:
    """Moved by one whole step, Laplace noise is randomized response at its epsilon, which covers all."""
    scale = _positive(event, "noise_multiplier") / _moves(neighbours)
    return Laplace(scale=scale), Distance.l1(1, neighbours=neighbours)


def _discrete_laplace(event: object, neighbours: Neighbours) -> tuple[Mechanism, Distance]:
    change = check.integer(_OWNER, "sensitivity", _field(event, "sensitivity"), 1, 1 << 40)
    mechanism = Geometric(scale=1 / _positive(event, "noise_parameter"))
    return mechanism, Distance.l1(change * _moves(neighbours), neighbours=neighbours)


def _response(event: object, neighbours: Neighbours) -> tuple[Mechanism, Distance]:
    noise, buckets = _positive(event, "noise_parameter"), _field(event, "num_buckets")
    if noise > 1:
        raise check.fail(_OWNER, "noise_parameter", "be at most 1", float(noise))
    count = check.integer(_OWNER, "num_buckets", buckets, 2, 1 << 40)
    other = noise / count
    likely, rest = 1 - noise + other, (count - 2) * other
    pair = FinitePair(first=(likely, other, rest), second=(other, likely, rest))
    return pair, Distance.hamming(neighbours=neighbours)


def _point(event: object, neighbours: Neighbours) -> tuple[Mechanism, Distance]:
    """Randomized response at a rational above e^epsilon, and a leak of delta."""
    epsilon = check.between(_OWNER, "epsilon", _field(event, "epsilon"), Fraction(0), Fraction(200))
    delta = check.rational(_OWNER, "delta", getattr(event, "delta", 0))
    if not 0 <= delta < 1:
        raise check.fail(_OWNER, "delta", "be at least 0 and below 1", float(delta))
    distance = Distance.hamming(neighbours=neighbours)
    if delta == 0 and epsilon >= LEAST_EPSILON:
        return KaryResponse(epsilon=epsilon, categories=2), distance
    with precision(128):
        odds = Fraction(above(exponential(epsilon))) if epsilon else Fraction(1)
    likely, unlikely = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
    return FinitePair(
        first=(delta, Fraction(0), likely, unlikely), second=(Fraction(0), delta, unlikely, likely)
    ), distance


def _concentrated(event: object, neighbours: Neighbours) -> tuple[Mechanism, Distance]:
    """Several numbers that move at once: of these only rho is known, so that the worst law stands in."""
    if check.rational(_OWNER, "xi", getattr(event, "xi", 0)) != 0:
        raise InvalidParameter("A ZCDpEvent with a 'xi' is not covered by any rho. Give its rho for xi = 0.")
    square = max(2 * _positive(event, "rho") * _FINE**2, Fraction(2))  # below two steps one could be meant
    return Gaussian(sigma=_FINE), Distance.l2(square=square, coordinates=None, neighbours=neighbours)


_EVENTS: dict[str, Read] = {
    "GaussianDpEvent": _gaussian,
    "LaplaceDpEvent": _laplace,
    "DiscreteLaplaceDpEvent": _discrete_laplace,
    "RandomizedResponseDpEvent": _response,
    "EpsilonDeltaDpEvent": _point,
    "ZCDpEvent": _concentrated,
}


def event_of_spend(spend: "Spend") -> Any:
    """An event of dp_accounting that covers a spend, for neighbours that add, remove or zero out a unit."""
    try:
        from dp_accounting import dp_event
    except ImportError:
        raise InvalidParameter(
            "Events are classes of the package dp_accounting, which is not installed. Install dp-accounting."
        ) from None
    if spend.part is not None or spend.distance.neighbours is Neighbours.REPLACE:
        raise InvalidParameter(
            "An event knows neither parts of the data nor a unit that is replaced: it bounds what one unit "
            "adds. State the spend without a part, for add-remove or zero-out neighbours."
        )
    event = _one_event(spend, dp_event)
    if isinstance(spend.sampling, Poisson):
        event = dp_event.PoissonSampledDpEvent(float_above(spend.sampling.sampling_rate), event)
    elif spend.sampling is not None:
        raise InvalidParameter(
            f"No event is known to cover a spend with {type(spend.sampling).__name__} sampling. "
            "Account for it here, with PLD."
        )
    return event if spend.count == 1 else dp_event.SelfComposedDpEvent(event, spend.count)


def _one_event(spend: "Spend", dp_event: Any) -> Any:
    mechanism, distance = spend.mechanism, spend.distance
    if mechanism.name == "noisy-gradient/1":
        noise = mechanism.sigma / root_above(distance.amount)  # type: ignore[attr-defined]
        return dp_event.GaussianDpEvent(_float_below(noise))
    whole = distance.norm is Norm.L1 and getattr(mechanism, "granularity", None) is None
    if isinstance(mechanism, Laplace | Geometric) and whole and distance.amount >= 1:
        moved = math.floor(distance.amount)
        if one_moves(distance, distance.amount):
            return dp_event.DiscreteLaplaceDpEvent(float_above(1 / mechanism.scale), moved)
        # what several numbers lose together is known by its epsilon only: one step of that size loses as much
        return dp_event.DiscreteLaplaceDpEvent(float_above(moved / mechanism.scale), 1)
    loss = mechanism.loss(distance)
    if spend.sampling is None and not loss.delta and math.isfinite(loss.rho):
        return dp_event.ZCDpEvent(float_above(Fraction(loss.rho)))
    raise InvalidParameter(
        f"No event is known to cover this spend of {type(mechanism).__name__}. Account for it here, with PLD."
    )


def _float_below(number: Fraction) -> float:
    nearest = float(number)
    return nearest if nearest <= number else math.nextafter(nearest, 0.0)
