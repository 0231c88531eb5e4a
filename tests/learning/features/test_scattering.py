from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.learning.features.pipeline import Features
from sourdine.learning.features.scattering import Scattering

SOURCE = torch.Generator().manual_seed(3)


def morlet(side: int, scale: int, turn: float, angles: int) -> NDArray[np.complex128]:
    """The wavelet in space, around pixel (0, 0) of a torus, from its formula."""
    width, slant = 0.8 * 2**scale, 4 / angles
    reach = np.arange(-2 * side, 3 * side)
    down, right = np.meshgrid(reach, reach, indexing="ij")
    along = down * np.cos(turn) + right * np.sin(turn)
    across = right * np.cos(turn) - down * np.sin(turn)
    bell = np.exp(-(along**2 + slant**2 * across**2) / (2 * width**2)) * slant / (2 * np.pi * width**2)
    wave = bell * np.exp(3j * np.pi / 4 / 2**scale * along)
    made = wave - bell * (wave.sum() / bell.sum())
    return made.reshape(5, side, 5, side).sum((0, 2))


def convolved(image: NDArray[np.float64], kernel: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Convolution on a torus, as the definition says, shift by shift."""
    total = np.zeros(image.shape, np.complex128)
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            total += kernel[i, j] * np.roll(image, (i, j), (0, 1))
    return total


def averaged(values: NDArray[np.float64], every: int, patch: int, count: int) -> NDArray[np.float64]:
    """Means around the centres of patches, weighted by a Gaussian on the pixels that are kept."""
    side = values.shape[0]
    places = np.arange(0, side, every)
    width = 0.8 * patch / 2
    rows = []
    for centre in range(patch, patch * (count + 1), patch):
        gaps = (places[:, None] - centre + side * np.arange(-2, 3)[None]) ** 2
        weights = np.exp(-gaps / (2 * width**2)).sum(1)
        rows.append(weights / weights.sum())
    matrix = np.array(rows)
    return matrix @ values[::every, ::every] @ matrix.T


def test_coefficients_are_those_of_the_definition() -> None:
    angles, patch = 2, 4
    image = torch.rand(8, 8, generator=SOURCE)
    found = Scattering(height=8, width=8, scales=2, angles=angles)(image[None, None])[0].float().numpy()
    padded = np.pad(image.numpy().astype(np.float64), 4, mode="reflect")
    turns = [np.pi * k / angles for k in range(angles)]
    small = [np.abs(convolved(padded, morlet(16, 0, turn, angles))) for turn in turns]
    large = [np.abs(convolved(padded, morlet(16, 1, turn, angles))) for turn in turns]
    deep = [np.abs(convolved(each, morlet(16, 1, turn, angles))) for each in small for turn in turns]
    expected = [
        averaged(padded, 1, patch, 2),
        *(averaged(each, 1, patch, 2) for each in small),
        *(averaged(each, 2, patch, 2) for each in large),
        *(averaged(each, 2, patch, 2) for each in deep),
    ]
    assert found.shape == (1 + 2 * angles + angles**2, 2, 2)
    np.testing.assert_allclose(found, np.stack(expected), rtol=2e-3, atol=2e-5)


def test_three_scales_are_those_of_the_definition() -> None:
    angles = 2
    image = torch.rand(16, 16, generator=SOURCE)
    shape = Scattering(height=16, width=16, scales=3, angles=angles)
    found = shape(image[None, None])[0].float().numpy()
    assert found.shape == shape.shape == (1 + 3 * angles + 3 * angles**2, 2, 2)
    padded = np.pad(image.numpy().astype(np.float64), 8, mode="reflect")
    turns = [np.pi * k / angles for k in range(angles)]
    middle = [np.abs(convolved(padded, morlet(32, 1, turn, angles))) for turn in turns]
    expected = []
    for each in middle:
        for turn in turns:
            # every second pixel is kept between the scales, and the wavelet is sampled as coarsely
            kept = np.abs(convolved(each[::2, ::2], 4 * morlet(32, 2, turn, angles)[::2, ::2]))
            whole = np.zeros((32, 32))
            whole[::2, ::2] = kept
            expected.append(averaged(whole, 4, 8, 2))
    np.testing.assert_allclose(found[-(angles**2) :], np.stack(expected), rtol=2e-3, atol=2e-5)


def test_a_wave_is_loudest_in_its_own_direction_and_size() -> None:
    angles = 8
    for scale in (0, 1):
        for angle in (0, 3, 5):
            turn = np.pi * angle / angles
            place = torch.arange(32, dtype=torch.float64)
            along = place[:, None] * np.cos(turn) + place[None] * np.sin(turn)
            wave = torch.cos(3 * np.pi / 4 / 2**scale * along)
            found = Scattering(height=32, width=32)(wave[None, None])[0]
            middle = found[1 : 1 + 2 * angles, 3:5, 3:5].float().mean((1, 2)).view(2, angles)
            assert divmod(int(middle.argmax()), angles) == (scale, angle)


def test_brightness_counts_in_proportion_and_colours_stand_one_after_the_other() -> None:
    images = torch.rand(3, 2, 16, 12, generator=SOURCE)
    shape = Scattering(height=16, width=12)
    found = shape(images).float()
    assert found.shape == (3, 2 * 81, 4, 3)
    torch.testing.assert_close(shape(images / 2).float(), found / 2, rtol=2e-3, atol=1e-5)
    torch.testing.assert_close(found[:, 81:], shape(images[:, 1:]).float())


def test_many_images_are_looked_at_one_by_one() -> None:
    images = torch.rand(130, 1, 12, 12, generator=SOURCE)
    shape = Scattering(height=12, width=12, angles=2)
    seen: list[int] = []

    def note(starts: Sequence[int]) -> Iterator[int]:
        for start in starts:
            seen.append(start)
            yield start

    whole = shape(images, note)
    assert seen == [0, 64, 128]
    torch.testing.assert_close(whole[100:101], shape(images[100:101]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scales": 0}, "The 'scales' of Scattering must lie between 1 and 6. Got 0."),
        ({"height": 7}, "The 'height' of Scattering must lie between 8 and 2^12. Got 7."),
        ({"angles": 1.5}, "The 'angles' of Scattering must be a whole number. Got 1.5."),
    ],
)
def test_bad_settings_name_themselves(change: dict[str, int], message: str) -> None:
    with pytest.raises(InvalidParameter) as problem:
        Scattering(**{"height": 28, "width": 28, **change})
    assert str(problem.value) == message


def test_images_of_another_size_are_refused() -> None:
    with pytest.raises(InvalidParameter, match=r"\(examples, colours, 28, 28\)\. Got \(1, 28, 28\)"):
        Scattering(height=28, width=28)(torch.zeros(1, 28, 28))


def test_features_of_an_image_do_not_depend_on_the_others() -> None:
    images = torch.rand(5, 1, 12, 12, generator=SOURCE)
    features = Features(height=12, width=12)
    whole = features(images)
    assert whole.shape == (5, 81 * 9)
    assert whole.dtype == torch.float16
    for i in range(5):
        torch.testing.assert_close(features(images[i : i + 1])[0], whole[i])


def test_groups_of_features_have_mean_0_and_variance_1_in_each_image() -> None:
    images = 100 * torch.rand(4, 1, 12, 12, generator=SOURCE)  # bright, so that the stability does not count
    grouped = Features(height=12, width=12)(images).float().view(4, 27, -1)
    torch.testing.assert_close(grouped.mean(2), torch.zeros(4, 27), atol=2e-3, rtol=0)
    torch.testing.assert_close(grouped.var(2, correction=0), torch.ones(4, 27), atol=1e-2, rtol=0)
    assert torch.isfinite(Features(height=12, width=12)(torch.zeros(1, 1, 12, 12))).all()


def test_features_are_computed_once_and_kept_for_their_owner(tmp_path: Path) -> None:
    images = torch.rand(3, 1, 12, 12, generator=SOURCE)
    features = Features(height=12, width=12)
    made = features.cached_rows(images, tmp_path)
    (file,) = tmp_path.iterdir()
    assert file.stat().st_mode & 0o077 == 0

    def never(starts: object) -> list[int]:
        raise AssertionError("computed again")

    assert torch.equal(features.cached_rows(images, tmp_path, never), made)
    features.cached_rows(images + 1, tmp_path)
    Features(height=12, width=12, groups=9).cached_rows(images, tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    file.write_bytes(file.read_bytes()[:50])
    with pytest.raises(InvalidParameter, match=r"cannot be read\. Remove the file"):
        features.cached_rows(images, tmp_path)


def test_groups_must_divide_the_channels() -> None:
    with pytest.raises(InvalidParameter, match="of Features must divide the 81 channels"):
        Features(height=28, width=28, groups=10)
