from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Execution, TrainingPlan, fit
from sourdine.learning.baseline import fit_without_privacy
from sourdine.learning.features.pipeline import Features
from sourdine.learning.models import RECIPES, Model, Whole, cnn, features_of, linear, mlp, model_of, recipe_of

SOURCE = torch.Generator().manual_seed(4)


def test_the_network_is_that_of_the_source() -> None:
    made = cnn((1, 28, 28), 10)
    shapes = [tuple(value.shape) for value in made.parameters()]
    assert shapes == [(16, 1, 8, 8), (16,), (32, 16, 4, 4), (32,), (32, 512), (32,), (10, 32), (10,)]
    assert made[0].stride == made[3].stride == (2, 2)
    assert made[0].padding == (3, 3)
    assert sum(isinstance(layer, nn.MaxPool2d) for layer in made) == 2
    assert made(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    assert cnn((3, 32, 32), 4)(torch.zeros(1, 3, 32, 32)).shape == (1, 4)


def test_models_by_name_take_what_they_are_for() -> None:
    images = torch.rand(2, 1, 28, 28, generator=SOURCE)
    for kind in set(Model) - {Model.VGG13, Model.VGG16}:  # which have tests of their own
        features = features_of(kind, (1, 28, 28))
        inputs = images if features is None else features(images).float()
        made = model_of(kind, tuple(inputs.shape[1:]), 7)
        assert made(inputs).shape == (2, 7)
        assert kind in RECIPES
    assert features_of(Model.SCATTERING, (3, 32, 32)) == Features(height=32, width=32)


@pytest.mark.parametrize("kind", [Model.CNN, Model.MLP, Model.LINEAR])
def test_models_train_privately(kind: Model) -> None:
    data = (torch.rand(20, 1, 28, 28, generator=SOURCE), torch.randint(0, 3, (20,), generator=SOURCE))
    made = model_of(kind, (1, 28, 28), 3)
    trained = fit(
        made,
        data,
        TrainingPlan(noise_multiplier=1.0, delta=1e-3, steps=2, batch_size=5),
        execution=Execution(physical_batch_size=8),
    )
    moved = zip(made.parameters(), trained.model.parameters(), strict=True)
    assert all(not torch.equal(before, after) for before, after in moved)


def test_the_usual_batch_is_a_part_of_the_data() -> None:
    usual = RECIPES[Model.SCATTERING]
    assert [usual.batch_size_for(size) for size in (5, 400, 60_000)] == [1, 50, 4096]
    assert RECIPES[Model.CNN].batch_size_for(60_000) is None


@pytest.mark.parametrize("epsilon", [None, 0.5, 1.99])
def test_scattering_is_trained_shortly_on_a_small_budget(epsilon: float | None) -> None:
    found = recipe_of(Model.SCATTERING, epsilon)
    assert (found.epochs, found.learning_rate) == (25, 0.25)
    assert found == RECIPES[Model.SCATTERING]


@pytest.mark.parametrize("epsilon", [2.0, 3.0, 8.0])
def test_scattering_is_trained_longer_on_an_ample_budget(epsilon: float) -> None:
    found = recipe_of(Model.SCATTERING, epsilon)
    assert found == replace(RECIPES[Model.SCATTERING], epochs=40, learning_rate=0.5)
    others = [kind for kind in Model if kind is not Model.SCATTERING]
    assert all(recipe_of(kind, epsilon) == RECIPES[kind] for kind in others)


def test_a_linear_model_starts_at_zero_and_a_perceptron_has_its_layers() -> None:
    assert not any(value.any() for value in linear((1, 4, 4), 3).parameters())
    widths = [layer.out_features for layer in mlp((5,), 3, hidden=(8, 4)) if isinstance(layer, nn.Linear)]
    assert widths == [8, 4, 3]


def test_a_head_with_its_features_takes_images() -> None:
    features = Features(height=12, width=12)
    images = torch.rand(2, 1, 12, 12, generator=SOURCE)
    head = mlp((features(images).shape[1],), 3)
    whole = Whole(features, head)
    torch.testing.assert_close(whole(images), head(features(images).float()))
    large = images.repeat_interleave(2, 2).repeat_interleave(2, 3)
    torch.testing.assert_close(Whole(features, head, reduce=2)(large), whole(images))
    assert list(whole.state_dict()) == [f"head.{name}" for name in head.state_dict()]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: cnn((5,), 2), "This model is for images"),
        (lambda: features_of(Model.SCATTERING, (12,)), "Take the model mlp or linear."),
        (lambda: cnn((1, 20, 28), 2), "The 'shape' of cnn must be of 24 x 24 pixels at least."),
        (lambda: model_of(Model.MLP, (5,), 1), "The 'classes' of model_of"),
        (lambda: mlp((5,), 2, hidden=(0,)), "The 'hidden' of mlp"),
        (lambda: model_of(Model.LINEAR, (5,), 2, (3,)), "must be left out for the model linear. Got (3,)."),
        (lambda: model_of(Model.VGG16, (1, 28, 28), 2), "one or three colours and 32 x 32 pixels at least"),
    ],
)
def test_what_does_not_fit_is_said(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidParameter) as problem:
        make()
    assert message in str(problem.value)


def test_ordinary_training_is_plain_descent_on_the_mean_loss() -> None:
    inputs, targets = torch.randn(6, 3, generator=SOURCE), torch.tensor([0, 1, 1, 0, 1, 0])
    start = nn.Linear(3, 2)
    found = fit_without_privacy(
        start,
        (inputs, targets),
        epochs=3,
        batch_size=6,
        optimizer=lambda values: torch.optim.SGD(values, lr=0.5),
        public=(inputs, targets),
    )
    weight, bias = (value.detach().clone() for value in (start.weight, start.bias))
    for _ in range(3):
        chances = torch.softmax(inputs @ weight.T + bias, 1) - nn.functional.one_hot(targets, 2)
        weight -= 0.5 * chances.T @ inputs / 6
        bias -= 0.5 * chances.mean(0)
    torch.testing.assert_close(found.model.get_parameter("weight").detach(), weight)
    torch.testing.assert_close(found.model.get_parameter("bias").detach(), bias)
    hits = (inputs @ weight.T + bias).argmax(1) == targets
    assert found.accuracy == pytest.approx(float(hits.float().mean()))
    assert [each.epoch for each in found.history] == [1, 2, 3]
    assert all(value.grad is None for value in found.model.parameters())
