"""Sourdine's step, with any optimizer of torch, beside a plain one."""

import time

import torch

from benchmarks.learning.cases import NOISE, NORM, PLAIN, RATE, SOURDINE, Case, Stages, answers, plain
from benchmarks.learning.models import Losses
from benchmarks.peers import serve
from sourdine.learning import Flat
from sourdine.learning.step import MOST_STEPS, Step


def private(case: Case) -> Stages:
    """A private step; the stage is the clipped sum."""
    model, (x, y) = case.model(), case.examples()
    loss = Losses()
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    step = Step(
        model, noise_multiplier=NOISE, batch_size=case.batch, steps=MOST_STEPS, clipping=Flat(norm=NORM)
    )

    def one() -> tuple[float, ...]:
        start = time.perf_counter()
        step.add(lambda x, y: loss(model(x), y), x, y)
        summed = time.perf_counter()
        step.close()
        noised = time.perf_counter()
        optimizer.step()
        end = time.perf_counter()
        return start, end - (noised - summed), end

    return one


if __name__ == "__main__":
    serve(answers({PLAIN: plain, SOURDINE: private}))
