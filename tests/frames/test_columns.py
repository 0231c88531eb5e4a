"""Columns as they are declared: what follows from a declaration follows from that of a copy, too."""

from fractions import Fraction

from sourdine.frames import Real


def test_a_copy_with_another_granularity_has_another_step() -> None:
    column = Real(lower=-1.0, upper=2.0)
    assert column.step == Fraction(1, 1 << 19)
    assert column.model_copy(update={"granularity": 0.5}).step == Fraction(1, 2)
    assert column.model_copy(update={"upper": 1e6}).step == 1 - Fraction(1, 2)
