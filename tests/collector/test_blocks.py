"""Blocks: what goes in comes out, in the order of random numbers."""

import numpy as np

from sourdine.collector.blocks import loose_block, packed_block, random_numbers, unpacked_block


def test_a_block_is_read_back_in_the_order_of_its_numbers() -> None:
    rows = np.arange(60, dtype=np.uint8).reshape(20, 3)
    numbers = random_numbers(20)
    again, content = unpacked_block(packed_block(numbers, rows), 3)
    order = np.argsort(numbers)
    assert again.tolist() == numbers[order].tolist()
    assert content.tolist() == rows[order].tolist()
    loose = [(int(number), row.tobytes()) for number, row in zip(numbers, rows, strict=True)]
    assert loose_block(loose, 3)[1].tolist() == content.tolist()


def test_numbers_fit_a_column_with_a_sign_and_are_never_0() -> None:
    numbers = random_numbers(1000)
    assert len(set(numbers.tolist())) == 1000
    assert 0 < numbers.min() <= numbers.max() < 1 << 63
