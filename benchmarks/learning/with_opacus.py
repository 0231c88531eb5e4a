"""Opacus' step, by hooks that make every example's gradient and by ghost clipping, beside a plain one."""

import time
import warnings
from collections.abc import Callable

import torch
from opacus import PrivacyEngine
from opacus.layers import DPLSTM
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.learning.cases import GHOST, HOOKS, NOISE, NORM, PLAIN, RATE, Case, Stages, answers, plain
from benchmarks.learning.models import Losses
from benchmarks.peers import serve

warnings.simplefilter("ignore")


def private(mode: str) -> Callable[[Case], Stages]:
    """A private step in one of its modes."""

    def made(case: Case) -> Stages:
        x, y = case.examples()
        bare = case.model(DPLSTM)
        optimizer = torch.optim.SGD(bare.parameters(), lr=RATE)
        parts = PrivacyEngine().make_private(
            module=bare,
            optimizer=optimizer,
            data_loader=DataLoader(TensorDataset(x, y), batch_size=case.batch),
            criterion=Losses("mean"),
            noise_multiplier=NOISE,
            max_grad_norm=NORM,
            poisson_sampling=False,
            grad_sample_mode=mode,
        )
        model, optimizer = parts[0], parts[1]
        criterion = parts[2] if len(parts) == 4 else Losses("mean")

        def step() -> tuple[float, ...]:
            start = time.perf_counter()
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()
            return start, time.perf_counter()

        return step

    return made


if __name__ == "__main__":
    serve(answers({PLAIN: plain, HOOKS: private("hooks"), GHOST: private("ghost")}))
