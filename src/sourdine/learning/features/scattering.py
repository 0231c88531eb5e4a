"""Scattering coefficients: how much of each size and direction there is in the patches of an image.

They are fixed: no example is looked at to make them, so they cost no privacy, and a linear model of them
learns from few and noisy steps.
"""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.features.extractor import ShowProgress

_WIDTH = 0.8  # of the finest wavelet, in pixels
_FREQUENCY = 3 * math.pi / 4
_WRAPS = 2  # how often a filter goes around the image, to either side
_AT_ONCE = 64


@dataclass(frozen=True, kw_only=True)
class Scattering:
    """Scattering coefficients of orders 0, 1 and 2, for images of one size (Bruna, Mallat 2013).

    Images are convolved with Morlet wavelets of `scales` sizes (each twice the last) and `angles` directions;
    the absolute values are convolved with the larger wavelets once more; everything is averaged over patches
    of 2^scales pixels. Images of 28 x 28 with two scales and eight angles give 81 x 7 x 7 numbers.

    >>> Scattering(height=28, width=28).shape
    (81, 7, 7)
    >>> found = Scattering(height=8, width=8, scales=1, angles=2)(torch.ones(1, 1, 8, 8))
    >>> [round(float(each), 6) + 0 for each in found[0, :, 1, 1]]  # nothing changes in a grey image
    [1.0, 0.0, 0.0]
    """

    height: int
    width: int
    scales: int = 2
    angles: int = 8

    def __post_init__(self) -> None:
        check.keep(self, scales=check.integer("Scattering", "scales", self.scales, 1, 6))
        check.keep(self, angles=check.integer("Scattering", "angles", self.angles, 1, 64))
        for name, size in (("height", self.height), ("width", self.width)):
            check.keep(self, **{name: check.integer("Scattering", name, size, 2 * 2**self.scales, 1 << 12)})

    @property
    def channels(self) -> int:
        """How many numbers there are for a patch."""
        pairs = self.scales * (self.scales - 1) // 2
        return 1 + self.angles * self.scales + self.angles**2 * pairs

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of the coefficients of an image of one colour."""
        patch = 2**self.scales
        return self.channels, -(-self.height // patch), -(-self.width // patch)

    def __call__(self, images: Tensor, progress: ShowProgress = iter) -> Tensor:
        """The coefficients of images (examples, colours, height, width), one colour after the other."""
        if images.ndim != 4 or images.shape[2:] != (self.height, self.width):
            raise InvalidParameter(
                f"Images for these scattering features must have the axes (examples, colours, {self.height}, "
                f"{self.width}). Got {tuple(images.shape)}."
            )
        colours = images.shape[1]
        channels, *patches = self.shape
        features = torch.empty(len(images), colours * channels, *patches, dtype=torch.float16)

        def put(start: int) -> None:
            with torch.no_grad():  # which is a thread's own affair
                some = images[start : start + _AT_ONCE].to(torch.float32)
                coefficients = self._coefficients(some.flatten(0, 1))
                features[start : start + _AT_ONCE] = coefficients.view(-1, *features.shape[1:])

        starts = range(0, len(images), _AT_ONCE)
        with _apart() as workers, ThreadPoolExecutor(workers) as pool:
            done = [pool.submit(put, start) for start in starts]
            for _, each in zip(progress(starts), done, strict=True):
                each.result()
        return features

    def _coefficients(self, images: Tensor) -> Tensor:
        whole = functional.pad(images[:, None], self._margins, mode="reflect")
        spectrum = torch.fft.fft2(whole)
        parts = [self._averaged(whole, 0)]
        deeper = []
        for scale in range(self.scales):
            size = self._modulus(spectrum, scale, 0)
            parts.append(self._averaged(size, scale))
            for larger in range(scale + 1, self.scales):
                changes = self._modulus(torch.fft.fft2(size)[:, :, None], larger, scale)
                deeper.append(self._averaged(changes, larger).flatten(1, 2))
        return torch.cat(parts + deeper, 1)

    def _modulus(self, spectrum: Tensor, scale: int, at: int) -> Tensor:
        """Absolute values of the convolution with the wavelets of a scale, kept at every 2^scale-th pixel.

        The spectrum is of an image that was kept at every 2^at-th pixel. To keep fewer pixels is to fold the
        spectrum.
        """
        wavelets = self._wavelets[scale, at]
        fold = 2 ** (scale - at)
        high, wide = (size // fold for size in wavelets.shape[-3:-1])
        pairs, total = torch.view_as_real(spectrum), None
        for i in range(fold):
            for j in range(fold):
                part = (..., slice(i * high, (i + 1) * high), slice(j * wide, (j + 1) * wide), slice(None))
                if total is None:
                    total = pairs[part] * wavelets[part]
                else:
                    total.addcmul_(pairs[part], wavelets[part])
        assert total is not None
        wave = torch.fft.ifft2(torch.view_as_complex(total))
        squares: Tensor = wave.real.square().add_(wave.imag.square())
        return squares.sqrt_()  # a third of the time of abs

    def _averaged(self, values: Tensor, scale: int) -> Tensor:
        rows, columns = self._averages[scale]
        return rows @ values @ columns.T

    @cached_property
    def _sides(self) -> tuple[int, int]:
        """The image with a margin, so that what wraps around is of no patch that is kept."""
        patch = 2**self.scales
        high, wide = (patch * (-(-size // patch) + 2) for size in (self.height, self.width))
        return high, wide

    @cached_property
    def _margins(self) -> tuple[int, int, int, int]:
        patch, (high, wide) = 2**self.scales, self._sides
        return patch, wide - self.width - patch, patch, high - self.height - patch

    @cached_property
    def _wavelets(self) -> dict[tuple[int, int], Tensor]:
        """Spectra of the wavelets of a scale, for images kept at every 2^at-th pixel.

        They are real, so their last axis, that of real and imaginary parts, is of one number. The mean that
        the folding of `_modulus` needs is taken here.
        """
        wavelets = {}
        for scale in range(self.scales):
            every = torch.stack([self._wavelet(scale, angle) for angle in range(self.angles)])
            for at in range(scale + 1):
                coarse = _folded(every, 2**at) / 4 ** (scale - at)
                wavelets[scale, at] = coarse.to(torch.float32)[..., None]
        return wavelets

    def _wavelet(self, scale: int, angle: int) -> Tensor:
        """A Morlet wavelet: a wave under a bell that is longer along the wave's crests, without its mean."""
        turn = math.pi * angle / self.angles
        wave = self._gabor(scale, turn, _FREQUENCY / 2**scale)
        bell = self._gabor(scale, turn, 0.0)
        spectrum: Tensor = torch.fft.fft2(wave - bell * (wave.sum() / bell.sum()))
        return spectrum.real

    def _gabor(self, scale: int, turn: float, frequency: float) -> Tensor:
        width, slant = _WIDTH * 2**scale, 4 / self.angles
        total = torch.zeros(self._sides, dtype=torch.complex128)
        for i in range(-_WRAPS, _WRAPS + 1):
            for j in range(-_WRAPS, _WRAPS + 1):
                down = torch.arange(self._sides[0], dtype=torch.float64)[:, None] + i * self._sides[0]
                right = torch.arange(self._sides[1], dtype=torch.float64)[None] + j * self._sides[1]
                along = down * math.cos(turn) + right * math.sin(turn)
                across = right * math.cos(turn) - down * math.sin(turn)
                bell = torch.exp(-(along**2 + (slant * across) ** 2) / (2 * width**2))
                total += torch.polar(bell, frequency * along)
        return total.mul_(slant / (2 * math.pi * width**2))

    @cached_property
    def _averages(self) -> tuple[tuple[Tensor, Tensor], ...]:
        """For every scale, the matrices that average rows and columns around the patches."""
        return tuple(
            (self._average(0, self.height, scale), self._average(1, self.width, scale))
            for scale in range(self.scales)
        )

    def _average(self, axis: int, size: int, scale: int) -> Tensor:
        patch, side = 2**self.scales, self._sides[axis]
        centres = patch * (1 + torch.arange(-(-size // patch), dtype=torch.float64))[:, None]
        places = torch.arange(0, side, 2**scale, dtype=torch.float64)[None]
        width = _WIDTH * 2 ** (self.scales - 1)
        weights = sum(
            torch.exp(-((places + wrap * side - centres) ** 2) / (2 * width**2))
            for wrap in range(-_WRAPS, _WRAPS + 1)
        )
        assert isinstance(weights, Tensor)
        return (weights / weights.sum(1, keepdim=True)).to(torch.float32)


@contextmanager
def _apart() -> Iterator[int]:
    """How many threads compute, each on images of its own: those that share small tensors wait a lot."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def _folded(spectra: Tensor, fold: int) -> Tensor:
    """The spectrum of a filter for images of which every `fold`-th pixel is kept: it keeps its strength."""
    count, high, wide = spectra.shape
    return spectra.view(count, fold, high // fold, fold, wide // fold).sum((1, 3))
