"""The models that are trained, on made-up examples, and who trains them.

Only torch and the standard library are imported here, since this file is also read inside the peer's
environment.
"""

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.peers import Answer, Environment, Question

OURS = Environment(name="sourdine")
OPACUS = Environment(
    name="opacus",
    requirements=(
        "torch==2.13.0",
        "opacus==1.6.0",
        "mpmath==1.3.0",
        "numpy==2.4.6",
        "scipy==1.17.1",
    ),
)
PLAIN, HOOKS, GHOST, SOURDINE = "plain", "hooks", "ghost", "sourdine"
RATE, NOISE, NORM = 0.01, 1.0, 1.0


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model, its batch, and the most that a private step may take, over a plain one."""

    name: str
    shape: tuple[int, ...]
    classes: int
    batch: int
    most: float
    with_noise: bool  # whether the limit is for the whole step, or before noise
    rounds: int
    steps: int
    most_memory: int | None = None

    def model(self) -> nn.Module:
        """The model, the same in every process."""
        torch.manual_seed(1)
        return _head() if len(self.shape) == 1 else _network()

    def batch_of_data(self) -> tuple[Tensor, Tensor]:
        """Made-up examples."""
        source = torch.Generator().manual_seed(2)
        x = torch.randn(self.batch, *self.shape, generator=source)
        return x, torch.randint(0, self.classes, (self.batch,), generator=source)


def _network() -> nn.Module:
    """The source's network for MNIST."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def _head() -> nn.Module:
    """The source's head for flowers, on features of a network that is frozen."""
    return nn.Sequential(nn.Linear(25088, 512), nn.ReLU(), nn.Linear(512, 102))


_IMAGES = {"shape": (1, 28, 28), "classes": 10, "most": 1.8, "with_noise": True}
CASES = (
    Case(name="MNIST network, batch 64", batch=64, rounds=12, steps=8, **_IMAGES),  # type: ignore[arg-type]
    Case(name="MNIST network, batch 512", batch=512, rounds=8, steps=3, **_IMAGES),  # type: ignore[arg-type]
    Case(
        name="head 25088-512-102, batch 64",
        shape=(25088,),
        classes=102,
        batch=64,
        most=3.0,
        with_noise=False,
        rounds=6,
        steps=2,
        most_memory=10**9,
    ),
)

Stages = Callable[[], tuple[float, ...]]  # one step; the clock at its start, at stages, and at its end


def plain(case: Case) -> Stages:
    """A step without privacy."""
    model, (x, y) = case.model(), case.batch_of_data()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

    def step() -> tuple[float, ...]:
        start = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return start, time.perf_counter()

    return step


def answers(ways: dict[str, Callable[[Case], Stages]]) -> Callable[[Question], Answer]:
    """Answers questions about a case and a way, and keeps what it has set up."""
    made: dict[tuple[str, str], Stages] = {}

    def answer(question: Question) -> Answer:
        torch.set_num_threads(question["threads"])
        case = next(case for case in CASES if case.name == question["case"])
        key = (question["way"], case.name)
        if key not in made:
            made[key] = ways[question["way"]](case)
            made[key]()
        taken = []
        used = time.process_time()
        for _ in range(question["steps"]):
            clock = made[key]()
            taken.append([each - clock[0] for each in clock[1:]])
        used = time.process_time() - used
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return {
            "seconds": taken,
            "processor": used / question["steps"],
            "peak": peak,
            "load": os.getloadavg()[0],
        }

    return answer
