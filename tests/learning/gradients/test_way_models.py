"""Models as people write them, all held against their examples one by one."""

import pytest
import torch

from tests.learning.zoo import attention, graphs, images, numbers, recurrent
from tests.learning.zoo.case import Make, held, named

MODELS = named(numbers, images, graphs, recurrent, attention)
QUICK = [
    "tied_autoencoder",
    "temperature_with_dropout",
    "parameter_list",
    "lstm_cell",
    "bag_with_offsets",
    "lstm_with_time_first",
    "gpt_with_places_of_no_batch",
    "relative_bias_by_a_table",
    "windows_folded_into_the_batch",
    "packed_gru",
]

pytestmark = [
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.mark.parametrize("name", QUICK)
def test_some_models(name: str) -> None:
    check(MODELS[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(MODELS) - set(QUICK)))
def test_more_models(name: str) -> None:
    check(MODELS[name])


def check(make: Make) -> None:
    torch.manual_seed(7)
    _, distance = held(make())
    assert distance < 1e-5
