"""What is trained, and who trains it.

Only torch and the standard library are imported here, since this file is also read inside the peer's
environment.
"""

import os
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from benchmarks.learning.models import GPT, HEAD, LORA, LSTM, NETWORK, Losses, Task
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
        "transformers==5.23.0",
        "peft==0.21.2",
    ),
)
PLAIN, HOOKS, GHOST, SOURDINE = "plain", "hooks", "ghost", "sourdine"
RATE, NOISE, NORM = 0.01, 1.0, 1.0


@dataclass(frozen=True, kw_only=True)
class Case:
    """A task, its batch, and the most that a private step may take, over a plain one."""

    name: str
    task: Task
    batch: int
    rounds: int
    steps: int
    most: float | None = 2.0
    most_memory: int | None = None
    huge: bool = False  # whether a copy of the parameters for each example is a matter of seconds

    @property
    def runs(self) -> bool:
        """Whether what its model needs is installed."""
        return all(find_spec(package) is not None for package in self.task.needs)

    def model(self, recurrent: Callable[..., nn.Module] = nn.LSTM) -> nn.Module:
        """The model, the same in every process."""
        torch.manual_seed(1)
        return self.task.model(recurrent)

    def examples(self) -> tuple[Tensor, Tensor]:
        """Made-up examples."""
        return self.task.examples(torch.Generator().manual_seed(2), self.batch)


CASES = (
    Case(name="MNIST network, batch 64", task=NETWORK, batch=64, rounds=12, steps=8),
    Case(name="MNIST network, batch 512", task=NETWORK, batch=512, rounds=8, steps=3),
    Case(name="head 25088-512-102, batch 16", task=HEAD, batch=16, rounds=6, steps=2, most=None, huge=True),
    Case(
        name="head 25088-512-102, batch 64",
        task=HEAD,
        batch=64,
        rounds=6,
        steps=2,
        most_memory=10**9,
        huge=True,
    ),
    Case(name="GPT d 256, T 128, batch 16", task=GPT, batch=16, rounds=5, steps=2),
    Case(name="LSTM 64-128, T 64, batch 64", task=LSTM, batch=64, rounds=6, steps=4),
    Case(name="LoRA on a small BERT, batch 32", task=LORA, batch=32, rounds=6, steps=2),
)

Stages = Callable[[], tuple[float, ...]]  # one step; the clock at its start, at stages, and at its end


def plain(case: Case) -> Stages:
    """A step without privacy."""
    model, (x, y) = case.model(), case.examples()
    loss = Losses("mean")
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

    def step() -> tuple[float, ...]:
        start = time.perf_counter()
        optimizer.zero_grad()
        loss(model(x), y).backward()
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
            try:
                step = ways[question["way"]](case)
                step()
                step()  # what one leaves behind may stop the next
            except Exception as problem:  # a library may refuse a model
                return {"refused": f"{type(problem).__name__}: {problem}"}
            made[key] = step
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
