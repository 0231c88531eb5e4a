import math

import numpy as np
import pytest
from scipy.stats import norm

from sourdine.audit.attacks import AttackResult, reconstruction
from sourdine.core.random.bits import coins
from sourdine.testing import SeededBits


@pytest.fixture(scope="module")
def found() -> AttackResult:
    return reconstruction.run(SeededBits(1))


@pytest.mark.slow
def test_it_rebuilds_from_rounded_counts_and_not_from_ours(found: AttackResult) -> None:
    assert found.unprotected.success > 0.93
    assert found.protected.success < 0.6
    assert found.succeeds
    assert found.stopped
    assert found.limit == pytest.approx(math.e / (1 + math.e))


@pytest.mark.slow
def test_the_share_depends_on_the_noise_over_the_root_of_n(found: AttackResult) -> None:
    """The least sum of distances is normal, with pi/2 times the variance of least squares."""
    (chart,) = found.charts
    for size in (reconstruction.FEWER, reconstruction.PEOPLE):
        for noise, share in ((e.place, e.value) for e in chart.points if e.series == f"{size} people"):
            sharpness = math.sqrt(2 / math.pi) * math.sqrt(reconstruction.PER_PERSON) / (4 * float(noise))
            assert abs(share - norm.cdf(sharpness)) < 0.12


@pytest.mark.slow
def test_the_noise_of_the_release_is_far_beyond(found: AttackResult) -> None:
    (chart,) = found.charts
    (ours,) = [each for each in chart.points if each.series == "with protection"]
    scale = reconstruction.PER_PERSON * reconstruction.PEOPLE
    assert float(ours.place) == pytest.approx(
        math.sqrt(2) * scale / math.sqrt(reconstruction.PEOPLE), rel=0.1
    )


def test_exact_answers_give_every_bit_and_one_wild_answer_changes_none() -> None:
    bits = SeededBits(7)
    secret, asked = coins(bits, 24), coins(bits, 96 * 24).reshape(96, 24)
    answers = (asked @ secret.astype(np.int64)).astype(float)
    assert (reconstruction.rebuild(asked, answers) == secret).all()
    answers[5] = 1000
    assert (reconstruction.rebuild(asked, answers) == secret).all()
