"""The least noise that fits into a ledger of (3, 1e-5), by each rule: `python -m benchmarks.ledger.fits`."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

from rich.console import Console
from rich.table import Table

from sourdine.accounting.ledger import Terms
from sourdine.accounting.ledger.charge import cost_of
from sourdine.accounting.ledger.making import Composition, make_terms
from sourdine.accounting.spend import Spend
from sourdine.accounting.subsampling.samplers import Poisson
from sourdine.core.distance import Distance
from sourdine.core.errors import UnsupportedLoss
from sourdine.mechanisms import RoundedGaussian

EPSILON, DELTA = 3, 1e-5
Lines = Sequence[tuple[Spend, ...]]
_CLOSE = 1.002


def release(noise: float) -> Spend:
    """Gaussian noise on whole data, in deviations of what one person moves."""
    grid = Fraction(f"{noise:.4f}") * 1000
    return Spend(mechanism=RoundedGaussian(sigma=grid), distance=Distance.l2(1000, coordinates=1))


def training(noise: float) -> Spend:
    """15 epochs over 60,000 examples in batches of 256."""
    once = release(noise)
    sampling = Poisson(sampling_rate=Fraction(256, 60_000))
    return Spend(mechanism=once.mechanism, distance=once.distance, count=3525, sampling=sampling)


CASES: dict[str, Callable[[float], Lines]] = {
    "one training": lambda noise: [(training(noise),)],
    "one training, after a release with noise 10": lambda noise: [(release(10),), (training(noise),)],
    "each of 5 trainings": lambda noise: [(training(noise),)] * 5,
    "each of 5 trainings, declared as one charge": lambda noise: [(training(noise),) * 5],
    "each of 20 releases": lambda noise: [(release(noise),)] * 20,
    "each of 20 releases, declared as one charge": lambda noise: [(release(noise),) * 20],
}


def fits(terms: Terms, lines: Lines) -> bool:
    """Whether a ledger of these terms pays for all lines."""
    costs = {line: cost_of(terms, line) for line in set(lines)}
    shares = [sum(each) for each in zip(*(costs[line].shares for line in lines), strict=True)]
    total = min(shares) if shares else sum(costs[line].price for line in lines)
    return total <= terms.budget.limit


def least(terms: Terms, case: Callable[[float], Lines]) -> float | None:
    """The least noise with which all lines fit; None where none does."""
    low, high = 0.3, 100.0
    try:
        while high / low > _CLOSE:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if fits(terms, case(middle)) else (middle, high)
    except UnsupportedLoss:
        return None
    return high


def main() -> None:
    console, table = Console(), Table(title=f"the least noise in a ledger of ({EPSILON}, {DELTA:g})")
    table.add_column("noise of")
    for composition in Composition:
        table.add_column(composition, justify="right")
    with console.status("searching"):
        for name, case in CASES.items():
            found = [
                least(make_terms(epsilon=EPSILON, delta=DELTA, composition=composition), case)
                for composition in Composition
            ]
            table.add_row(name, *("refused" if each is None else f"{each:.2f}" for each in found))
    console.print(table)


if __name__ == "__main__":
    main()
