import numpy as np
import pytest
import torch
from scipy.stats import kstest

from sourdine.core.errors import InvalidParameter
from sourdine.learning.correlation.factor import BandedFactor, Factor, TreeFactor
from sourdine.learning.correlation.stream import NoiseStream, stream_of
from sourdine.learning.noise.normal import gaussian
from sourdine.testing import SeededBits
from tests.learning.correlation.test_factor import FACTORS, matrix_of

WIDE = 3


def noises(factor: Factor, count: int) -> list[torch.Tensor]:
    drawn = gaussian(torch.Size((count, WIDE)), SeededBits(4))
    return list(drawn)


def rows(stream: NoiseStream, fresh: list[torch.Tensor], count: int) -> torch.Tensor:
    return torch.stack([stream.following(lambda: fresh.pop(0)) for _ in range(count)])


@pytest.mark.parametrize("factor", [each for each in FACTORS if not isinstance(each, TreeFactor)], ids=repr)
def test_the_matrix_times_the_noise_is_what_was_drawn(factor: Factor) -> None:
    every = 5
    fresh = noises(factor, factor.steps)
    drawn = torch.stack(fresh)
    noise = rows(stream_of(factor, every), fresh, factor.steps)
    back = torch.from_numpy(matrix_of(factor)).float() @ noise / factor.stretch(every)
    assert torch.allclose(back, drawn, atol=1e-5)


def test_a_tree_weighs_each_node_by_its_variance() -> None:
    factor = TreeFactor(steps=4)
    a, b, ab, c, d, cd, abcd = fresh = noises(factor, 7)
    noise = rows(stream_of(factor, 4), list(fresh), 4) / factor.stretch(4)
    sums = noise.cumsum(0)
    left, right = 2 / 3 * ab + (a + b) / 3, 2 / 3 * cd + (c + d) / 3
    whole = 4 / 7 * abcd + 3 / 7 * (left + right)
    assert torch.allclose(sums, torch.stack([a, left, left + c, whole]), atol=1e-5)


@pytest.mark.parametrize("factor", FACTORS, ids=repr)
def test_sums_have_the_variances_that_are_forecast(factor: Factor) -> None:
    bits, wide = SeededBits(9), 40_000
    stream = stream_of(factor, 4)
    noise = torch.stack(
        [stream.following(lambda: gaussian(torch.Size((wide,)), bits)) for _ in range(factor.steps)]
    )
    deviations = noise.cumsum(0) / factor.stretch(4)
    for row, variance in zip(deviations, factor.variances, strict=True):
        scale = float(np.sqrt(variance))
        assert kstest(row.numpy(), "norm", args=(0, scale)).pvalue > 1e-6
        assert kstest(row.numpy(), "norm", args=(0, 1.1 * scale)).pvalue < 1e-6


@pytest.mark.parametrize("factor", FACTORS, ids=repr)
@pytest.mark.parametrize("after", [0, 1, 4, 7])
def test_a_stream_goes_on_exactly(factor: Factor, after: int) -> None:
    if after >= factor.steps:
        return
    fresh = noises(factor, 3 * factor.steps)
    whole = rows(stream_of(factor, 4), list(fresh), factor.steps)
    first, second = stream_of(factor, 4), stream_of(factor, 4)
    left = list(fresh)
    before = rows(first, left, after) if after else torch.zeros(0, WIDE)
    second.resume(after, [each.clone() for each in first.secrets()])
    assert torch.equal(torch.cat([before, rows(second, left, factor.steps - after)]), whole)
    if after:
        assert len(torch.cat([each.reshape(-1, WIDE) for each in first.secrets()] or [whole[:0]])) <= max(
            factor.copies, 1
        )


def test_more_steps_than_were_paid_for_are_refused() -> None:
    stream = stream_of(BandedFactor(steps=2, coefficients=(1.0, 0.5)), 2)
    rows(stream, noises(BandedFactor(steps=2, coefficients=(1.0,)), 2), 2)
    with pytest.raises(InvalidParameter, match="2 steps"):
        stream.following(lambda: torch.zeros(WIDE))
