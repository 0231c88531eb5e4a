import numpy as np
import pytest

from sourdine.core.threads import in_blocks, processors


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 1000])
def test_every_place_is_worked_on_once(size: int) -> None:
    seen = np.zeros(size, np.int64)

    def count(block: slice) -> None:
        seen[block] += 1

    in_blocks(count, size, block=8)
    assert (seen == 1).all()


def test_what_one_of_them_raises_is_raised() -> None:
    def fail(block: slice) -> None:
        if block.start == 16:
            raise ValueError("the third")

    with pytest.raises(ValueError, match="the third"):
        in_blocks(fail, 100, block=8)


def test_there_is_a_processor() -> None:
    assert processors() >= 1
