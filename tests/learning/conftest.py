from collections.abc import Iterator

import pytest
import torch

torch.set_num_threads(1)  # the tensors here are small, and threads that wait for each other are slow


@pytest.fixture(autouse=True)
def one_seed() -> Iterator[None]:
    """Made-up tensors are the same each time: rounding that is tolerated today is tolerated tomorrow."""
    with torch.random.fork_rng():
        torch.manual_seed(20)
        yield
