"""Models of sequences: recurrent ones, and bags of words."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.learning.zoo.case import Case, Written, lengths, rows, words


def _recurrent(kind: type[nn.RNNBase], **options: object) -> Case:
    inner = kind(4, 5, batch_first=True, **options)  # type: ignore[arg-type]
    sides = 2 if inner.bidirectional else 1
    return Case(
        Written(lambda m, x: m.b(m.a(x)[0].mean(1)), a=inner, b=nn.Linear(5 * sides, 2)), (rows(6, 4),)
    )


def rnn() -> Case:
    return _recurrent(nn.RNN)


def gru() -> Case:
    return _recurrent(nn.GRU)


def lstm() -> Case:
    return _recurrent(nn.LSTM)


def lstm_of_two_layers_both_ways_with_dropout() -> Case:
    return _recurrent(nn.LSTM, num_layers=2, bidirectional=True, dropout=0.2)


def lstm_with_time_first() -> Case:
    return Case(
        Written(lambda m, x: m.b(m.a(x.transpose(0, 1))[0][-1]), a=nn.LSTM(4, 5), b=nn.Linear(5, 2)),
        (rows(6, 4),),
    )


def gru_with_time_first() -> Case:
    return Case(
        Written(lambda m, x: m.b(m.a(x.transpose(0, 1))[1][0]), a=nn.GRU(4, 5), b=nn.Linear(5, 2)),
        (rows(6, 4),),
    )


def lstm_cell() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        h = c = x.new_zeros(len(x), 5)
        for step in x.unbind(1):
            h, c = m.cell(step, (h, c))
        return m.last(h)

    return Case(Written(run, cell=nn.LSTMCell(4, 5), last=nn.Linear(5, 2)), (rows(6, 4),))


def gru_cell() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        h = x.new_zeros(len(x), 5)
        for step in x.unbind(1):
            h = m.cell(step, h)
        return m.last(h)

    return Case(Written(run, cell=nn.GRUCell(4, 5), last=nn.Linear(5, 2)), (rows(6, 4),))


def rnn_cell() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        h = m.cell(x[:, 0])
        return m.last(m.cell(x[:, 1], h))

    return Case(Written(run, cell=nn.RNNCell(4, 5), last=nn.Linear(5, 2)), (rows(6, 4),))


def _packed(m: Written, x: Tensor, counts: Tensor) -> Tensor:
    packed = pack_padded_sequence(
        m.table(x), counts.clamp(1, x.shape[1]), batch_first=True, enforce_sorted=False
    )
    out, last = m.inner(packed)
    told, _ = pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])
    last = last[0] if isinstance(last, tuple) else last
    return m.last(torch.cat([told.sum(1), last[-1]], dim=1))


def packed_lstm() -> Case:
    return Case(
        Written(
            _packed, table=nn.Embedding(11, 4), inner=nn.LSTM(4, 5, batch_first=True), last=nn.Linear(10, 2)
        ),
        (words(6), lengths(6)),
    )


def packed_gru() -> Case:
    return Case(
        Written(
            _packed, table=nn.Embedding(11, 4), inner=nn.GRU(4, 5, batch_first=True), last=nn.Linear(10, 2)
        ),
        (words(6), lengths(6)),
    )


def learned_first_state() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        return m.last(m.inner(x, m.first.expand(-1, len(x), -1).contiguous())[0][:, -1])

    return Case(
        Written(run, first=torch.randn(1, 1, 5), inner=nn.GRU(4, 5, batch_first=True), last=nn.Linear(5, 2)),
        (rows(6, 4),),
    )


def additive_attention() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        told, last = m.encoder(x)
        scores = m.score((m.key(told) + m.query(last[0]).unsqueeze(1)).tanh())
        return m.last((scores.softmax(1) * told).sum(1))

    return Case(
        Written(
            run,
            encoder=nn.GRU(4, 5, batch_first=True),
            key=nn.Linear(5, 5),
            query=nn.Linear(5, 5),
            score=nn.Linear(5, 1),
            last=nn.Linear(5, 2),
        ),
        (rows(6, 4),),
    )


def text_cnn() -> Case:
    def run(m: Written, x: Tensor) -> Tensor:
        x = m.table(x).transpose(1, 2)
        return m.last(torch.cat([conv(x).relu().amax(2) for conv in m.convs], dim=1))

    return Case(
        Written(
            run,
            table=nn.Embedding(11, 4, padding_idx=0),
            convs=nn.ModuleList([nn.Conv1d(4, 3, 2), nn.Conv1d(4, 3, 3)]),
            last=nn.Linear(6, 2),
        ),
        (words(),),
    )


def fast_text() -> Case:
    return Case(nn.Sequential(nn.EmbeddingBag(11, 4), nn.Linear(4, 2)), (words(),))


def bag_of_sums() -> Case:
    return Case(nn.Sequential(nn.EmbeddingBag(11, 4, mode="sum", padding_idx=0), nn.Linear(4, 2)), (words(),))


def _offsets(m: Written, x: Tensor, counts: Tensor) -> Tensor:
    kept = torch.arange(x.shape[1]) < counts.clamp(1, x.shape[1]).unsqueeze(1)
    starts = torch.cat([counts.new_zeros(1), kept.sum(1).cumsum(0)[:-1]])
    return m.last(m.bag(x[kept], starts))


def bag_with_offsets() -> Case:
    return Case(Written(_offsets, bag=nn.EmbeddingBag(11, 4), last=nn.Linear(4, 2)), (words(), lengths(9)))


def bag_with_offsets_and_most() -> Case:
    return Case(
        Written(_offsets, bag=nn.EmbeddingBag(11, 4, mode="max"), last=nn.Linear(4, 2)), (words(), lengths(9))
    )


def bag_with_weights() -> Case:
    return Case(
        Written(
            lambda m, x, w: m.last(m.bag(x, per_sample_weights=w)),
            bag=nn.EmbeddingBag(11, 4, mode="sum"),
            last=nn.Linear(4, 2),
        ),
        (words(), rows(9)),
    )
