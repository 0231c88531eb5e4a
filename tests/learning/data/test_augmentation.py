"""Images changed at random: each by itself, by the laws that are stated, and at no cost."""

from typing import Any

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor, nn
from torch.nn import functional

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Augmentation, Engine, Flat, Step, TrainingPlan, UnitIds, fit
from sourdine.learning.baseline import fit_without_privacy
from sourdine.learning.data import augmentation
from sourdine.learning.data.trees import Tree, count_of
from sourdine.testing import SeededBits

ALL = Augmentation(flip=True, shift=2, rotate=20, crop=0.5, blur=1)


def images(count: int, side: int = 8, seed: int = 1) -> Tensor:
    return torch.rand((count, 3, side, side), generator=torch.Generator().manual_seed(seed))


def test_no_image_hangs_on_another() -> None:
    held = images(6)
    other = held.clone()
    other[2] = images(1, seed=9)[0]
    first, second = (ALL.apply(each, SeededBits(3)) for each in (held, other))
    kept = [i for i in range(6) if i != 2]
    assert torch.equal(first[kept], second[kept])
    assert not torch.equal(first[2], second[2])


def test_no_image_hangs_on_how_far_others_are_blurred(monkeypatch: pytest.MonkeyPatch) -> None:
    held, drawn = images(2), iter([np.array([0.2, 0.3]), np.array([0.2, 1.0])])
    monkeypatch.setattr(augmentation, "_uniform", lambda count, bits: next(drawn))
    first, second = (Augmentation(blur=2).apply(held, SeededBits(1)) for _ in range(2))
    assert torch.equal(first[0], second[0])


def test_a_window_is_as_large_as_declared() -> None:
    """Of an image that is its own coordinates, a window shows a range of them."""
    side = torch.linspace(-1, 1, 101)
    held = torch.stack([side.expand(101, 101), side[:, None].expand(101, 101)]).expand(400, 2, 101, 101)
    made = Augmentation(crop=0.25).apply(held.clone(), SeededBits(4))
    wide = (made[:, 0].amax((1, 2)) - made[:, 0].amin((1, 2))) / 2
    high = (made[:, 1].amax((1, 2)) - made[:, 1].amin((1, 2))) / 2
    area = wide * high
    assert 0.23 < float(area.min()) < 0.35
    assert float(area.max()) <= 1.0
    assert 0.7 < float((wide / high).min()) < float((wide / high).max()) < 1.4


def test_half_of_all_are_mirrored() -> None:
    held = images(2000, side=3)
    made = Augmentation(flip=True).apply(held, SeededBits(1))
    same = (made == held).flatten(1).all(1)
    assert torch.equal(made[~same], held[~same].flip(-1))
    assert abs(float(same.float().mean()) - 0.5) < 0.06


def test_every_shift_is_as_likely() -> None:
    held = torch.zeros(5000, 1, 5, 5)
    held[:, 0, 2, 2] = 1
    made = Augmentation(shift=1).apply(held, SeededBits(2))
    seen = made[:, 0, 1:4, 1:4].mean(0)
    assert float(made.sum()) == 5000
    assert torch.all((seen - 1 / 9).abs() < 0.025)


def test_turned_by_a_right_angle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augmentation, "_uniform", lambda count, bits: np.ones(count))
    held = images(2, side=6)
    made = Augmentation(rotate=90).apply(held, SeededBits(1))
    assert min(float((made - torch.rot90(held, turns, (2, 3))).abs().max()) for turns in (1, 3)) < 1e-5


def test_blurred_by_a_gaussian(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(augmentation, "_uniform", lambda count, bits: np.ones(count))
    held = images(2, side=9)
    made = Augmentation(blur=1).apply(held, SeededBits(1))
    true = [
        [gaussian_filter(part, 1.0, mode="nearest", truncate=3.0) for part in one] for one in held.numpy()
    ]
    assert made.numpy() == pytest.approx(np.array(true), abs=1e-5)


def test_whole_numbers_stay_whole() -> None:
    held = (255 * images(3)).to(torch.uint8)
    made = ALL.apply(held, SeededBits(1))
    assert made.dtype == torch.uint8
    assert ALL.apply(held[:0], SeededBits(1)).shape == held[:0].shape


@pytest.mark.parametrize("owned", [pytest.param(False, marks=pytest.mark.slow), True])
def test_copies_are_clipped_as_one(monkeypatch: pytest.MonkeyPatch, owned: bool) -> None:
    seen: list[tuple[int, int]] = []
    before = Step.take

    def take(self: Step, losses: Any, batch: Tree, *, examples_per_unit: int = 1) -> None:
        seen.append((count_of(batch), examples_per_unit))
        before(self, losses, batch, examples_per_unit=examples_per_unit)

    monkeypatch.setattr(Step, "take", take)
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 2))
    data = images(40), torch.arange(40) % 2
    plan = TrainingPlan(noise_multiplier=1, delta=1e-3, epochs=1, batch_size=10)
    units = UnitIds(np.arange(40) // 2, max_examples=2) if owned else None
    changed = Augmentation(shift=1, copies=3)
    found = fit(model, data, plan, units=units, augmentation=changed, bits=SeededBits(4))
    plain = fit(model, data, plan, units=units, bits=SeededBits(4))
    assert found.epsilon == plain.epsilon
    per_unit = 3 * (2 if owned else 1)
    with_copies = [each for each in seen if each[1] == per_unit]
    assert with_copies
    assert all(count % per_unit == 0 for count, _ in with_copies)


def test_versions_are_averaged() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 2))
    held, labels = images(1), torch.tensor([1])
    four = held.expand(4, 3, 8, 8)
    sums = []
    for inputs, weights, per_unit in ((held, 1.0, 1), (four, 0.25, 4)):
        found = Engine(model, Flat()).clipped_sum(
            lambda inputs=inputs, weights=weights: (
                weights  # type: ignore[misc]
                * functional.cross_entropy(model(inputs), labels.expand(len(inputs)), reduction="none")
            ),
            examples_per_unit=per_unit,
        )
        sums.append(torch.cat([each.flatten() for each in found.values()]))
    one, averaged = sums
    assert torch.allclose(one, averaged, atol=1e-6)  # four equal versions count as the image itself


def test_what_cannot_be_augmented_is_refused() -> None:
    plan = TrainingPlan(noise_multiplier=1, delta=1e-3, epochs=1, batch_size=10)
    rows = torch.zeros(40, 5), torch.zeros(40, dtype=torch.int64)
    with pytest.raises(InvalidParameter, match="Only images"):
        fit(nn.Linear(5, 2), rows, plan, augmentation=Augmentation(flip=True))
    with pytest.raises(InvalidParameter, match="be an Augmentation"):
        fit(nn.Linear(5, 2), rows, plan, augmentation="flip")  # type: ignore[arg-type]
    for wrong in ({"shift": -1}, {"rotate": 200}, {"blur": 99}, {"copies": 0}, {"copies": 2}, {"flip": 1}):
        with pytest.raises(InvalidParameter):
            Augmentation(**wrong)  # type: ignore[arg-type]


def test_without_privacy_too() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(192, 2))
    found = fit_without_privacy(
        model,
        (images(8), torch.arange(8) % 2),
        epochs=1,
        batch_size=4,
        optimizer=lambda values: torch.optim.SGD(values, lr=0.1),
        augmentation=Augmentation(flip=True, copies=2),
    )
    assert found.history[-1].step == 2
