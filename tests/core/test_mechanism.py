import pytest

from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.mechanism import Mechanism
from sourdine.mechanisms import Gaussian, Laplace


@pytest.mark.parametrize(
    "description",
    [
        {},
        {"mechanism": "os.Path"},
        {"mechanism": "core.mechanism.Mechanism2"},
        {"mechanism": "mechanisms.Nothing"},
        {"mechanism": "nowhere.Laplace"},
        {"mechanism": "mechanisms.laplace.__import__"},
        {"mechanism": 5},
        {"mechanism": "mechanisms.Laplace"},
        {"mechanism": "mechanisms.Laplace", "scale": "1/0"},
        {"mechanism": "mechanisms.Laplace", "scale": "inf"},
        {"mechanism": "mechanisms.Laplace", "scale": "2", "colour": "red"},
    ],
)
def test_a_bad_description_is_refused(description: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        Mechanism.from_json(description)


def test_a_description_of_another_mechanism_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="not of a Gaussian"):
        Gaussian.from_json(Laplace(scale=1).to_json())


def test_a_distance_in_another_norm_is_refused() -> None:
    with pytest.raises(UnsupportedLoss, match="Gaussian measures changes in L2"):
        Gaussian(sigma=1).loss(Distance.l1(1))
