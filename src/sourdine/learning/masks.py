"""Where torch draws at random for a layer, such as the masks of dropout: from a start that nobody knows.

What is drawn for an example depends on its place in the batch. Whoever knew the draws, by a seed, would see
how one example more moves those of all after it, which no clipping bounds.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from sourdine.core.random.bits import Bits

_WORDS = 624  # of 32 bits, the state of torch's generator on the processor (Matsumoto, Nishimura 1998)
_BEGIN = 24  # bytes before them: a seed, how many are left, whether it was seeded, which is next


@contextmanager
def unforeseen(bits: Bits) -> Iterator[None]:
    """Let torch draw from secret bits while the block lasts, and go on as before afterwards."""
    with torch.random.fork_rng():
        reseed(bits)
        yield


def reseed(bits: Bits) -> None:
    """Give torch's generators a start made of secret bits: all of its state on the processor.

    `torch.manual_seed` would keep 32 bits of a seed there, which can be tried one by one. The generators of
    other devices are made of a counter and a key of 64 bits.
    """
    drawn = bits.words(1 + _WORDS // 2)
    seed = int(drawn[0] >> 1)
    if torch.accelerator.is_available():
        torch.manual_seed(seed)  # of all devices, which takes a millisecond
    state = torch.Generator().manual_seed(seed).get_state().numpy()  # it has drawn nothing ahead
    begin = np.zeros(_BEGIN // 4, np.int32)
    begin[2:4] = 1  # one is left before the whole state is made anew, and it was seeded
    state[:_BEGIN] = begin.view(np.uint8)
    state[_BEGIN : _BEGIN + 8 * _WORDS] = drawn[1:].view(np.uint32).astype(np.uint64).view(np.uint8)
    torch.set_rng_state(torch.from_numpy(state))
