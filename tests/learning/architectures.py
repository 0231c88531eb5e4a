"""Random models and inputs for them: every kind of layer, in any order that fits."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations


@dataclass(frozen=True)
class Drawn:
    """A model, the shape of one example, and how many words its inputs name, if they are words."""

    model: nn.Module
    shape: tuple[int, ...]
    words: int | None = None

    def inputs(self, count: int, dtype: torch.dtype) -> Tensor:
        if self.words is not None:
            return torch.randint(0, self.words, (count, *self.shape))
        return torch.randn(count, *self.shape, dtype=dtype)


class Residual(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(x)


class Scaled(nn.Module):
    """Has a parameter of its own and a layer inside; both may be one and the same parameter."""

    def __init__(self, inner: nn.Linear, tied: bool) -> None:
        super().__init__()
        self.inner = inner
        self.scale = nn.Parameter(torch.rand(inner.out_features))
        if tied:
            self.again = inner.weight

    def forward(self, x: Tensor) -> Tensor:
        made = self.inner(x) * self.scale
        return made @ self.again if hasattr(self, "again") else made


class First(nn.Module):
    """What a recurrent layer gives at every place, and its last state."""

    def __init__(self, inner: nn.RNNBase) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        told, last = self.inner(x)
        last = last if isinstance(last, Tensor) else last[0]
        return told + last.sum((0, 2))[:, None, None]


class Attention(nn.Module):
    def __init__(self, inner: nn.MultiheadAttention, named: bool) -> None:
        super().__init__()
        self.inner, self.named = inner, named

    def forward(self, x: Tensor) -> Tensor:
        if not self.named:
            return self.inner(x, x, x)[0]
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        ignored = torch.zeros(x.shape[:2], dtype=torch.bool)
        ignored[:, -1] = True
        return self.inner(x, x, value=x, attn_mask=hidden, key_padding_mask=ignored, need_weights=False)[0]


class Tied(nn.Module):
    """Words in, chances of words out, by one table."""

    def __init__(self, words: int, width: int, padding: int | None, inner: nn.Module) -> None:
        super().__init__()
        self.table, self.inner = nn.Embedding(words, width, padding_idx=padding), inner
        self.out = nn.Linear(width, words)
        self.out.weight = self.table.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.inner(self.table(x)))


def drawn(seed: int) -> Drawn:
    """The model of a seed."""
    source = random.Random(seed)
    torch.manual_seed(seed)
    kind = source.choice([images, images, images, texts, texts, numbers])
    found = kind(source)
    while not _runs(found):
        found = kind(source)
    for value in found.model.parameters():
        if source.random() < 0.1:
            value.requires_grad_(False)
    next(found.model.parameters()).requires_grad_(True)
    return found


def _runs(found: Drawn) -> bool:
    """Whether no window is larger than an image."""
    try:
        found.model(found.inputs(1, torch.float32))
    except RuntimeError:
        return False
    return True


def bottleneck(source: random.Random, width: int, wide: int) -> list[nn.Module]:
    return [nn.Linear(width, wide, bias=source.random() < 0.8), nn.Linear(wide, width)]


def numbers(source: random.Random) -> Drawn:
    width = source.randint(2, 7)
    layers: list[nn.Module] = []
    for _ in range(source.randint(1, 4)):
        wide = source.randint(1, 9)
        options: list[Callable[[], list[nn.Module]]] = [
            partial(bottleneck, source, width, wide),
            lambda: [nn.Linear(width, width), activation(source)],
            lambda: [parametrizations.weight_norm(nn.Linear(width, width)), activation(source)],
            lambda: [nn.LayerNorm(width, bias=source.random() < 0.5)],
            lambda: [nn.GroupNorm(1, width)],
            lambda: [Residual(nn.Linear(width, width))],
            lambda: [Scaled(nn.Linear(width, width), source.random() < 0.5)],
            lambda: [nn.Linear(width, width)] * 2,
            lambda: [nn.PReLU(), nn.Linear(width, width)],
        ]
        layers += source.choice(options)()
    linear = [layer for layer in layers if type(layer) is nn.Linear and layer.weight.shape == (width, width)]
    if len(linear) > 1 and source.random() < 0.5:
        linear[0].weight = linear[-1].weight
    axes = tuple(source.randint(1, 3) for _ in range(source.randint(0, 2))) if _plain(layers) else ()
    return Drawn(nn.Sequential(*layers, nn.Linear(width, 3)), (*axes, width))


def _plain(layers: list[nn.Module]) -> bool:
    """Whether the layers do not care how many axes there are."""
    return not any(isinstance(layer, nn.GroupNorm) for layer in layers)


def images(source: random.Random) -> Drawn:
    axes = source.choice([1, 1, 2, 2, 3])
    side, channels = {1: 12, 2: 9, 3: 6}[axes], source.choice([1, 2, 4])
    shape = (channels, *(side + source.randint(0, 2) for _ in range(axes)))
    layers: list[nn.Module] = []
    for _ in range(source.randint(1, 3)):
        wide = source.choice([2, 4, 6])
        groups = source.choice([g for g in (1, 2, 4) if channels % g == 0 and wide % g == 0])
        size = tuple(source.randint(1, 3) for _ in range(axes))
        modes: list[Literal["zeros", "reflect", "replicate", "circular"]]
        modes = ["zeros", "zeros", "reflect", "replicate", "circular"]
        mode = source.choice(modes)
        padding: str | tuple[int, ...] = tuple(source.randint(0, 1) for _ in range(axes))
        stride: int | tuple[int, ...] = tuple(source.randint(1, 2) for _ in range(axes))
        if source.random() < 0.25:
            padding, stride = source.choice(["same", "valid"]), 1
        convolution = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1](
            channels,
            wide,
            size,  # type: ignore[arg-type]
            stride=stride,  # type: ignore[arg-type]
            padding=padding,  # type: ignore[arg-type]
            dilation=tuple(source.randint(1, 2) for _ in range(axes)),  # type: ignore[arg-type]
            groups=groups,
            bias=source.random() < 0.8,
            padding_mode=mode,
        )
        layers.append(convolution)
        channels = wide
        layers += source.choice(
            [
                [],
                [activation(source)],
                [nn.GroupNorm(2, channels), activation(source)],
                [(nn.InstanceNorm1d, nn.InstanceNorm2d, nn.InstanceNorm3d)[axes - 1](channels, affine=True)],
                [
                    (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)[axes - 1](
                        channels, channels, 2
                    )
                ],
                [Residual((nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1](channels, channels, 3, padding=1))] * 2,
            ]
        )
    pool = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)[axes - 1](2)
    head = nn.Linear(channels * 2**axes, 3)
    return Drawn(nn.Sequential(*layers, pool, nn.Flatten(), head), shape)


def texts(source: random.Random) -> Drawn:
    words, width, places = source.randint(3, 12), 4, source.randint(2, 6)
    padding = source.choice([None, 0])
    recurrent = source.choice([nn.RNN, nn.GRU, nn.LSTM])
    both = source.random() < 0.5
    inners: list[Callable[[], nn.Module]] = [
        nn.Identity,
        lambda: nn.Linear(width, width),
        lambda: First(
            recurrent(
                width,
                width // (2 if both else 1),
                source.randint(1, 2),
                batch_first=True,
                bidirectional=both,
                bias=source.random() < 0.7,
            )
        ),
        lambda: Attention(nn.MultiheadAttention(width, 2, batch_first=True), source.random() < 0.5),
        lambda: nn.TransformerEncoderLayer(
            width, 2, 8, dropout=0.0, batch_first=True, norm_first=source.random() < 0.5
        ),
    ]
    inner = source.choice(inners)()
    model: nn.Module
    if source.random() < 0.5:
        model = Tied(words, width, padding, inner)
    else:
        table = nn.Embedding(words, width, padding_idx=padding, sparse=source.random() < 0.5)
        model = nn.Sequential(table, inner, nn.LayerNorm(width), nn.Linear(width, 2))
    return Drawn(model, (places,), words)


def activation(source: random.Random) -> nn.Module:
    return source.choice([nn.ReLU(), nn.ReLU(inplace=True), nn.Tanh(), nn.ELU(inplace=True), nn.GELU()])
