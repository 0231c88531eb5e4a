"""The runs of private training that are measured."""

from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Case:
    """Many steps with Poisson batches; `truth` is epsilon to about 1e-4."""

    name: str
    noise: float
    rate: float
    steps: int
    delta: float
    width: float
    truth: float
    target: float = 3.0

    def question(self, task: str) -> dict[str, Any]:
        """The case as a question to a library."""
        return {"task": task} | asdict(self)


CASES = (
    Case(name="seed", noise=1.0, rate=64 / 60000, steps=14070, delta=1e-5, width=1e-3, truth=0.6111),
    Case(name="hard", noise=0.8, rate=4096 / 1e6, steps=100_000, delta=1e-8, width=1e-2, truth=17.1215),
)
# brackets that must be as narrow as asked, or say why not; nobody else is asked
_SEED = Case(
    name="seed, small delta", noise=1.0, rate=64 / 60000, steps=14070, delta=1e-16, width=1e-5, truth=2.22064
)
NARROW = (
    Case(name="rare, loud", noise=0.3, rate=1e-6, steps=10**5, delta=1e-5, width=1e-3, truth=3.5026),
    Case(name="rare", noise=0.4, rate=1e-6, steps=10**5, delta=1e-6, width=1e-3, truth=0.4348),
    _SEED,
    replace(_SEED, name="seed, narrower", width=1e-6),
    Case(name="tiny delta", noise=1.0, rate=1e-3, steps=1000, delta=1e-300, width=1e-3, truth=float("nan")),
    Case(name="many steps", noise=1.0, rate=1e-5, steps=10**12, delta=1e-5, width=1e-3, truth=float("nan")),
)


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A thousand settings at once, by the values of each parameter; a peer is asked `sample` of them."""

    name: str
    noises: tuple[float, ...] = (1.0,)
    rates: tuple[float, ...] = (64 / 60000,)
    steps: tuple[int, ...] = (14070,)
    deltas: tuple[float, ...] = (1e-5,)
    sample: int = 4

    def question(self, task: str) -> dict[str, Any]:
        """All settings, for a sweep and for a loop over them."""
        return {"task": task} | asdict(self)

    def sampled(self) -> list[dict[str, Any]]:
        """Some of them, evenly spread, as questions for one epsilon."""
        settings = list(product(self.noises, self.rates, self.steps, self.deltas))
        names = ("noise", "rate", "steps", "delta")
        places = [k * (len(settings) - 1) // (self.sample - 1) for k in range(self.sample)]
        return [{"task": "epsilon"} | dict(zip(names, settings[k], strict=True)) for k in places]


def _between(low: float, high: float, count: int) -> tuple[float, ...]:
    """Numbers with the same ratio from each to the next."""
    return tuple(low * (high / low) ** (k / (count - 1)) for k in range(count))


SWEEPS = (
    Sweep(name="deltas", deltas=_between(1e-8, 1e-4, 1000)),
    Sweep(name="noises", noises=_between(0.6, 4.0, 1000)),
    Sweep(name="steps", steps=tuple(range(15, 15015, 15))),
    Sweep(
        name="grid",
        noises=_between(0.6, 4.0, 10),
        rates=_between(1e-4, 0.05, 10),
        steps=(100, 1000, 3000, 10_000, 30_000),
        deltas=(1e-6, 1e-5),
    ),
)
