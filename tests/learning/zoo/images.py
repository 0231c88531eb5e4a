"""Models of images."""

import torch
from torch import Tensor, nn

from sourdine.learning import with_group_norm
from tests.learning.zoo.case import Case, Written, images, rows


def _head(channels: int) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 3))


def lenet() -> Case:
    return Case(
        nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.Tanh(),
            nn.AvgPool2d(2),
            nn.Conv2d(4, 6, 2),
            nn.Tanh(),
            nn.Flatten(),
            nn.Linear(24, 5),
            nn.Tanh(),
            nn.Linear(5, 3),
        ),
        (images(1),),
    )


def alexnet() -> Case:
    return Case(
        nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1),
            nn.ReLU(True),
            nn.LocalResponseNorm(3),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(),
            nn.Linear(32, 8),
            nn.ReLU(True),
            nn.Dropout(),
            nn.Linear(8, 3),
        ),
        (images(),),
    )


def vgg() -> Case:
    return Case(
        nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1),
            nn.ReLU(True),
            nn.Conv2d(6, 6, 3, padding=1),
            nn.ReLU(True),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 8, 3, padding=1),
            nn.ReLU(True),
            _head(8),
        ),
        (images(),),
    )


def _residual(m: Written, x: Tensor) -> Tensor:
    return (m.skip(x) + m.b(m.a(x).relu())).relu()


def _block(wide: int, out: int, groups: int = 1) -> Written:
    a = nn.Sequential(nn.Conv2d(wide, out, 3, padding=1, bias=False), nn.GroupNorm(2, out))
    b = nn.Sequential(nn.Conv2d(out, out, 3, padding=1, groups=groups, bias=False), nn.GroupNorm(2, out))
    return Written(_residual, a=a, b=b, skip=nn.Conv2d(wide, out, 1))


def resnet_with_group_norm() -> Case:
    return Case(nn.Sequential(_block(3, 4), _block(4, 8), _head(8)), (images(),))


def resnet_after_with_group_norm() -> Case:
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), _head(8))
    return Case(with_group_norm(model), (images(),))


def resnext() -> Case:
    return Case(nn.Sequential(_block(3, 8, groups=4), _head(8)), (images(),))


def pre_activation_resnet() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        x = m.stem(x)
        return m.head(x + m.conv(m.norm(x).relu()))

    return Case(
        Written(
            run,
            stem=nn.Conv2d(3, 6, 3),
            norm=nn.GroupNorm(3, 6),
            conv=nn.Conv2d(6, 6, 3, padding=1),
            head=_head(6),
        ),
        (images(),),
    )


def wide_resnet_with_dropout() -> Case:
    return Case(nn.Sequential(_block(3, 8), nn.Dropout2d(0.2), _block(8, 8), _head(8)), (images(),))


def mobilenet() -> Case:
    return Case(
        nn.Sequential(
            nn.Conv2d(3, 8, 1),
            nn.ReLU6(),
            nn.Conv2d(8, 8, 3, groups=8, padding=1),
            nn.ReLU6(),
            nn.Conv2d(8, 4, 1),
            _head(4),
        ),
        (images(),),
    )


def shufflenet() -> Case:
    return Case(
        nn.Sequential(
            nn.Conv2d(3, 8, 1),
            nn.ChannelShuffle(2),
            nn.Conv2d(8, 8, 3, groups=4),
            nn.PixelUnshuffle(2),
            _head(32),
        ),
        (images(),),
    )


def squeezenet() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        x = m.squeeze(x).relu()
        return m.head(torch.cat([m.one(x), m.three(x)], dim=1).relu())

    return Case(
        Written(
            run,
            squeeze=nn.Conv2d(3, 4, 1),
            one=nn.Conv2d(4, 5, 1),
            three=nn.Conv2d(4, 5, 3, padding=1),
            head=_head(10),
        ),
        (images(),),
    )


def densenet() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        for layer in m.layers:
            x = torch.cat([x, layer(x).relu()], dim=1)
        return m.head(x)

    layers = nn.ModuleList(nn.Conv2d(3 + 2 * i, 2, 3, padding=1) for i in range(3))
    return Case(Written(run, layers=layers, head=_head(9)), (images(),))


def inception() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        return m.head(torch.cat([branch(x) for branch in m.branches], dim=1))

    branches = nn.ModuleList(
        [
            nn.Conv2d(3, 2, 1),
            nn.Conv2d(3, 2, 3, padding=1),
            nn.Conv2d(3, 2, 5, padding=2),
            nn.Sequential(nn.MaxPool2d(3, 1, 1), nn.Conv2d(3, 2, 1)),
        ]
    )
    return Case(Written(run, branches=branches, head=_head(8)), (images(),))


def squeeze_and_excitation() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        x = m.conv(x)
        return m.head(x * m.gate(x.mean((2, 3))).sigmoid()[:, :, None, None])

    return Case(Written(run, conv=nn.Conv2d(3, 6, 3), gate=nn.Linear(6, 6), head=_head(6)), (images(),))


def channel_and_spatial_attention() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        x = m.conv(x)
        where = m.space(torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)).sigmoid()
        return m.head(x * where)

    return Case(
        Written(run, conv=nn.Conv2d(3, 6, 3), space=nn.Conv2d(2, 1, 3, padding=1), head=_head(6)), (images(),)
    )


def efficientnet() -> Case:
    return Case(
        nn.Sequential(
            nn.Conv2d(3, 12, 1),
            nn.SiLU(),
            nn.Conv2d(12, 12, 5, padding=2, groups=12),
            nn.GroupNorm(3, 12),
            nn.SiLU(),
            nn.Conv2d(12, 6, 1),
            _head(6),
        ),
        (images(),),
    )


def stochastic_depth() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        x = m.stem(x)
        keep = (torch.rand(len(x), 1, 1, 1) < 0.8).float() / 0.8 if m.training else 1.0
        return m.head(x + keep * m.conv(x))

    return Case(
        Written(run, stem=nn.Conv2d(3, 6, 3), conv=nn.Conv2d(6, 6, 3, padding=1), head=_head(6)), (images(),)
    )


def convnext() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        y = m.norm(m.depth(x).permute(0, 2, 3, 1))
        return m.head(x + (m.scale * m.out(m.inner(y))).permute(0, 3, 1, 2))

    return Case(
        Written(
            run,
            depth=nn.Conv2d(3, 3, 7, padding=3, groups=3),
            norm=nn.LayerNorm(3),
            inner=nn.Linear(3, 12),
            out=nn.Sequential(nn.GELU(), nn.Linear(12, 3)),
            scale=torch.full((3,), 0.1),
            head=_head(3),
        ),
        (images(),),
    )


def convmixer() -> Case:
    return Case(
        nn.Sequential(
            nn.Conv2d(3, 8, 2, stride=2),
            nn.GELU(),
            nn.GroupNorm(1, 8),
            nn.Conv2d(8, 8, 3, groups=8, padding="same"),
            nn.GELU(),
            nn.Conv2d(8, 8, 1),
            _head(8),
        ),
        (images(),),
    )


def mlp_mixer() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        x = m.patch(x).flatten(2).transpose(1, 2)
        x = x + m.tokens(m.norm(x).transpose(1, 2)).transpose(1, 2)
        return m.last((x + m.channels(x)).mean(1))

    return Case(
        Written(
            run,
            patch=nn.Conv2d(3, 6, 2, stride=2),
            norm=nn.LayerNorm(6),
            tokens=nn.Linear(16, 16),
            channels=nn.Linear(6, 6),
            last=nn.Linear(6, 3),
        ),
        (images(),),
    )


def gated_mlp_over_places() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        u, v = m.first(x).chunk(2, dim=2)
        return m.last((u * m.places(m.norm(v))).mean(1))

    return Case(
        Written(
            run, first=nn.Linear(4, 12), norm=nn.LayerNorm(6), places=nn.Conv1d(5, 5, 1), last=nn.Linear(6, 2)
        ),
        (rows(5, 4),),
    )


def _vit(m: Written, x: Tensor) -> Tensor:
    x = m.patch(x).flatten(2).transpose(1, 2)
    x = torch.cat([m.cls.expand(len(x), -1, -1), x], dim=1) + m.places
    return m.last(m.inner(m.drop(x))[:, 0])


def _vit_parts(dropout: float) -> dict[str, object]:
    return {
        "patch": nn.Conv2d(3, 8, 4, stride=4),
        "cls": torch.randn(1, 1, 8),
        "places": torch.randn(1, 5, 8),
        "drop": nn.Dropout(dropout),
        "inner": nn.TransformerEncoderLayer(8, 2, 16, dropout=dropout, batch_first=True),
        "last": nn.Linear(8, 3),
    }


def vision_transformer() -> Case:
    return Case(Written(_vit, **_vit_parts(0.0)), (images(),))


def vision_transformer_with_dropout() -> Case:
    return Case(Written(_vit, **_vit_parts(0.1)), (images(),))


def perceiver() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        asked = m.latents.unsqueeze(0).expand(len(x), -1, -1)
        return m.last(m.cross(asked, x, x, need_weights=False)[0].mean(1))

    return Case(
        Written(
            run,
            latents=torch.randn(3, 8),
            cross=nn.MultiheadAttention(8, 2, batch_first=True),
            last=nn.Linear(8, 2),
        ),
        (rows(6, 8),),
    )
