from sourdine.core.distance import Distance
from tests.errors import refusal_of


def test_as_many_numbers_may_change_as_there_can_be() -> None:
    assert Distance.l1(1, coordinates=2**62).coordinates == 2**62
    for count in (0, 2**62 + 1):
        with refusal_of("coordinates", "Distance"):
            Distance.l1(1, coordinates=count)
