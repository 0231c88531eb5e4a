"""Models of numbers and of tables."""

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations, weight_norm

from tests.learning.zoo.case import COUNT, Case, Written, rows, words


def logistic_regression() -> Case:
    return Case(nn.Linear(5, 1), (rows(5),))


def perceptron() -> Case:
    return Case(nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)), (rows(5),))


def perceptron_with_dropout() -> Case:
    return Case(nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 3)), (rows(5),))


def perceptron_with_layer_norm() -> Case:
    return Case(nn.Sequential(nn.Linear(5, 8), nn.LayerNorm(8), nn.Tanh(), nn.Linear(8, 3)), (rows(5),))


def perceptron_with_group_norm() -> Case:
    return Case(nn.Sequential(nn.Linear(5, 8), nn.GroupNorm(2, 8), nn.Linear(8, 3)), (rows(5),))


def perceptron_with_rms_norm() -> Case:
    return Case(nn.Sequential(nn.Linear(5, 8), nn.RMSNorm(8), nn.Linear(8, 3)), (rows(5),))


def residual_perceptron() -> Case:
    return Case(
        Written(
            lambda m, x: m.c(x + m.b(m.a(x).relu())), a=nn.Linear(5, 8), b=nn.Linear(8, 5), c=nn.Linear(5, 3)
        ),
        (rows(5),),
    )


def highway() -> Case:
    def run(m: Written, x: torch.Tensor) -> torch.Tensor:
        gate = m.gate(x).sigmoid()
        return m.last(gate * m.inner(x).relu() + (1 - gate) * x)

    return Case(Written(run, gate=nn.Linear(5, 5), inner=nn.Linear(5, 5), last=nn.Linear(5, 2)), (rows(5),))


def gated_units() -> Case:
    return Case(nn.Sequential(nn.Linear(5, 12), nn.GLU(), nn.Linear(6, 2)), (rows(5),))


def maxout() -> Case:
    return Case(
        Written(lambda m, x: m.b(m.a(x).unflatten(1, (4, 3)).amax(2)), a=nn.Linear(5, 12), b=nn.Linear(4, 2)),
        (rows(5),),
    )


def parametric_relu() -> Case:
    return Case(nn.Sequential(nn.Linear(5, 8), nn.PReLU(8), nn.Linear(8, 2), nn.PReLU()), (rows(5),))


def tied_autoencoder() -> Case:
    return Case(
        Written(lambda m, x: functional.linear(m.a(x).tanh(), m.a.weight.T), a=nn.Linear(6, 4)), (rows(6),)
    )


def tied_language_head() -> Case:
    return Case(
        Written(
            lambda m, x: functional.linear(m.table(x).mean(1), m.table.weight), table=nn.Embedding(11, 4)
        ),
        (words(),),
    )


def siamese() -> Case:
    return Case(
        Written(
            lambda m, x, y: (m.a(x) - m.a(y)).abs() * m.b(x * y),
            a=nn.Linear(5, 4, bias=False),
            b=nn.Linear(5, 4),
        ),
        (rows(5), rows(5)),
    )


def triplet() -> Case:
    def run(m: Written, x: torch.Tensor, near: torch.Tensor, far: torch.Tensor) -> torch.Tensor:
        a, b, c = m.inner(x), m.inner(near), m.inner(far)
        return torch.stack([(a - b).square().sum(1), (a - c).square().sum(1)], dim=1)

    return Case(Written(run, inner=nn.Linear(5, 4, bias=False)), (rows(5), rows(5), rows(5)))


def bilinear() -> Case:
    return Case(Written(lambda m, x, y: m.a(x, y), a=nn.Bilinear(4, 3, 2)), (rows(4), rows(3)))


def weight_norm_parametrized() -> Case:
    return Case(
        nn.Sequential(parametrizations.weight_norm(nn.Linear(5, 4)), nn.Tanh(), nn.Linear(4, 2)), (rows(5),)
    )


def weight_norm_by_a_hook() -> Case:
    return Case(nn.Sequential(weight_norm(nn.Linear(5, 4)), nn.Tanh(), nn.Linear(4, 2)), (rows(5),))


def orthogonal() -> Case:
    return Case(nn.Sequential(parametrizations.orthogonal(nn.Linear(4, 4)), nn.Linear(4, 2)), (rows(4),))


def temperature() -> Case:
    return Case(Written(lambda m, x: m.a(x) / m.t.exp(), a=nn.Linear(5, 3), t=torch.tensor(0.3)), (rows(5),))


def temperature_with_dropout() -> Case:
    return Case(
        Written(lambda m, x: m.d(m.a(x)) * m.t, a=nn.Linear(5, 3), d=nn.Dropout(0.4), t=torch.tensor(0.3)),
        (rows(5),),
    )


def parameter_list() -> Case:
    weights = nn.ParameterList([torch.randn(5, 5), torch.randn(5, 3)])
    return Case(Written(lambda m, x: (x @ m.w[0]).tanh() @ m.w[1], w=weights), (rows(5),))


def parameter_dict() -> Case:
    weights = nn.ParameterDict({"in": torch.randn(5, 4), "out": torch.randn(4, 3)})
    return Case(
        Written(lambda m, x: m.last((x @ m.w["in"]).tanh() @ m.w["out"]), w=weights, last=nn.Linear(3, 2)),
        (rows(5),),
    )


def mixture_of_experts() -> Case:
    experts = nn.ModuleList(nn.Linear(5, 3) for _ in range(3))

    def run(m: Written, x: torch.Tensor) -> torch.Tensor:
        told = torch.stack([expert(x) for expert in m.experts], dim=1)
        return (m.gate(x).softmax(1).unsqueeze(2) * told).sum(1)

    return Case(Written(run, experts=experts, gate=nn.Linear(5, 3)), (rows(5),))


def hyper_network() -> Case:
    return Case(
        Written(
            lambda m, x, z: torch.einsum("bi,bio->bo", x, m.a(z).unflatten(1, (5, 3))), a=nn.Linear(2, 15)
        ),
        (rows(5), rows(2)),
    )


def film() -> Case:
    def run(m: Written, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        scale, shift = m.cond(z).chunk(2, dim=1)
        return m.last(m.first(x) * scale + shift)

    return Case(
        Written(run, first=nn.Linear(5, 4), cond=nn.Linear(3, 8), last=nn.Linear(4, 2)), (rows(5), rows(3))
    )


def low_rank_adapter() -> Case:
    base = nn.Linear(5, 4).requires_grad_(False)
    return Case(
        Written(
            lambda m, x: m.base(x) + m.up(m.down(x)),
            base=base,
            down=nn.Linear(5, 2, bias=False),
            up=nn.Linear(2, 4, bias=False),
        ),
        (rows(5),),
    )


def low_rank_adapter_of_parameters() -> Case:
    base = nn.Linear(5, 4).requires_grad_(False)
    return Case(
        Written(
            lambda m, x: m.base(x) + x @ m.down @ m.up,
            base=base,
            down=torch.randn(5, 2),
            up=torch.randn(2, 4),
        ),
        (rows(5),),
    )


def deep_sets() -> Case:
    return Case(
        Written(lambda m, x: m.b(m.a(x).relu().sum(1)), a=nn.Linear(3, 6), b=nn.Linear(6, 2)), (rows(8, 3),)
    )


def radial_basis() -> Case:
    return Case(
        Written(
            lambda m, x: m.last((-torch.cdist(x, m.centres).square() * m.width.exp()).exp()),
            centres=torch.randn(6, 4),
            width=torch.zeros(6),
            last=nn.Linear(6, 2),
        ),
        (rows(4),),
    )


def fourier_features() -> Case:
    return Case(
        Written(
            lambda m, x: m.last(torch.cat([(x @ m.f).sin(), (x @ m.f).cos()], 1)),
            f=torch.randn(4, 6),
            last=nn.Linear(12, 2),
        ),
        (rows(4),),
    )


def monotone() -> Case:
    return Case(
        Written(
            lambda m, x: functional.linear(x, m.a.weight.exp(), m.a.bias).tanh() @ m.b.exp(),
            a=nn.Linear(4, 6),
            b=torch.randn(6, 1),
        ),
        (rows(4),),
    )


def sinusoidal_representation() -> Case:
    return Case(
        Written(lambda m, x: m.b((3 * m.a(x)).sin()), a=nn.Linear(2, 8), b=nn.Linear(8, 3)), (rows(2),)
    )


def euler_steps_of_one_layer() -> Case:
    def run(m: Written, x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            x = x + 0.25 * m.inner(x).tanh()
        return x

    return Case(Written(run, inner=nn.Linear(4, 4)), (rows(4),))


def spline_network() -> Case:
    def run(m: Written, x: torch.Tensor) -> torch.Tensor:
        basis = (-((x.unsqueeze(2) - m.knots) ** 2)).exp()
        return torch.einsum("bik,iko->bo", basis, m.weights)

    return Case(Written(run, knots=torch.linspace(-2, 2, 5), weights=torch.randn(3, 5, 2)), (rows(3),))


def factorization_machine() -> Case:
    def run(m: Written, x: torch.Tensor) -> torch.Tensor:
        met = (x @ m.factors).square() - x.square() @ m.factors.square()
        return m.linear(x) + met.sum(1, keepdim=True) / 2

    return Case(Written(run, linear=nn.Linear(6, 1), factors=torch.randn(6, 3)), (rows(6),))


def wide_and_deep() -> Case:
    tables = nn.ModuleList([nn.Embedding(5, 3), nn.Embedding(7, 3)])

    def run(m: Written, x: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        deep = torch.cat([table(codes[:, i]) for i, table in enumerate(m.tables)] + [x], dim=1)
        return m.wide(x) + m.deep(deep)

    return Case(
        Written(
            run,
            tables=tables,
            wide=nn.Linear(4, 1),
            deep=nn.Sequential(nn.Linear(10, 5), nn.ReLU(), nn.Linear(5, 1)),
        ),
        (rows(4), torch.randint(0, 5, (COUNT, 2))),
    )


def matrix_factorization() -> Case:
    def run(m: Written, u: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (m.users(u) * m.items(v)).sum(1, keepdim=True) + m.user_bias(u) + m.mean

    return Case(
        Written(
            run,
            users=nn.Embedding(6, 4),
            items=nn.Embedding(8, 4),
            user_bias=nn.Embedding(6, 1),
            mean=torch.tensor([0.1]),
        ),
        (torch.randint(0, 6, (COUNT,)), torch.randint(0, 8, (COUNT,))),
    )


def feature_tokenizer_transformer() -> Case:
    def run(m: Written, x: torch.Tensor) -> torch.Tensor:
        tokens = x.unsqueeze(2) * m.scale + m.shift
        tokens = torch.cat([m.cls.expand(len(x), -1, -1), tokens], dim=1)
        return m.head(m.inner(tokens)[:, 0])

    inner = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    return Case(
        Written(
            run,
            scale=torch.randn(5, 8),
            shift=torch.randn(5, 8),
            cls=torch.randn(1, 1, 8),
            inner=inner,
            head=nn.Linear(8, 2),
        ),
        (rows(5),),
    )


def ordinal_regression() -> Case:
    return Case(
        Written(
            lambda m, x: m.a(x) - m.first - torch.cat([torch.zeros(1), m.steps.exp()]).cumsum(0),
            a=nn.Linear(5, 1),
            first=torch.zeros(1),
            steps=torch.zeros(3),
        ),
        (rows(5),),
    )


def multi_task_heads() -> Case:
    heads = nn.ModuleDict({"one": nn.Linear(6, 2), "two": nn.Linear(6, 3)})
    return Case(
        Written(
            lambda m, x: torch.cat([h(m.body(x).relu()) for h in m.heads.values()], 1),
            body=nn.Linear(5, 6),
            heads=heads,
        ),
        (rows(5),),
    )


def weights_scaled_by_a_layer_norm_of_rows() -> Case:
    return Case(
        Written(
            lambda m, x: functional.linear(x, functional.layer_norm(m.a.weight, (5,)), m.a.bias),
            a=nn.Linear(5, 4),
        ),
        (rows(5),),
    )


def cosine_classifier() -> Case:
    def run(m: Written, x: torch.Tensor) -> torch.Tensor:
        return m.scale * functional.normalize(m.body(x), dim=1) @ functional.normalize(m.classes, dim=1).T

    return Case(
        Written(run, body=nn.Linear(5, 4), classes=torch.randn(3, 4), scale=torch.tensor(4.0)), (rows(5),)
    )


def adaptive_activation() -> Case:
    return Case(
        Written(
            lambda m, x: m.b(m.a(x) * (m.beta * m.a(x)).sigmoid()),
            a=nn.Linear(5, 6),
            beta=torch.ones(6),
            b=nn.Linear(6, 2),
        ),
        (rows(5),),
    )


def dict_of_parts() -> Case:
    model = nn.Linear(5, 3)
    return Case(
        model,
        ({"x": rows(5), "more": {"shift": rows(3)}},),
        lambda batch: model(batch["x"]) + batch["more"]["shift"],
    )
