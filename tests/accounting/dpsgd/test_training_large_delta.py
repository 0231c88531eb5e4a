import pytest

from sourdine.accounting.dpsgd.training import warn_of_delta


@pytest.mark.parametrize(
    ("delta", "warns"), [(1e-9, False), (1 / 1024, False), (1 / 1023, True), (0.1, True)]
)
def test_a_delta_above_one_in_so_many_is_told(delta: float, warns: bool) -> None:
    assert bool(warn_of_delta(delta, 1024, "the 1,024 units")) == warns


def test_it_names_both_numbers() -> None:
    told = warn_of_delta(0.1, 300, "the declared size of 300")
    assert told.startswith("The delta of 0.1 is above 1 divided by the declared size of 300:")
