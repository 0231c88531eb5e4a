"""What a run of private training costs, by several methods, and the assumptions that this rests on."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from sourdine.accounting.accountant import Bracket, check_delta
from sourdine.accounting.dpsgd.training import Sampler, Training, step_loss
from sourdine.accounting.pld.accountant import PLD
from sourdine.accounting.rdp.accountant import DENSE_ORDERS, SOURCE_ORDERS, Conversion, Renyi
from sourdine.accounting.shuffling.epochs import shuffled_attack
from sourdine.accounting.subsampling.mixture import MOST
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import GaussianLaw
from sourdine.core.format import plain
from sourdine.core.loss import PrivacyLoss

_HOPELESS = 1000.0  # an epsilon beyond which nothing is promised
_NEAR = 1e-6  # what two methods may differ by, relative
_WHY = {
    Sampler.POISSON: "",
    Sampler.FIXED: (
        "This is larger than with Poisson batches: in a batch of fixed size somebody else stands where a "
        "person is missing, so neighbours replace one example by another, and that moves the clipped sum by "
        "up to 2C instead of C."
    ),
    Sampler.TRUNCATED: (
        "This is a little larger than with Poisson batches without a maximum: where a batch is full, an "
        "example that is kept pushes another one out. The lower end is what is certain where all others have "
        "gradients of 0."
    ),
    Sampler.ALLOCATION: (
        "Each example is used exactly once an epoch, and yet chance hides when: it draws its batch whatever "
        "the others do. Shuffled epochs are another thing, and cost much more."
    ),
    Sampler.SHUFFLE: (
        "This is much larger than with Poisson batches: every example is surely used once an epoch, so the "
        "bound pays for one step without sampling each epoch. The lower end is what an attack on the largest "
        "batch of a single epoch proves."
    ),
    Sampler.CYCLIC: (
        "The examples come in an order that is fixed and may be known: chance hides no example but within "
        "the part whose turn it is. Noise that is correlated over the steps is made for that."
    ),
}
_NEIGHBOURS = {
    Neighbours.ADD_REMOVE: "one example is added or removed (add-remove)",
    Neighbours.REPLACE: "one example is replaced by another (replace)",
    Neighbours.ZERO_OUT: "the gradient of one example is left out of its batches (zero-out)",
}


@dataclass(frozen=True)
class AtOrder:
    """An upper bound on epsilon, and the Renyi order that gives it."""

    epsilon: float
    order: float


@dataclass(frozen=True, kw_only=True)
class TrainingCost:
    """What a run costs. `epsilon` is the answer, and its upper end the claim; from 1000 on it is Renyi's.

    `renyi` is what a Renyi accountant says by the tight conversion. `source` is what the source documents'
    tool says: Mironov's conversion of 2017, over fewer orders. That tool always assumes Poisson batches; for
    other batches its number is no guarantee.
    """

    epsilon: Bracket
    renyi: AtOrder
    source: AtOrder
    delta: float
    steps: int
    sampling_rate: float
    noise_multiplier: float
    sampler: Sampler
    neighbours: Neighbours
    assumptions: tuple[str, ...]
    why: str
    group: int = 1


@dataclass(frozen=True, kw_only=True)
class _Run:
    """A run as accountants see it: one loss, paid so many times."""

    loss: PrivacyLoss
    count: int
    noise_multiplier: float
    sampling_rate: float
    steps: int
    sampler: Sampler
    drawn: str
    size: int | None = None
    group: int = 1
    least: float = 0.0  # an epsilon that an attack proves


def cost_of_training(
    training: Training, delta: float, *, orders: Sequence[float] | None = None, width: float = 1e-3
) -> TrainingCost:
    """The cost of a run stated by the size of its data, its batches and its epochs.

    `orders` replaces the orders of both Renyi numbers; `width` is how much of epsilon may stay open.

    >>> cost = cost_of_training(Training(size=60000, batch_size=64, noise_multiplier=1.0, epochs=15), 1e-5)
    >>> cost.steps, round(cost.source.epsilon, 2), cost.source.order
    (14070, 1.17, 13.0)
    """
    delta = _above_zero(delta)
    return _cost(_run(training, delta), delta, orders, width)


def cost_of_steps(
    noise_multiplier: float,
    sampling_rate: float,
    steps: int,
    delta: float,
    *,
    orders: Sequence[float] | None = None,
    width: float = 1e-3,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    group: int = 1,
) -> TrainingCost:
    """The cost of so many steps with Poisson batches at a sampling rate, for one example or a group of them.

    >>> cost_of_steps(1.0, 64 / 60000, 14070, 1e-5).source.order
    13.0
    """
    sampling_rate = float(check.positive("training", "sampling_rate", sampling_rate, 1))
    steps = check.integer("training", "steps", steps, 1, 2**62)
    group = check.integer("training", "group", group, 1, MOST)
    run = _Run(
        loss=step_loss(noise_multiplier, sampling_rate, neighbours, group),
        count=steps,
        noise_multiplier=float(noise_multiplier),
        sampling_rate=sampling_rate,
        steps=steps,
        sampler=Sampler.POISSON,
        drawn=_poisson(sampling_rate),
        group=group,
    )
    return _cost(run, _above_zero(delta), orders, width)


def loss_of_training(training: Training) -> tuple[PrivacyLoss, int]:
    """The loss that a run pays over and over, and how often."""
    noise_multiplier = float(training.noise_multiplier)
    if training.sampler is Sampler.POISSON:
        return step_loss(
            noise_multiplier, training.sampling_rate, training.relation, training.group
        ), training.steps
    step = PrivacyLoss.symmetric(GaussianLaw(training.moved / noise_multiplier), neighbours=training.relation)
    return step if training.sampling is None else training.sampling.apply(step), training.uses


def _run(training: Training, delta: float) -> _Run:
    noise_multiplier, sampling_rate, steps = (
        float(training.noise_multiplier),
        training.sampling_rate,
        training.steps,
    )
    size, batch_size, sampler = training.size, training.batch_size, training.sampler
    loss, count = loss_of_training(training)
    least = 0.0
    if sampler is Sampler.POISSON:
        drawn = _poisson(sampling_rate)
    elif sampler is Sampler.FIXED:
        drawn = f"Every step draws {batch_size:,} of the {size:,} examples afresh, every choice alike."
    elif sampler is Sampler.TRUNCATED:
        drawn = (
            f"Every step draws its batch afresh by Poisson sampling: each of the {size:,} examples comes in "
            f"with probability {100 * sampling_rate:.4g} %, independently; of more than "
            f"{training.max_batch_size:,}, any {training.max_batch_size:,} are kept, every choice alike."
        )
    elif sampler is Sampler.ALLOCATION:
        drawn = (
            f"Every epoch puts each example into one of {steps // training.epochs:,} batches, drawn afresh, "
            "every batch alike, and independently of all other examples: batches differ in size."
        )
    elif sampler is Sampler.CYCLIC and training.parts is None:
        drawn = (
            f"The examples are cut into {steps // training.epochs:,} batches once, in a fixed order that may "
            "be known, and each epoch takes them in that order."
        )
    elif sampler is Sampler.CYCLIC:
        drawn = (
            f"The examples are cut into {training.parts:,} parts once, in a fixed order that may be known. "
            "Parts take turns, and each example of the part whose turn it is comes in with probability "
            f"{100 * sampling_rate * (training.parts or 1):.4g} %, independently."
        )
    else:
        least = shuffled_attack(noise_multiplier, steps // training.epochs, delta)
        drawn = f"Every epoch shuffles the data and cuts them into batches of {batch_size:,}."
    return _Run(
        loss=loss,
        count=count,
        noise_multiplier=noise_multiplier,
        sampling_rate=sampling_rate,
        steps=steps,
        sampler=sampler,
        drawn=drawn,
        size=size,
        group=training.group,
        least=least,
    )


def _cost(run: _Run, delta: float, orders: Sequence[float] | None, width: float) -> TrainingCost:
    renyi = _renyi(run.loss, run.count, delta, tuple(orders or DENSE_ORDERS), Conversion.TIGHT)
    epsilon = Bracket(0.0, renyi.epsilon)
    if renyi.epsilon <= _HOPELESS:  # beyond, a closer look would take long and help nobody
        accountant = PLD(width=width)
        epsilon = accountant.epsilon(accountant.repeat(accountant.lift(run.loss), run.count), delta)
    upper = min(epsilon.upper, renyi.epsilon)
    # shuffled batches have a law that is only a bound: what is known from below is the attack
    lower = run.least if run.sampler is Sampler.SHUFFLE else epsilon.lower
    if lower > upper * (1 + _NEAR) + _NEAR:
        raise ArithmeticError(
            f"One method says that epsilon is at least {lower!r}, another that it is at most {upper!r}: "
            "one of them is wrong. Change the plan, and report it as a fault of Sourdine."
        )
    epsilon = Bracket(min(lower, upper), upper)
    poisson = step_loss(run.noise_multiplier, run.sampling_rate)
    return TrainingCost(
        epsilon=epsilon,
        renyi=renyi,
        source=_renyi(poisson, run.steps, delta, tuple(orders or SOURCE_ORDERS), Conversion.MIRONOV),
        delta=delta,
        steps=run.steps,
        sampling_rate=run.sampling_rate,
        noise_multiplier=run.noise_multiplier,
        sampler=run.sampler,
        neighbours=run.loss.neighbours,
        assumptions=(
            run.drawn,
            _about_unit(run),
            "Each example's gradient is clipped to a norm of C before the sum, and the sum gets continuous "
            f"Gaussian noise with a standard deviation of {run.noise_multiplier:g} C.",
            "Anybody may see every noisy sum, hence every model on the way. The batches, the gradients of "
            "single examples and the noise stay secret.",
            _about_delta(delta, run.size),
            "Size, batch, noise and epochs are public and fixed beforehand. Tuning them on the same data "
            "costs extra.",
        ),
        why=_WHY[run.sampler],
        group=run.group,
    )


def _about_unit(run: _Run) -> str:
    changed = _NEIGHBOURS[run.loss.neighbours]
    if run.group == 1:
        return (
            f"The unit is one example: neighbours are data sets where {changed}. Somebody with several "
            "examples pays for each."
        )
    return (
        f"The unit is any {run.group:,} examples together, such as all of somebody who has no more: "
        f"neighbours are data sets where for up to {run.group:,} times {changed}."
    )


def _renyi(
    loss: PrivacyLoss, count: int, delta: float, orders: tuple[float, ...], conversion: Conversion
) -> AtOrder:
    accountant = _accountant(orders, conversion)
    cost = accountant.repeat(accountant.lift(loss), count)
    return AtOrder(accountant.epsilon(cost, delta).upper, accountant.order(cost, delta))


@cache
def _accountant(orders: tuple[float, ...], conversion: Conversion) -> Renyi:
    """Hundreds of orders take longer to check than to use."""
    return Renyi(orders=orders, conversion=conversion)


def _above_zero(delta: float) -> float:
    if check_delta("training", delta) == 0:
        remedy = "Gaussian noise has no epsilon at delta 0. A common choice is 1e-5, below 1 over the size."
        raise check.fail("training", "delta", "be above 0", delta, remedy)
    return float(delta)


def _poisson(sampling_rate: float) -> str:
    return (
        "Every step draws its batch afresh by Poisson sampling: each example comes in with probability "
        f"{100 * float(sampling_rate):.4g} %, independently. Shuffled epochs and batches of fixed size "
        "cost more."
    )


def _about_delta(delta: float, size: int | None) -> str:
    text = f"delta is {plain(delta)}: any event may be that much more likely than e^epsilon allows."
    if size is None:
        return f"{text} It should lie below 1 over the number of examples."
    if delta * size < 1:
        return f"{text} It lies below 1/{size:,}, as it should."
    return (
        f"{text} It is not below 1/{size:,}, so it would even allow publishing somebody's example outright."
    )
