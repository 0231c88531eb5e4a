import pytest

from sourdine.accounting.accountant import with_margin


@pytest.mark.parametrize("value", [0.0, 1e-9, 0.3, 7.0])
@pytest.mark.parametrize("size", [0.0, 1.0, 40.0])
def test_a_margin_is_wider_than_the_rounding_of_ten_operations(value: float, size: float) -> None:
    margin = with_margin(value, size) - value
    assert 10 * 2.0**-52 * (value + size) <= margin <= 2.0**-40 * (value + size)
