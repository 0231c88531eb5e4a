"""A block of spends as a line keeps it: a text that can be read back, and what it costs."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from sourdine.accounting.ledger.cost import Cost, cost_of
from sourdine.accounting.ledger.terms import Terms
from sourdine.accounting.ledger.typed import typed
from sourdine.accounting.spend import Spend
from sourdine.core.errors import InvalidParameter, SourdineError

K = TypeVar("K")
_REMEMBERED = 4096


@dataclass(frozen=True)
class Block:
    """Spends as they are read from their text, under the terms of a ledger."""

    spends: tuple[Spend, ...]
    text: str
    terms: Terms

    def holds(self, spends: tuple[Spend, ...]) -> bool:
        """Whether these are its spends, held against what was read back from its text.

        Those that were charged may have been changed since, frozen or not, and are equal to themselves.
        """
        return self.spends == spends and all(map(_alike, self.spends, spends))

    @cached_property
    def cost(self) -> Cost:
        """What the block costs; spends that the ledger cannot pay for raise."""
        return cost_of(self.terms, self.spends)


class Blocks:
    """The blocks of one ledger; the last few are remembered, since most charges are like earlier ones."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._read: dict[str, Block] = {}
        self._kept: dict[tuple[Spend, ...], Block] = {}

    def knows(self, text: str) -> bool:
        """Whether a text was read before."""
        return text in self._read

    def read(self, text: str) -> Block:
        """The block that a text holds, or one of the errors of a malformed description."""
        return self._read.get(text) or self._read_anew(text)

    def _read_anew(self, text: str) -> Block:
        spends = tuple(Spend.from_json(spend) for spend in typed(list, json.loads(text)))
        block = Block(spends, text, self._terms)
        _remember(self._read, text, block)
        return block

    def keep(self, spends: tuple[Spend, ...]) -> Block:
        """The block for spends that are to be charged: what is priced is what will be read back."""
        try:
            block = self._kept.get(spends)
        except TypeError:  # a field that has no hash has no JSON form either
            return self._read_back(spends)
        if block is None:
            block = self._read_back(spends)
            _ = block.cost  # what cannot be paid for is refused before it is remembered
            _remember(self._kept, block.spends, block)  # equal to what was given, and nobody else's to change
        return block

    def _read_back(self, spends: tuple[Spend, ...]) -> Block:
        try:
            text = json.dumps([spend.to_json() for spend in spends])
            block = self._read_anew(text)  # a name may have been registered anew, for another class
        except SourdineError:
            raise  # such as that a class has no name, with what to do
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise _unlike(spends[0]) from problem
        for read, given in zip(block.spends, spends, strict=True):
            if read != given or not _alike(read, given):
                raise _unlike(given)
        return block


def _remember(known: dict[K, Block], key: K, block: Block) -> None:
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = block


def _alike(read: Spend, given: Spend) -> bool:
    """Whether their parts are of the same classes: one that is derived may call itself equal."""
    return all(
        type(getattr(read, name)) is type(getattr(given, name))
        for name in ("mechanism", "distance", "count", "sampling", "part")
    )


def _unlike(spend: Spend) -> InvalidParameter:
    kind = type(spend.mechanism).__name__
    return InvalidParameter(
        f"A spend of {kind} would not be read back from the ledger as it is, so its price could never be "
        "checked. Nothing was spent. Use the class that its name stands for, and not one made from it."
    )
