"""Models that decode, and models of sounds, videos, point clouds, graphs and windows."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learning.zoo.case import COUNT, Case, Written, images, rows


def _head(channels: int) -> nn.Sequential:
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 3))


def unet() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        high = m.down(x).relu()
        low = m.low(functional.max_pool2d(high, 2)).relu()
        return m.last(torch.cat([high, m.up(low)], dim=1))

    return Case(
        Written(
            run,
            down=nn.Conv2d(3, 4, 3, padding=1),
            low=nn.Conv2d(4, 6, 3, padding=1),
            up=nn.ConvTranspose2d(6, 4, 2, stride=2),
            last=nn.Conv2d(8, 2, 1),
        ),
        (images(),),
    )


def convolutional_autoencoder() -> Case:
    return Case(
        nn.Sequential(
            nn.Conv2d(3, 6, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(6, 3, 4, stride=2, padding=1),
            nn.Sigmoid(),
        ),
        (images(),),
    )


def upsampling_decoder() -> Case:
    return Case(
        nn.Sequential(
            nn.Linear(5, 32), nn.Unflatten(1, (2, 4, 4)), nn.Upsample(scale_factor=2), nn.Conv2d(2, 1, 3)
        ),
        (rows(5),),
    )


def variational_autoencoder() -> Case:
    def run(m: Written, x: Tensor, noise: Tensor) -> Tensor:
        mean, log = m.encoder(x).chunk(2, dim=1)
        return torch.cat([m.decoder(mean + noise * (log / 2).exp()), mean, log], dim=1)

    return Case(Written(run, encoder=nn.Linear(6, 4), decoder=nn.Linear(2, 6)), (rows(6), rows(2)))


def spatial_transformer() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        theta = m.where(x.flatten(1)).view(-1, 2, 3) + torch.eye(2, 3)
        grid = functional.affine_grid(theta, list(x.shape), align_corners=False)
        return m.head(functional.grid_sample(x, grid, align_corners=False))

    return Case(
        Written(run, where=nn.Linear(192, 6), head=nn.Sequential(nn.Conv2d(3, 4, 3), _head(4))),
        (images() * 0.1,),
    )


def capsules() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        votes = torch.einsum("bip,iopq->bioq", x, m.weights)
        logits = torch.zeros(votes.shape[:3])
        for _ in range(2):
            out = (logits.softmax(2).unsqueeze(3) * votes).sum(1).tanh()
            logits = logits + (votes * out.unsqueeze(1)).sum(3)
        return out

    return Case(Written(run, weights=torch.randn(5, 3, 4, 2)), (rows(5, 4),))


def wavenet() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        for layer, gap in zip(m.layers, (1, 2), strict=True):
            a, b = layer(functional.pad(x, (gap, 0))).chunk(2, dim=1)
            x = x + a.tanh() * b.sigmoid()
        return m.last(x).mean(2)

    return Case(
        Written(
            run,
            layers=nn.ModuleList([nn.Conv1d(4, 8, 2), nn.Conv1d(4, 8, 2, dilation=2)]),
            last=nn.Conv1d(4, 3, 1),
        ),
        (rows(4, 9),),
    )


def sound_spectra() -> Case:
    return Case(
        nn.Sequential(
            nn.Conv1d(1, 6, 5, stride=2),
            nn.InstanceNorm1d(6, affine=True),
            nn.ReLU(),
            nn.AdaptiveAvgPool1d(1),
            nn.Flatten(),
            nn.Linear(6, 3),
        ),
        (rows(1, 20),),
    )


def video_convolution() -> Case:
    return Case(
        nn.Sequential(nn.Conv3d(2, 4, 2), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4, 2)),
        (rows(2, 3, 5, 5),),
    )


class _Masked(nn.Conv2d):
    """Sees only what stands above and to the left."""

    def forward(self, x: Tensor) -> Tensor:
        seen = torch.ones_like(self.weight)
        seen[:, :, 1, 1:] = seen[:, :, 2:] = 0
        return functional.conv2d(x, self.weight * seen, self.bias, padding=1)


def pixel_cnn() -> Case:
    return Case(nn.Sequential(_Masked(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1)), (images(),))


class _Standardised(nn.Conv2d):
    def forward(self, x: Tensor) -> Tensor:
        w = self.weight
        w = (w - w.mean((1, 2, 3), keepdim=True)) / (w.std((1, 2, 3), keepdim=True) + 1e-3)
        return functional.conv2d(x, w, self.bias)


def weight_standardisation() -> Case:
    return Case(nn.Sequential(_Standardised(3, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), _head(4)), (images(),))


def point_net() -> Case:
    return Case(
        Written(lambda m, x: m.b(m.a(x).amax(2)), a=nn.Conv1d(3, 8, 1), b=nn.Linear(8, 3)), (rows(3, 10),)
    )


def graph_convolution() -> Case:
    def run(m: Written, x: Tensor, near: Tensor) -> Tensor:
        return m.b((near.softmax(2) @ m.a(x)).relu()).mean(1)

    return Case(Written(run, a=nn.Linear(4, 6), b=nn.Linear(6, 2)), (rows(5, 4), rows(5, 5)))


def graph_attention() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        h = m.a(x)
        scores = functional.leaky_relu((h @ m.left) + (h @ m.right).transpose(1, 2))
        return (scores.softmax(2) @ h).mean(1)

    return Case(
        Written(run, a=nn.Linear(4, 6), left=torch.randn(6, 1), right=torch.randn(6, 1)), (rows(5, 4),)
    )


def graph_isomorphism() -> Case:
    def run(m: Written, x: Tensor, near: Tensor) -> Tensor:
        return m.inner((1 + m.eps) * x + near @ x).sum(1)

    return Case(
        Written(run, eps=torch.tensor(0.1), inner=nn.Linear(4, 3)), (rows(5, 4), rows(5, 5).sigmoid().round())
    )


def dynamic_convolution() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        kernels = m.kernel(x.mean((2, 3))).view(-1, 1, 3, 3)
        folded = x.reshape(1, -1, *x.shape[2:])
        return functional.conv2d(folded, kernels, groups=len(kernels)).view(len(x), 3, -1).mean(2)

    return Case(Written(run, kernel=nn.Linear(3, 27)), (images(),))


def windows_folded_into_the_batch() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        cut = x.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).reshape(-1, 3 * 16)
        return m.last(m.inner(cut).relu().view(COUNT if len(x) == COUNT else len(x), -1))

    return Case(Written(run, inner=nn.Linear(48, 5), last=nn.Linear(20, 3)), (images(),))


def frames_folded_into_the_batch() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        seen = m.conv(x.flatten(0, 1)).mean((2, 3)).view(len(x), x.shape[1], -1)
        return m.last(m.time(seen)[0][:, -1])

    return Case(
        Written(run, conv=nn.Conv2d(2, 4, 3), time=nn.GRU(4, 4, batch_first=True), last=nn.Linear(4, 2)),
        (rows(3, 2, 6, 6),),
    )


def relative_position_bias_of_windows() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        cut = x.reshape(-1, 4, 6)
        bias = m.table[(torch.arange(4)[:, None] - torch.arange(4)) + 3].permute(2, 0, 1)
        q, k, v = m.qkv(cut).chunk(3, dim=2)
        met = (q @ k.transpose(1, 2)).unsqueeze(1) + bias
        return m.last((met.softmax(3) @ v.unsqueeze(1)).mean((1, 2)).view(len(x), -1))

    return Case(
        Written(run, table=torch.randn(7, 2), qkv=nn.Linear(6, 18), last=nn.Linear(12, 2)), (rows(8, 6),)
    )
