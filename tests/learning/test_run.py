import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.learning import FixedBatches, PoissonBatches, ShuffledBatches
from sourdine.testing import SeededBits


def test_only_those_present_are_drawn_at_the_declared_rate() -> None:
    drawn = list(PoissonBatches(size=1000, batch_size=100, epochs=40, present=300).draw(SeededBits(1)))
    assert len(drawn) == 400
    assert max(int(each.max(initial=0)) for each in drawn) < 300
    assert abs(np.mean([len(each) for each in drawn]) - 30) < 5 * np.sqrt(300 * 0.1 * 0.9 / 400)


@pytest.mark.parametrize("kind", [PoissonBatches, FixedBatches, ShuffledBatches])
def test_the_rest_of_a_run_follows_what_was_drawn(kind: type) -> None:
    assert len(list(kind(size=100, batch_size=30, epochs=3).draw(SeededBits(1), after=8))) == 4


def test_a_shuffled_epoch_is_not_cut() -> None:
    with pytest.raises(InvalidParameter, match="'after'"):
        next(ShuffledBatches(size=100, batch_size=30, epochs=3).draw(after=3))
