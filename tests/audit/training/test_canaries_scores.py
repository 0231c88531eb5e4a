import copy
from collections.abc import Callable

import pytest
import torch
from torch import nn

from sourdine.audit.training import Canaries, Score
from sourdine.audit.training.canaries import scores
from sourdine.learning.models import cnn, mlp
from sourdine.learning.task import cross_entropy
from tests.narrow import some


@pytest.mark.parametrize("build", [cnn, mlp])
def test_the_way_along_each_gradient_is_what_single_backward_passes_say(
    build: Callable[[tuple[int, ...], int], nn.Module],
) -> None:
    torch.manual_seed(1)
    before = build((1, 28, 28), 3)
    after = copy.deepcopy(before)
    with torch.no_grad():
        for value in after.parameters():
            value.add_(torch.randn_like(value))
    canaries = Canaries(torch.randn(5, 1, 28, 28), torch.tensor([0, 1, 2, 0, 1]))
    found = scores(Score.GRADIENT, before, after, cross_entropy, canaries)
    for place in range(5):
        before.zero_grad()
        nn.functional.cross_entropy(
            before(canaries.inputs[place : place + 1]), canaries.targets[place : place + 1]
        ).backward()
        gradient = torch.cat([some(value.grad).flatten() for value in before.parameters()])
        way = torch.cat(
            [(a - b).detach().flatten() for a, b in zip(before.parameters(), after.parameters(), strict=True)]
        )
        assert found[place] == pytest.approx(float(gradient @ way / gradient.norm()), rel=1e-3)


def test_the_fall_of_the_loss() -> None:
    before, after = nn.Linear(2, 2), nn.Linear(2, 2)
    canaries = Canaries(torch.randn(700, 2), torch.zeros(700, dtype=torch.int64))  # more than fit at once
    found = scores(Score.LOSS, before, after, cross_entropy, canaries)
    losses = [
        nn.functional.cross_entropy(m(canaries.inputs), canaries.targets, reduction="none")
        for m in (before, after)
    ]
    assert found == pytest.approx((losses[0] - losses[1]).detach().double().numpy(), abs=1e-6)
