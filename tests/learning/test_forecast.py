import pytest
import torch
from torch import nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import StepForecast, measure, memory_of
from sourdine.learning.forecast import _few_and_many
from sourdine.learning.memory.model import Stage

DATA = (torch.zeros(1, 1000), torch.zeros(1, dtype=torch.int64))


def grown(forecast: StepForecast) -> float:
    return (forecast.memory.peak(3000) - forecast.memory.peak(2000)) / 1000


def test_memory_grows_by_inputs_and_activations_of_a_unit() -> None:
    wide = measure(nn.Sequential(nn.Linear(1000, 50), nn.Linear(50, 2)), DATA)
    assert wide.parameters == 1000 * 50 + 50 + 50 * 2 + 2
    assert wide.memory.peak(1) >= 2 * 4 * wide.parameters
    assert wide.memory.live[Stage.MODEL].fixed == 4 * wide.parameters
    assert 4000 <= grown(wide) <= 6 * 4000
    several = measure(nn.Sequential(nn.Linear(1000, 50), nn.Linear(50, 2)), DATA, examples_per_unit=3)
    assert grown(several) > 2 * grown(wide)


def test_the_physical_batch_fits_into_the_memory_given() -> None:
    model = nn.Linear(1000, 2)
    rich = measure(model, DATA, memory=1 << 34)
    poor = measure(model, DATA, memory=1 << 20)
    assert rich.physical_batch_size == 1024
    assert 1 <= poor.physical_batch_size < rich.physical_batch_size
    assert poor.memory.peak(poor.physical_batch_size, parts=True) <= 1 << 20
    assert poor.memory.peak(2 * poor.physical_batch_size, parts=True) > 1 << 20
    assert measure(model, DATA, memory=1).physical_batch_size == 1


def test_the_model_and_the_data_are_not_touched() -> None:
    model = nn.Linear(1000, 2)
    before = model.weight.clone()
    measure(model, DATA)
    assert torch.equal(model.weight, before)
    assert model.weight.grad is None


def test_bad_memory_names_itself() -> None:
    with pytest.raises(InvalidParameter, match="'memory'"):
        measure(nn.Linear(1000, 2), DATA, memory=0)


def test_quick_steps_are_timed_on_batches_that_last(monkeypatch: pytest.MonkeyPatch) -> None:
    # a clock that is off by up to 5 ms, with 10 us an example: told from 32 examples it would be chance
    seen: list[int] = []

    def seconds(task: object, step: object, examples: object, count: int, examples_per_unit: int) -> float:
        seen.append(count)
        return 0.001 + 1e-5 * count + (0.005 if count > 4 else 0.0)

    monkeypatch.setattr("sourdine.learning.forecast._seconds", seconds)
    assert measure(nn.Linear(1000, 2), DATA, memory=1 << 34).seconds_each < 2e-5
    assert max(seen) == 1024
    seen.clear()
    measure(nn.Linear(1000, 2), DATA, memory=1 << 20)
    assert max(seen) <= 256  # no more than fit at a time


@pytest.mark.parametrize("load", [(), (0,), (0, 1), (1,), (0, 1, 2)])
def test_a_burst_of_other_work_does_not_hide_what_an_example_takes(load: tuple[int, ...]) -> None:
    # a clock by which a step takes 10 ms and 4 ms an example, and 120 ms more while others are at work
    looked: list[int] = []

    def seconds(count: int) -> float:
        looked.append(count)
        return 0.01 + 0.004 * count + 0.12 * (len(looked) - 1 in load)

    few, many, count = _few_and_many(seconds, 1024)
    quick = (many - few) / (count - 4)
    forecast = few - 4 * quick + 500 * quick
    assert forecast == pytest.approx(0.01 + 0.004 * 500)


def test_a_machine_that_does_something_else_does_not_make_a_forecast_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    quiet = measure(nn.Linear(1000, 2), DATA, memory=1 << 24)
    clock = iter(range(0, 1_000_000, 1000))  # a quarter of an hour goes by whenever somebody looks
    monkeypatch.setattr("sourdine.learning.forecast.time.perf_counter", lambda: float(next(clock)))
    busy = measure(nn.Linear(1000, 2), DATA, memory=1 << 24)
    assert busy.seconds + 64 * busy.seconds_each < 1 + 100 * (quiet.seconds + 64 * quiet.seconds_each)


def test_a_model_without_numbers_is_forecast_like_one_with_them() -> None:
    def tied() -> nn.Module:
        model = nn.Sequential(nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 20))
        model[2].weight = model[0].weight
        return model

    example = (torch.zeros(1, 20), torch.zeros(1, dtype=torch.int64))
    real = measure(tied(), example)
    with torch.device("meta"):
        shapes = tied()
    for absent in (measure(shapes, example), measure(tied(), example, device="meta")):
        assert absent.memory.peak(100) == pytest.approx(real.memory.peak(100), rel=0.02)
        assert absent.parameters == real.parameters == 440


def test_a_small_batch_is_forecast_by_few_examples() -> None:
    example = (torch.zeros(1, 20), torch.zeros(1, dtype=torch.int64))
    few, many = (memory_of(nn.Linear(20, 2), example, batch_size=size) for size in (20, 200))
    assert [max(units for units, _ in each.most[Stage.MORE].points) for each in (few, many)] == [23, 389]
    assert few.peak(20) == pytest.approx(many.peak(20), rel=0.05)


def test_where_a_batch_fits_many_times_three_dry_steps_are_enough() -> None:
    example, model = (torch.zeros(1, 20), torch.zeros(1, dtype=torch.int64)), nn.Linear(20, 2)
    whole = memory_of(model, example, batch_size=200)
    peak = whole.peak(200, parts=True)
    ample, scarce = (memory_of(model, example, batch_size=200, room=room) for room in (8 * peak, 2 * peak))
    assert [max(units for units, _ in each.most[Stage.MORE].points) for each in (ample, scarce)] == [11, 389]
    assert ample.peak(200, parts=True) == pytest.approx(peak, rel=0.1)
