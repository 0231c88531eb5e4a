"""Models of several kinds, and batches far from those of the dry runs."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sourdine.learning.models import cnn


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model, the shape of an example, how many words there are if it is made of words, and batches."""

    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    batches: tuple[int, ...]
    words: int | None = None

    def batch(self, count: int) -> tuple[Tensor, Tensor]:
        """Made-up examples."""
        words = self.words
        x = torch.rand(count, *self.shape) if words is None else torch.randint(0, words, (count, *self.shape))
        return x, torch.zeros(count, dtype=torch.int64)


class Residual(nn.Module):
    """Two convolutions, each with a group norm, and a way around them."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.GroupNorm(8, channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.GroupNorm(8, channels),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(x + self.inner(x))


class Last(nn.Module):
    """What a recurrent layer gives at the last place."""

    def __init__(self, inner: nn.RNNBase) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.inner(x)[0][:, -1]
        return found


class Mean(nn.Module):
    """The mean over all places."""

    def forward(self, x: Tensor) -> Tensor:
        return x.mean(1)


def _head() -> nn.Module:
    return nn.Sequential(nn.Linear(25088, 512), nn.ReLU(), nn.Linear(512, 102))


def _stack() -> nn.Module:
    layers: list[nn.Module] = []
    channels = 3
    for wide in (32, 64, 128):
        layers += [nn.Conv2d(channels, wide, 3, padding=1), nn.ReLU()]
        layers += [nn.Conv2d(wide, wide, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
        channels = wide
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 256), nn.ReLU(), nn.Linear(256, 10))


def _residual() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        Residual(32),
        nn.MaxPool2d(2),
        Residual(32),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(512, 10),
    )


def _recurrent() -> nn.Module:
    return nn.Sequential(nn.Embedding(2000, 64), Last(nn.LSTM(64, 64, batch_first=True)), nn.Linear(64, 2))


def _transformer() -> nn.Module:
    block = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.Embedding(2000, 64), block, Mean(), nn.Linear(64, 2))


CASES = (
    Case(
        name="network for MNIST",
        make=lambda: cnn((1, 28, 28), 10),
        shape=(1, 28, 28),
        batches=(32, 512, 2048),
    ),
    Case(name="head 25088-512-102", make=_head, shape=(25088,), batches=(2, 256, 2048)),
    Case(name="VGG-like stack", make=_stack, shape=(3, 32, 32), batches=(2, 64, 256)),
    Case(name="residual network, group norm", make=_residual, shape=(3, 32, 32), batches=(2, 64, 256)),
    Case(name="embedding and LSTM", make=_recurrent, shape=(20,), batches=(2, 64, 256), words=2000),
    Case(name="embedding and transformer", make=_transformer, shape=(32,), batches=(2, 128, 512), words=2000),
)
