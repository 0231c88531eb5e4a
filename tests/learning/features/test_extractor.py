import hashlib
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from sourdine.core.errors import InvalidParameter
from sourdine.learning.features.extractor import ShowProgress, reduced
from sourdine.learning.features.pipeline import Extraction, Features, extractor_of
from sourdine.learning.features.random_filters import RandomFilters
from sourdine.learning.features.vgg import VggFeatures

SOURCE = torch.Generator().manual_seed(8)
FILTERS = RandomFilters(filters=4, side=3, patches=2)


def images(count: int = 5, colours: int = 1, side: int = 12) -> torch.Tensor:
    return torch.rand(count, colours, side, side, generator=SOURCE)


def test_reduction_takes_means_of_squares_and_cuts_off_what_is_over() -> None:
    pixels = images(1030, 2, 9)
    found = reduced(pixels, 4)
    assert found.shape == (1030, 2, 2, 2)
    by_hand = pixels[:, :, :8, :8].reshape(1030, 2, 2, 4, 2, 4).mean((3, 5))
    torch.testing.assert_close(found, by_hand)
    assert reduced(pixels, 1) is pixels
    assert reduced(pixels[:0], 2).shape == (0, 2, 4, 4)


def test_random_filters_are_convolutions_of_a_hash_that_is_the_same_everywhere() -> None:
    pixels = images(3, 2)
    weights = FILTERS._weights(2).numpy()
    np.testing.assert_allclose(weights.reshape(4, -1).mean(1), 0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(weights.reshape(4, -1), axis=1), 1, rtol=1e-5)
    by_hand = np.zeros((3, 8, 10, 10))
    for i, f, r, c in np.ndindex(3, 4, 10, 10):
        value = float((pixels[i, :, r : r + 3, c : c + 3].numpy() * weights[f]).sum())
        by_hand[i, f, r, c], by_hand[i, 4 + f, r, c] = max(value, 0), max(-value, 0)
    means = by_hand.reshape(3, 8, 2, 5, 2, 5).mean((3, 5)).reshape(3, -1)
    means -= means.mean(1, keepdims=True)
    means /= np.sqrt((means**2).mean(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(FILTERS(pixels).numpy(), means, atol=1e-4)
    raw = hashlib.shake_256(b"random filters 1").digest(4 * 9)
    first = [int.from_bytes(raw[at : at + 4], "little", signed=True) for at in range(0, 36, 4)]
    centred = [each - sum(first) / 9 for each in first]
    length = math.sqrt(sum(each**2 for each in centred))
    np.testing.assert_allclose(
        RandomFilters(filters=1, side=3)._weights(1).flatten(), np.array(centred) / length, rtol=1e-5
    )
    other = RandomFilters(filters=4, side=3, patches=2, seed=2)
    assert not torch.equal(other(pixels), FILTERS(pixels))


@pytest.mark.parametrize("features", [FILTERS, Features(height=12, width=12)])
def test_an_image_is_looked_at_alone(features: RandomFilters | Features) -> None:
    pixels = images(4)
    alone = torch.cat([features(pixels[i : i + 1]) for i in range(4)])
    torch.testing.assert_close(features(pixels), alone)
    assert features(pixels).shape == (4, features.numbers((1, 12, 12)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_features_are_computed_once_and_told_apart_by_type_images_and_settings(
    tmp_path: Path, dtype: torch.dtype
) -> None:
    pixels = images()
    starts: list[int] = []

    def watch(given: Sequence[int]) -> Sequence[int]:
        starts.extend(given)
        return given

    made = FILTERS.cached_rows(pixels, tmp_path, watch, dtype=dtype)
    assert made.dtype == dtype
    assert starts == [0]
    again = FILTERS.cached_rows(pixels, tmp_path, watch, dtype=dtype)
    assert torch.equal(made, again)
    assert starts == [0]
    torch.testing.assert_close(made.float(), FILTERS(pixels), atol=2e-3, rtol=2e-3)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    FILTERS.cached_rows(reduced(pixels, 2), tmp_path, dtype=dtype)
    FILTERS.cached_rows(pixels, tmp_path, dtype=torch.float32 if dtype == torch.float16 else torch.float16)
    RandomFilters(filters=4, side=3, patches=2, seed=9).cached_rows(pixels, tmp_path, dtype=dtype)
    assert len(list(tmp_path.iterdir())) == 4


def test_a_write_that_breaks_off_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "save", broken)
    with pytest.raises(KeyboardInterrupt):
        FILTERS.cached_rows(images(), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("raw", [b"", b"\x93NUMPY nonsense", None])
def test_a_damaged_file_is_told(tmp_path: Path, raw: bytes | None) -> None:
    pixels = images()
    FILTERS.cached_rows(pixels, tmp_path)
    (file,) = tmp_path.iterdir()
    if raw is None:
        np.save(file, np.zeros((3, 32), np.float16))  # of other images
    else:
        file.write_bytes(raw)
    with pytest.raises(InvalidParameter, match="Remove the file, and they are computed again"):
        FILTERS.cached_rows(pixels, tmp_path)


def test_numbers_that_half_precision_cannot_hold_become_its_largest() -> None:
    class Loud(RandomFilters):
        def __call__(self, given: torch.Tensor, progress: ShowProgress = iter) -> torch.Tensor:
            return torch.tensor([[1e9, -1e9, 1.0]])

    assert Loud().rows(images(1)).tolist() == [[65504.0, -65504.0, 1.0]]


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        (Extraction.SCATTERING, Features),
        (Extraction.RANDOM, RandomFilters),
        (Extraction.VGG13, VggFeatures),
        (Extraction.VGG16, VggFeatures),
    ],
)
def test_extractors_by_name(kind: Extraction, type_: type) -> None:
    made = extractor_of(kind, (3, 32, 32))
    assert type(made) is type_
    if isinstance(made, VggFeatures):
        assert f"vgg{made.depth}" == kind


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: reduced(images(), 3), "The 'by' of reduced must be one of 1, 2, 4. Got 3."),
        (lambda: reduced(torch.zeros(3, 7), 2), "Only images can be reduced"),
        (lambda: extractor_of(Extraction.RANDOM, (12,)), "The examples are of 12. Leave the features out."),
        (lambda: extractor_of(Extraction.RANDOM, (1, 9, 12)), "images of at least 10 x 10 pixels"),
        (
            lambda: extractor_of(Extraction.RANDOM, (1, 28, 28), weights=Path("w")),
            "The 'weights' of the features must be left out unless the features are VGG's. Got 'w'.",
        ),
        (
            lambda: extractor_of(Extraction.SCATTERING, (1, 28, 28), patches=3),
            "The 'patches' of the features",
        ),
        (lambda: Features(height=28, width=28).numbers((1, 12, 12)), "images of 28 x 28 pixels"),
        (lambda: RandomFilters(filters=0), "The 'filters' of RandomFilters"),
        (lambda: FILTERS.rows(images(), dtype=torch.int64), "The 'dtype' of Extractor must be float16 or"),
    ],
)
def test_what_does_not_fit_is_said(act: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidParameter) as problem:
        act()
    assert message in str(problem.value)
