"""The models that are trained, with made-up examples. They need torch; one needs transformers and peft."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

WORDS, PLACES, WIDTH, HEADS, BLOCKS = 1000, 128, 256, 8, 4
FEATURES, HIDDEN, STEPS = 64, 128, 64
TOKENS, SENTENCE, RANK = 8000, 64, 8

Recurrent = Callable[..., nn.Module]


@dataclass(frozen=True, kw_only=True)
class Task:
    """A model and what it is trained on."""

    model: Callable[[Recurrent], nn.Module]  # of a kind of LSTM: a library may have one of its own
    examples: Callable[[torch.Generator, int], tuple[Tensor, Tensor]]
    needs: tuple[str, ...] = ()  # packages beside torch


class Losses(nn.Module):
    """The loss of each example, the mean over its places if it has several; or the mean of all."""

    def __init__(self, reduction: str = "none") -> None:
        super().__init__()
        self.reduction = reduction

    def forward(self, out: Tensor, wanted: Tensor) -> Tensor:
        if out.ndim == 2:
            each = functional.cross_entropy(out, wanted, reduction="none")
        else:
            places = functional.cross_entropy(out.flatten(0, 1), wanted.flatten(), reduction="none")
            each = places.view_as(wanted).mean(1)
        return each if self.reduction == "none" else each.mean()


def network(_: Recurrent) -> nn.Module:
    """The source's network for MNIST."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 8, stride=2, padding=3),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Conv2d(16, 32, 4, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(2, stride=1),
        nn.Flatten(),
        nn.Linear(512, 32),
        nn.ReLU(),
        nn.Linear(32, 10),
    )


def head(_: Recurrent) -> nn.Module:
    """The source's head for flowers, on features of a network that is frozen."""
    return nn.Sequential(nn.Linear(25088, 512), nn.ReLU(), nn.Linear(512, 102))


class Block(nn.Module):
    """Attention that looks back only, and two layers at every place."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.look, self.gather = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.look(self.before(x)).view(*x.shape[:2], 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        x = x + self.gather(seen.transpose(1, 2).reshape(x.shape))
        y: Tensor = self.narrow(functional.gelu(self.widen(self.between(x))))
        return x + y


class Writer(nn.Module):
    """A small GPT whose head is not tied, since the peer's ghost clipping takes no tied one."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(PLACES, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.last, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words) + self.places(torch.arange(PLACES).repeat(len(words), 1))
        for block in self.blocks:
            x = block(x)
        out: Tensor = self.head(self.last(x))
        return out


class Listener(nn.Module):
    """An LSTM, and a head on its last state."""

    def __init__(self, recurrent: Recurrent) -> None:
        super().__init__()
        self.states, self.head = recurrent(FEATURES, HIDDEN, batch_first=True), nn.Linear(HIDDEN, 10)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.head(self.states(x)[0][:, -1])
        return out


class Reader(nn.Module):
    """A small BERT with LoRA adapters on queries and values, and a head of its own."""

    def __init__(self) -> None:
        super().__init__()
        from peft import LoraConfig, get_peft_model  # type: ignore[import-not-found,unused-ignore]
        from transformers import (  # type: ignore[import-not-found,unused-ignore]
            BertConfig,
            BertForSequenceClassification,
        )

        config = BertConfig(
            vocab_size=TOKENS,
            hidden_size=256,
            num_hidden_layers=4,
            num_attention_heads=4,
            intermediate_size=1024,
            max_position_embeddings=SENTENCE,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
        adapters = LoraConfig(task_type="SEQ_CLS", r=RANK, target_modules=["query", "value"])
        self.bert = get_peft_model(BertForSequenceClassification(config), adapters)

    def forward(self, words: Tensor) -> Tensor:
        out: Tensor = self.bert(input_ids=words).logits
        return out


def _pictures(source: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
    return torch.randn(count, 1, 28, 28, generator=source), torch.randint(0, 10, (count,), generator=source)


def _features(source: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
    return torch.randn(count, 25088, generator=source), torch.randint(0, 102, (count,), generator=source)


def _texts(source: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
    words = torch.randint(0, WORDS, (count, PLACES + 1), generator=source)
    return words[:, :-1].contiguous(), words[:, 1:].contiguous()


def _sounds(source: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
    x = torch.randn(count, STEPS, FEATURES, generator=source)
    return x, torch.randint(0, 10, (count,), generator=source)


def _sentences(source: torch.Generator, count: int) -> tuple[Tensor, Tensor]:
    words = torch.randint(0, TOKENS, (count, SENTENCE), generator=source)
    return words, torch.randint(0, 2, (count,), generator=source)


NETWORK = Task(model=network, examples=_pictures)
HEAD = Task(model=head, examples=_features)
GPT = Task(model=lambda _: Writer(), examples=_texts)
LSTM = Task(model=Listener, examples=_sounds)
LORA = Task(model=lambda _: Reader(), examples=_sentences, needs=("transformers", "peft"))
