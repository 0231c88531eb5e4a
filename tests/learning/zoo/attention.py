"""Models of sequences: attending, scanning, and what is laid over them."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.learning.zoo.case import COUNT, Case, Written, rows, words


def encoder() -> Case:
    inner = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False
    )
    return Case(Written(lambda m, x: m.b(m.a(x).mean(1)), a=inner, b=nn.Linear(8, 2)), (rows(5, 8),))


def encoder_with_time_first() -> Case:
    inner = nn.TransformerEncoderLayer(8, 2, 16)
    return Case(
        Written(lambda m, x: m.b(m.a(x.transpose(0, 1)).mean(0)), a=inner, b=nn.Linear(8, 2)), (rows(5, 8),)
    )


def decoder() -> Case:
    inner = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    return Case(
        Written(lambda m, x, y: m.b(m.a(x, y, tgt_mask=mask).mean(1)), a=inner, b=nn.Linear(8, 2)),
        (rows(4, 8), rows(5, 8)),
    )


def whole_transformer() -> Case:
    inner = nn.Transformer(8, 2, 1, 1, 16, batch_first=True)
    return Case(
        Written(lambda m, x, y: m.b(m.a(x, y).mean(1)), a=inner, b=nn.Linear(8, 2)), (rows(5, 8), rows(4, 8))
    )


def attention_with_masks() -> Case:
    def run(m: Written, x: Tensor, hidden: Tensor) -> Tensor:
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        return m.a(x, x, x, attn_mask=mask, key_padding_mask=hidden > 2, need_weights=False)[0]

    return Case(Written(run, a=nn.MultiheadAttention(8, 2, batch_first=True)), (rows(5, 8), rows(5)))


def attention_with_a_mask_for_each() -> Case:
    def run(m: Written, x: Tensor, bias: Tensor) -> Tensor:
        return m.a(x, x, x, attn_mask=bias.repeat_interleave(2, 0), need_weights=False)[0]

    return Case(Written(run, a=nn.MultiheadAttention(8, 2, batch_first=True)), (rows(5, 8), rows(5, 5)))


def attention_with_time_first() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        x = x.transpose(0, 1)
        return m.a(x, x, x)[0].transpose(0, 1)

    return Case(Written(run, a=nn.MultiheadAttention(8, 2)), (rows(5, 8),))


def attention_of_other_widths() -> Case:
    return Case(
        Written(
            lambda m, x, y: m.a(x, y, y)[0],
            a=nn.MultiheadAttention(8, 2, kdim=3, vdim=3, add_bias_kv=True, batch_first=True),
        ),
        (rows(5, 8), rows(4, 3)),
    )


def _gpt(m: Written, x: Tensor) -> Tensor:
    at = torch.arange(x.shape[1])
    h = m.table(x) + m.places(at.unsqueeze(0) if m.axis else at)
    mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
    return m.head(m.inner(m.drop(h), src_mask=mask, is_causal=True))


def _gpt_parts(axis: bool) -> Written:
    model = Written(
        _gpt,
        axis=axis,
        table=nn.Embedding(11, 8),
        places=nn.Embedding(16, 8),
        drop=nn.Dropout(0.1),
        inner=nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True),
        head=nn.Linear(8, 11, bias=False),
    )
    model.head.weight = model.table.weight
    return model


def gpt_with_places_of_no_batch() -> Case:
    return Case(_gpt_parts(axis=False), (words(),))


def gpt_with_places_of_a_batch_of_one() -> Case:
    return Case(_gpt_parts(axis=True), (words(),))


def learned_places_as_a_parameter() -> Case:
    return Case(
        Written(
            lambda m, x: m.last((m.table(x) + m.places[: x.shape[1]]).tanh()),
            table=nn.Embedding(11, 4),
            places=torch.randn(16, 4),
            last=nn.Linear(4, 2),
        ),
        (words(),),
    )


def sinusoidal_places() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        at = torch.arange(x.shape[1]).unsqueeze(1) * torch.exp(-torch.arange(4) / 4)
        return m.last((m.table(x) + at.sin()).mean(1))

    return Case(Written(run, table=nn.Embedding(11, 4), last=nn.Linear(4, 2)), (words(),))


def _rotated(x: Tensor) -> Tensor:
    angle = torch.arange(x.shape[-2]).unsqueeze(1) * torch.tensor([1.0, 0.1])
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1)


def rotary_grouped_queries() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        h = m.norm(m.table(x))
        q = m.q(h).unflatten(2, (2, 4)).transpose(1, 2)
        k, v = (part(h).unsqueeze(1).expand_as(q) for part in (m.k, m.v))
        out = functional.scaled_dot_product_attention(_rotated(q), _rotated(k), v, is_causal=True)
        return m.last(functional.silu(m.gate(out.transpose(1, 2).flatten(2))))

    return Case(
        Written(
            run,
            table=nn.Embedding(11, 8),
            norm=nn.RMSNorm(8),
            q=nn.Linear(8, 8, bias=False),
            k=nn.Linear(8, 4, bias=False),
            v=nn.Linear(8, 4, bias=False),
            gate=nn.Linear(8, 8),
            last=nn.Linear(8, 3),
        ),
        (words(),),
    )


def _biased(m: Written, x: Tensor, bias: Tensor) -> Tensor:
    q, k, v = m.qkv(m.table(x)).unflatten(2, (2, 12)).transpose(1, 2).chunk(3, dim=3)
    return m.last(((q @ k.transpose(2, 3) / 2 + bias).softmax(3) @ v).transpose(1, 2).flatten(2).mean(1))


def _apart(x: Tensor) -> Tensor:
    at = torch.arange(x.shape[1])
    return (at - at.unsqueeze(1)).clamp(-4, 4) + 4


def relative_bias_by_a_table() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        return _biased(m, x, m.bias(_apart(x)).permute(2, 0, 1).unsqueeze(0))

    return Case(
        Written(
            run,
            table=nn.Embedding(11, 8),
            qkv=nn.Linear(8, 24),
            bias=nn.Embedding(9, 2),
            last=nn.Linear(8, 2),
        ),
        (words(),),
    )


def relative_bias_by_a_parameter() -> Case:
    return Case(
        Written(
            lambda m, x: _biased(m, x, m.bias[:, _apart(x)]),
            table=nn.Embedding(11, 8),
            qkv=nn.Linear(8, 24),
            bias=torch.randn(2, 9),
            last=nn.Linear(8, 2),
        ),
        (words(),),
    )


def linear_slopes_of_heads() -> Case:
    return Case(
        Written(
            lambda m, x: _biased(m, x, -m.slopes.exp().view(2, 1, 1) * _apart(x)),
            table=nn.Embedding(11, 8),
            qkv=nn.Linear(8, 24),
            slopes=torch.zeros(2),
            last=nn.Linear(8, 2),
        ),
        (words(),),
    )


def linear_attention() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        q, k, v = m.qkv(x).chunk(3, dim=2)
        q, k = functional.elu(q) + 1, functional.elu(k) + 1
        return m.last((q @ (k.transpose(1, 2) @ v)) / (q @ k.sum(1).unsqueeze(2)))

    return Case(Written(run, qkv=nn.Linear(4, 12), last=nn.Linear(4, 2)), (rows(6, 4),))


def state_space_scan() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        state, told = x.new_zeros(len(x), 5), []
        for step in x.unbind(1):
            state = m.decay.sigmoid() * state + step @ m.into
            told.append(state @ m.out)
        return torch.stack(told, dim=1)

    return Case(
        Written(run, decay=torch.randn(5), into=torch.randn(4, 5), out=torch.randn(5, 2)), (rows(6, 4),)
    )


def selective_scan() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        rate, into = m.rate(x).sigmoid(), m.into(x)
        state = x.new_zeros(len(x), 5)
        for i in range(x.shape[1]):
            state = (-rate[:, i] * m.a.exp()).exp() * state + rate[:, i] * into[:, i]
        return m.out(m.norm(state))

    return Case(
        Written(
            run,
            rate=nn.Linear(4, 5),
            into=nn.Linear(4, 5),
            a=torch.zeros(5),
            norm=nn.LayerNorm(5),
            out=nn.Linear(5, 2),
        ),
        (rows(6, 4),),
    )


def time_mixing() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        before = functional.pad(x, (0, 0, 1, -1))
        return m.out(m.key(x * m.mix + before * (1 - m.mix)).relu().square())

    return Case(
        Written(run, mix=torch.rand(1, 1, 4), key=nn.Linear(4, 6), out=nn.Linear(6, 2)), (rows(6, 4),)
    )


def universal_transformer() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        for _ in range(3):
            x = m.inner(x)
        return m.last(x.mean(1))

    return Case(
        Written(run, inner=nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), last=nn.Linear(8, 2)),
        (rows(5, 8),),
    )


def factorised_table() -> Case:
    return Case(
        nn.Sequential(nn.Embedding(11, 3), nn.Linear(3, 8, bias=False), nn.LayerNorm(8), nn.Linear(8, 2)),
        (words(),),
    )


def switched_experts() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        chance, chosen = m.gate(x).softmax(1).max(1)
        out = x.new_zeros(len(x), 2)
        for number, expert in enumerate(m.experts):
            at = chosen == number
            out[at] = expert(x[at]) * chance[at].unsqueeze(1)
        return out

    gate = nn.Linear(4, 2)
    nn.init.normal_(gate.weight, std=3.0)
    return Case(Written(run, gate=gate, experts=nn.ModuleList(nn.Linear(4, 2) for _ in range(2))), (rows(4),))


def memory_network() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        return m.last((m.ask(x) @ m.keys.T / math.sqrt(5)).softmax(-1) @ m.values)

    return Case(
        Written(
            run, ask=nn.Linear(4, 5), keys=torch.randn(6, 5), values=torch.randn(6, 3), last=nn.Linear(3, 2)
        ),
        (rows(4),),
    )


def pointer_network() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        told, last = m.encoder(x)
        return (m.key(told) @ m.query(last[-1]).unsqueeze(2)).squeeze(2).log_softmax(1)

    return Case(
        Written(run, encoder=nn.GRU(4, 5, batch_first=True), key=nn.Linear(5, 5), query=nn.Linear(5, 5)),
        (rows(6, 4),),
    )


def conditional_random_field() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        told = m.emit(x)
        total = m.start + told[:, 0]
        for i in range(1, x.shape[1]):
            total = (total.unsqueeze(2) + m.moves).logsumexp(1) + told[:, i]
        return total.logsumexp(1, keepdim=True) - told.diagonal(dim1=1, dim2=2).sum(1, keepdim=True)

    return Case(
        Written(run, emit=nn.Linear(4, 3), start=torch.zeros(3), moves=torch.randn(3, 3)), (rows(6, 4),)
    )


def alignment_free_loss() -> Case:
    inner = nn.Linear(4, 5)

    def ask(x: Tensor, targets: Tensor) -> Tensor:
        chances = inner(x).log_softmax(2).transpose(0, 1)
        told = functional.ctc_loss(
            chances, targets.clamp(1, 4), torch.full((len(x),), 8), torch.full((len(x),), 2), reduction="none"
        )
        return told.unsqueeze(1)

    return Case(inner, (rows(8, 4), torch.randint(1, 5, (COUNT, 2))), ask)


def checkpointed_blocks() -> Case:
    from torch.utils.checkpoint import checkpoint

    def run(m: Written, x: Tensor) -> Tensor:
        told: Tensor = checkpoint(m.inner, m.first(x), use_reentrant=False)
        return m.last(told)

    return Case(
        Written(
            run, first=nn.Linear(4, 6), inner=nn.Sequential(nn.Linear(6, 6), nn.Tanh()), last=nn.Linear(6, 2)
        ),
        (rows(4),),
    )
