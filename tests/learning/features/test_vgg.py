from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch
from torch import nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import Execution, TrainingPlan, fit
from sourdine.learning.features.vgg import BLOCKS, DEVIATIONS, MEANS, VGG, VggFeatures, coloured
from sourdine.learning.models import Model, model_of

SMALL = ((2, 2), (3,), (4,), (4,), (5, 5))
# of the published networks: where the convolutions stand among the features, and what comes in and goes out
PUBLISHED = {
    13: {
        0: (3, 64), 2: (64, 64), 5: (64, 128), 7: (128, 128), 10: (128, 256), 12: (256, 256),
        15: (256, 512), 17: (512, 512), 20: (512, 512), 22: (512, 512),
    },
    16: {
        0: (3, 64), 2: (64, 64), 5: (64, 128), 7: (128, 128), 10: (128, 256), 12: (256, 256), 14: (256, 256),
        17: (256, 512), 19: (512, 512), 21: (512, 512), 24: (512, 512), 26: (512, 512), 28: (512, 512),
    },
}  # fmt: skip


def small(**change: Any) -> VGG:
    torch.manual_seed(3)
    return VGG(**{"classes": 3, "hidden": (6,), "blocks": SMALL, **change})


def weights(path: Path, change: Mapping[str, object] = MappingProxyType({}), *, zipped: bool = True) -> Path:
    held = {
        f"features.{name}": torch.rand(value.shape) for name, value in small().features.state_dict().items()
    }
    torch.save(
        {**held, "classifier.0.weight": torch.zeros(2), **change}, path, _use_new_zipfile_serialization=zipped
    )
    return path


def dense_layers(model: nn.Module) -> list[nn.Linear]:
    return [each for each in model.get_submodule("classifier").children() if isinstance(each, nn.Linear)]


@pytest.mark.parametrize("depth", [13, 16])
def test_names_and_shapes_are_those_of_the_published_files(depth: int) -> None:
    with torch.device("meta"):
        made = VGG(classes=1000, blocks=BLOCKS[depth])
    expected: dict[str, tuple[int, ...]] = {}
    for place, (given, made_of) in PUBLISHED[depth].items():
        expected[f"features.{place}.weight"] = (made_of, given, 3, 3)
        expected[f"features.{place}.bias"] = (made_of,)
    for place, (given, made_of) in {0: (25088, 4096), 3: (4096, 4096), 6: (4096, 1000)}.items():
        expected[f"classifier.{place}.weight"] = (made_of, given)
        expected[f"classifier.{place}.bias"] = (made_of,)
    assert {name: tuple(value.shape) for name, value in made.state_dict().items()} == expected
    count = sum(value.numel() for value in made.parameters())
    assert count == {13: 133_047_848, 16: 138_357_544}[depth]  # as published


def test_the_sources_perceptron_has_25088_inputs_and_512_units() -> None:
    with torch.device("meta"):
        made = model_of(Model.VGG16, (3, 224, 224), 102)
    layers = dense_layers(made)
    assert [(each.in_features, each.out_features) for each in layers] == [(25088, 512), (512, 102)]
    with torch.device("meta"):
        deeper = model_of(Model.VGG13, (3, 32, 32), 10, (512, 64))
    layers = [
        layer for layer in deeper.get_submodule("classifier").children() if isinstance(layer, nn.Linear)
    ]
    assert [each.out_features for each in layers] == [512, 64, 10]


def test_colours_are_shifted_by_public_numbers_and_grey_is_all_colours() -> None:
    pixels = torch.rand(2, 3, 4, 4)
    for i in range(3):
        torch.testing.assert_close(coloured(pixels)[:, i], (pixels[:, i] - MEANS[i]) / DEVIATIONS[i])
    grey = torch.rand(2, 1, 4, 4)
    assert torch.equal(coloured(grey), coloured(grey.repeat(1, 3, 1, 1)))


@pytest.mark.parametrize("zipped", [True, False])  # the published files are not
def test_weights_of_a_file_are_taken_over(tmp_path: Path, zipped: bool) -> None:
    path = weights(tmp_path / "w.pth", zipped=zipped)
    made = small()
    made.load_convolutions(path)
    held = torch.load(path, weights_only=True)
    for name, value in made.features.state_dict().items():
        assert torch.equal(value, held[f"features.{name}"])
    images = torch.rand(3, 3, 64, 64)
    features = VggFeatures(weights=path, blocks=SMALL)
    expected = made.features(coloured(images)).flatten(1)
    torch.testing.assert_close(features(images), expected.detach())
    assert features(images).shape == (3, features.numbers((3, 64, 64))) == (3, 5 * 2 * 2)


def test_features_are_those_of_the_frozen_network_also_stretched_as_in_the_source() -> None:
    images = torch.rand(2, 3, 64, 96)
    plain, stretched = VggFeatures(blocks=SMALL), VggFeatures(blocks=SMALL, patches=7)
    assert plain(images).shape == (2, 5 * 2 * 3)
    assert stretched(images).shape == (2, 5 * 49)
    for wide in (0, 1):  # the corners of both are the same numbers
        assert torch.equal(
            plain(images).view(2, 5, 2, 3)[:, :, 0, -wide], stretched(images).view(2, 5, 7, 7)[:, :, 0, -wide]
        )
    alone = torch.cat([plain(images[i : i + 1]) for i in range(2)])
    torch.testing.assert_close(plain(images), alone)
    assert not any(value.requires_grad for value in plain.network.parameters())


def test_random_weights_are_the_same_each_time_and_leave_the_global_generator_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    first, second = VggFeatures(blocks=SMALL).digest, VggFeatures(blocks=SMALL).digest
    assert first == second
    assert torch.equal(torch.rand(1), expected)


def test_kept_features_are_told_apart_by_weights(tmp_path: Path) -> None:
    images = torch.rand(2, 3, 32, 32)
    (tmp_path / "kept").mkdir()
    for features in (
        VggFeatures(blocks=SMALL),
        VggFeatures(blocks=SMALL, weights=weights(tmp_path / "a.pth")),
        VggFeatures(blocks=SMALL, weights=weights(tmp_path / "b.pth", {"features.0.bias": torch.ones(2)})),
        VggFeatures(blocks=SMALL, patches=2),
    ):
        features.cached_rows(images, tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 4


class _Bad:
    def __reduce__(self) -> tuple[object, ...]:
        return print, ("run",)


@pytest.mark.parametrize(
    ("held", "message"),
    [
        (None, "cannot be read (No such file or directory). Check the path."),
        (b"", "holds no weights. It must be a state_dict"),
        (b"no weights at all", "holds no weights"),
        ([1, 2], "holds no weights"),
        ({"model": {}}, "holds no weights"),
        (_Bad(), "holds no weights"),
        ({}, "'features.0.weight' must be of (2, 3, 3, 3) and is not there."),
        ({"features.0.weight": torch.zeros(4, 3, 3, 3)}, "must be of (2, 3, 3, 3) and is of (4, 3, 3, 3)"),
    ],
)
def test_a_bad_file_is_told_in_a_sentence_and_never_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], held: object, message: str
) -> None:
    path = tmp_path / "w.pth"
    if isinstance(held, bytes):
        path.write_bytes(held)
    elif held is not None:
        torch.save(held, path)
    with pytest.raises(InvalidParameter) as problem:
        small().load_convolutions(path)
    assert message in str(problem.value)
    assert str(path) in str(problem.value)
    assert capsys.readouterr().out == ""


def test_weights_that_are_not_finite_or_cut_short_are_told(tmp_path: Path) -> None:
    path = weights(tmp_path / "w.pth", {"features.0.bias": torch.tensor([1.0, float("nan")])})
    with pytest.raises(InvalidParameter, match=r"not finite, in 'features\.0\.bias'"):
        small().load_convolutions(path)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(InvalidParameter, match="holds no weights"):
        small().load_convolutions(path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VggFeatures(depth=19), "The 'depth' of VggFeatures must be one of 13, 16. Got 19."),
        (lambda: VggFeatures(patches=0), "The 'patches' of VggFeatures"),
        (lambda: VggFeatures().numbers((3, 28, 28)), "at least 32 x 32 pixels"),
        (lambda: VggFeatures().numbers((2, 32, 32)), "one or three colours"),
        (lambda: VggFeatures().numbers((12,)), "VGG is for images"),
        (lambda: small(dropout=1), "The 'dropout' of VGG"),
        (lambda: small(hidden=(0,)), "The 'hidden' of VGG"),
        (lambda: small(classes=1), "The 'classes' of VGG"),
    ],
)
def test_what_does_not_fit_is_said(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidParameter) as problem:
        make()
    assert message in str(problem.value)


def test_the_whole_network_trains_privately_its_convolutions_too() -> None:
    data = (torch.rand(12, 3, 32, 32), torch.arange(12) % 3)
    made = small(dropout=0.2)
    trained = fit(
        made,
        data,
        TrainingPlan(noise_multiplier=1.0, delta=1e-3, steps=2, batch_size=6),
        execution=Execution(physical_batch_size=6),
    )
    moved = {
        name
        for (name, before), after in zip(made.named_parameters(), trained.model.parameters(), strict=True)
        if not torch.equal(before, after)
    }
    assert {name.split(".")[0] for name in moved} == {"features", "classifier"}
    assert len(moved) == len(list(made.parameters()))
