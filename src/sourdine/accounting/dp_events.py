"""Spends from the events of the package dp_accounting, and events from spends.

Events are known by the names of their classes, so that package is needed only to make events. In either
direction what comes out is never less than what went in: docs/guarantees/dp_events.md has the reasons.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from sourdine.accounting.subsampling.samplers import FixedSize, Poisson, Sampling, TruncatedPoisson
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours, Norm, root_above
from sourdine.core.distributions import AtomLaw, float_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import one_moves
from sourdine.core.interval_arithmetic import above, exponential, precision
from sourdine.core.loss import BoundedRangeLaw, PrivacyLoss
from sourdine.core.mechanism import Mechanism
from sourdine.core.serialization import class_of
from sourdine.mechanisms.finite_pair import FinitePair
from sourdine.mechanisms.gaussian import Gaussian
from sourdine.mechanisms.geometric import Geometric
from sourdine.mechanisms.laplace import Laplace
from sourdine.mechanisms.randomized_response import LEAST_EPSILON, KaryResponse
from sourdine.mechanisms.selection import Exponential, PermuteAndFlip

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
    if kind == "RepeatAndSelectDpEvent":
        return _selected(event, neighbours, depth)
    if kind not in _EVENTS:
        reason = _REFUSED.get(kind, "no spend here is known to cover it")
        raise InvalidParameter(f"An event of the class {kind} is refused: {reason}. {_INSTEAD}")
    from sourdine.accounting.spend import Spend

    mechanism, distance, *sampling = _EVENTS[kind](event, neighbours)
    spend = Spend(mechanism=mechanism, distance=distance, sampling=sampling[0] if sampling else None)
    spend.one_loss()  # a sampling that is not proven for these neighbours is refused now
    return (spend,)


def _selected(event: object, neighbours: Neighbours, depth: int) -> "tuple[Spend, ...]":
    """The best of a number of runs that is geometric: of the distributions of that paper, shape 1."""
    from sourdine.accounting.spend import Spend

    shape = check.rational(_OWNER, "shape", _field(event, "shape"))
    if shape != 1:
        remedy = "Of numbers of runs that are not geometric nothing is proven here."
        raise check.fail(_OWNER, "shape", "be 1", float(shape), remedy)
    inside = _read(_field(event, "event"), neighbours, depth + 1)
    if not inside:
        return ()
    best: Any = class_of("best-of-runs/1")
    mechanism = best.of([inside], check.rational(_OWNER, "mean", _field(event, "mean")))
    return (Spend(mechanism=mechanism, distance=Distance.hamming(neighbours=neighbours)),)


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


_Stated = tuple[Mechanism, Distance] | tuple[Mechanism, Distance, Sampling | None]
Read = Callable[[object, Neighbours], _Stated]


def _continuous(sigma: Fraction) -> Mechanism:
    """Continuous Gaussian noise."""
    kind: Any = class_of("noisy-gradient/1")
    mechanism: Mechanism = kind(sigma=sigma)
    return mechanism


def _gaussian(event: object, neighbours: Neighbours) -> tuple[Mechanism, Distance]:
    distance = Distance.l2(_moves(neighbours), neighbours=neighbours)
    return _continuous(_positive(event, "noise_multiplier")), distance


def _discrete_gaussian(event: object, neighbours: Neighbours) -> tuple[Mechanism, Distance]:
    square = (_positive(event, "sensitivity") * _moves(neighbours)) ** 2
    dimension = getattr(event, "dimension", None)
    if dimension is not None:
        dimension = check.integer(_OWNER, "dimension", dimension, 1, 1 << 40)
    distance = Distance.l2(square=square, coordinates=dimension, neighbours=neighbours)
    return Gaussian(sigma=_positive(event, "sigma")), distance


def _tree(event: object, neighbours: Neighbours) -> tuple[Mechanism, Distance]:
    """A record is in one leaf of one tree, hence in one node of each level that a tree of so many leaves has.

    Two records that replace each other move the most nodes furthest where they share a leaf.
    """
    counts = _field(event, "step_counts")
    listed = list(counts) if isinstance(counts, Sequence) else [counts]
    if not listed:
        raise check.fail(_OWNER, "step_counts", "name one tree at least", counts)
    levels = max(check.integer(_OWNER, "step_counts", each, 1, 1 << 40) for each in listed).bit_length()
    square = Fraction(levels * _moves(neighbours) ** 2)
    return _continuous(_positive(event, "noise_multiplier")), Distance.l2(
        square=square, neighbours=neighbours
    )


def _mixture(event: object, neighbours: Neighbours) -> _Stated:
    """All that is not 0 counts as the largest sensitivity, drawn with the chance of all of them together."""
    sizes, chances = _field(event, "sensitivities"), _field(event, "sampling_probs")
    if not (isinstance(sizes, Sequence) and isinstance(chances, Sequence) and len(sizes) == len(chances) > 0):
        raise check.fail(_OWNER, "sampling_probs", "have one probability for each sensitivity", chances)
    exact: list[Fraction] = [check.rational(_OWNER, "sensitivities", each) for each in sizes]
    parts = [check.between(_OWNER, "sampling_probs", each, Fraction(0), Fraction(1)) for each in chances]
    total = sum(parts, Fraction(0))
    if min(exact) < 0 or max(exact) == 0:
        raise check.fail(_OWNER, "sensitivities", "be at least 0, and one above it", min(map(float, exact)))
    if abs(total - 1) > _SUM:
        raise check.fail(_OWNER, "sampling_probs", "add up to 1", float(total))
    still = sum((part for size, part in zip(exact, parts, strict=True) if size == 0), Fraction(0))
    rate = min(Fraction(1), max(1 - still, total - still))
    sampling = Poisson(sampling_rate=rate) if rate < 1 else None
    distance = Distance.l2(max(exact), neighbours=neighbours)
    return _continuous(_positive(event, "standard_deviation")), distance, sampling


def _truncated(event: object, neighbours: Neighbours) -> _Stated:
    size = check.integer(_OWNER, "dataset_size", _field(event, "dataset_size"), 1, 1 << 50)
    rate = check.rational(_OWNER, "sampling_probability", _field(event, "sampling_probability"))
    batch = round(rate * size)
    if not 1 <= batch <= size or float(Fraction(batch, size)) != float(rate):
        remedy = "Truncated sampling is known here for a whole mean batch size."
        raise check.fail(
            _OWNER, "sampling_probability", "be a whole number over the size", float(rate), remedy
        )
    sampling = TruncatedPoisson(
        batch_size=batch,
        size=size,
        max_batch_size=_field(event, "truncated_batch_size"),  # type: ignore[arg-type]
    )
    return *_gaussian(event, neighbours), sampling


def _exponential(event: object, neighbours: Neighbours) -> tuple[Mechanism, Distance]:
    return _choice(Exponential, event, neighbours)


def _permute_and_flip(event: object, neighbours: Neighbours) -> tuple[Mechanism, Distance]:
    return _choice(PermuteAndFlip, event, neighbours)


def _choice(
    kind: type[Exponential | PermuteAndFlip], event: object, neighbours: Neighbours
) -> tuple[Mechanism, Distance]:
    mechanism = kind(epsilon=_positive(event, "epsilon"), sensitivity=Fraction(1), candidates=2)
    return mechanism, Distance.linf(1, neighbours=neighbours)


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
    "DiscreteGaussianDpEvent": _discrete_gaussian,
    "SingleEpochTreeAggregationDpEvent": _tree,
    "MixtureOfGaussiansDpEvent": _mixture,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
    "ExponentialMechanismDpEvent": _exponential,
    "PermuteAndFlipDpEvent": _permute_and_flip,
}
_REFUSED = {
    "NonPrivateDpEvent": "nothing can pay for what is not private",
    "UnsupportedDpEvent": "it does not say what was done",
    "SampledWithReplacementDpEvent": "of a record that is drawn several times nothing is proven here",
}
_SUM = Fraction(1, 10**9)  # by which probabilities in floats may miss 1


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
    if isinstance(spend.sampling, TruncatedPoisson) and type(event).__name__ == "GaussianDpEvent":
        drawn = spend.sampling
        rate = float_above(Fraction(drawn.batch_size, drawn.size))
        event = dp_event.TruncatedSubsampledGaussianDpEvent(
            drawn.size, rate, drawn.max_batch_size, event.noise_multiplier
        )
    elif isinstance(spend.sampling, Poisson):
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
    known = _known_event(mechanism, distance, loss, dp_event)
    if known is not None:
        return known
    if spend.sampling is None and not loss.delta and math.isfinite(loss.rho):
        return dp_event.ZCDpEvent(float_above(Fraction(loss.rho)))
    raise InvalidParameter(
        f"No event is known to cover this spend of {type(mechanism).__name__}. Account for it here, with PLD."
    )


def _known_event(mechanism: Mechanism, distance: Distance, loss: PrivacyLoss, dp_event: Any) -> Any:
    """The event of the same mechanism, or of an epsilon and a delta; older versions lack some classes."""
    has = partial(hasattr, dp_event)
    if mechanism.name == "gaussian/1" and has("DiscreteGaussianDpEvent"):
        if mechanism.granularity is not None:  # type: ignore[attr-defined]
            return None
        sigma, moved = mechanism.sigma, float_above(root_above(distance.amount))  # type: ignore[attr-defined]
        return dp_event.DiscreteGaussianDpEvent(_float_below(sigma), moved, distance.coordinates)
    if mechanism.name == "best-of-runs/1" and len(mechanism.settings) == 1:  # type: ignore[attr-defined]
        runs = [event_of_spend(each) for each in mechanism.settings[0]]  # type: ignore[attr-defined]
        one = runs[0] if len(runs) == 1 else dp_event.ComposedDpEvent(runs)
        changed = math.floor(distance.amount)
        mean = float_above(mechanism.mean)  # type: ignore[attr-defined]
        return dp_event.RepeatAndSelectDpEvent(one, mean, 1.0) if changed == 1 else None
    if not math.isfinite(loss.epsilon):
        return None
    epsilon = float_above(Fraction(loss.epsilon))
    if loss.delta:
        pair = epsilon, float_above(Fraction(loss.delta))
        return dp_event.EpsilonDeltaDpEvent(*pair) if has("EpsilonDeltaDpEvent") else None
    if isinstance(loss.remove, BoundedRangeLaw):
        return dp_event.ExponentialMechanismDpEvent(epsilon) if has("ExponentialMechanismDpEvent") else None
    if isinstance(loss.remove, AtomLaw) and epsilon > 0:  # one step of discrete Laplace noise dominates
        return dp_event.DiscreteLaplaceDpEvent(epsilon, 1)
    return None


def _float_below(number: Fraction) -> float:
    nearest = float(number)
    return nearest if nearest <= number else math.nextafter(nearest, 0.0)
