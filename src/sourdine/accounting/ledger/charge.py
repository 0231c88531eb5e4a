"""A block of spends as a ledger's line keeps it: what it costs, and a text that can be read back."""

import getpass
import hashlib
import json
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from importlib.metadata import version
from typing import NamedTuple, TypeVar

from sourdine.accounting.ledger.budget import BasicBudget, Shares, sum_of_block
from sourdine.accounting.ledger.making import advise_ledger
from sourdine.accounting.ledger.terms import Terms, check_text, typed
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError, UnsupportedLoss
from sourdine.core.format import either


class Cost(NamedTuple):
    """In the ledger's currency, of its selection delta, and of each of its orders, if there are several."""

    price: Fraction
    delta: Fraction
    shares: Shares = ()


def cost_of(terms: Terms, spends: tuple[Spend, ...]) -> Cost:
    """The cost of a block under the terms of a ledger; spends that it cannot pay for raise."""
    if not spends:
        raise InvalidParameter("A charge must hold at least one spend. Pass what the release will use.")
    own = own_delta(terms, spends)
    try:
        price = terms.budget.block_price(spends, own, terms.rest)
        return Cost(price, own, terms.budget.block_shares(spends, terms.rest))
    except UnsupportedLoss as problem:
        raise UnsupportedLoss(f"{problem} {advise_ledger(terms, spends)}".rstrip()) from problem


def own_delta(terms: Terms, spends: tuple[Spend, ...]) -> Fraction:
    """What a block takes of the selection delta; a ledger of another relation, or without one, refuses it.

    Where a block is composed as a whole, a ledger without a selection delta counts it in the block's delta.
    """
    deltas = [_own_delta(terms, spend) for spend in spends]
    return Fraction(0) if terms.selection_delta is None else sum_of_block(spends, deltas)


def _own_delta(terms: Terms, spend: Spend) -> Fraction:
    relation = spend.distance.neighbours
    if relation is not terms.neighbours:
        raise InvalidParameter(
            f"The ledger is for {terms.neighbours} neighbours and the spends for {relation} ones. "
            f"Their costs do not add up. State the distances for {terms.neighbours} neighbours."
        )
    if spend.part is not None and relation is Neighbours.REPLACE:
        raise UnsupportedLoss(
            "Parts cost as much as their worst only when a unit touches one of them, and a unit that is "
            "replaced may leave one part and enter another. Charge the parts as spends without a part."
        )
    delta = spend.one_loss().delta
    if delta and terms.selection_delta is None and not isinstance(terms.budget, BasicBudget):
        raise UnsupportedLoss(
            "A spend chooses keys privately, which takes a delta of its own, and this ledger keeps none "
            "for that. Nothing was spent. Declare the keys, or make a ledger with a selection delta, such as "
            + either(
                "Ledger.create(path, epsilon=3, delta=1e-6, selection_delta=5e-7).",
                "`sourdine ledger create NEW --epsilon 3 --delta 1e-6 --selection-delta 5e-7`.",
            )
        )
    return spend.count * Fraction(delta)


K = TypeVar("K")
_REMEMBERED = 4096
_SLACK = Fraction(1, 10**9)


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

    def covered(self, price: Fraction, delta: Fraction, shares: Shares) -> bool:
        """Whether what was paid once, perhaps on another machine, is enough; floats may differ there."""
        own = own_delta(self.terms, self.spends)
        if own and delta < own * (1 - _SLACK):
            return False
        return self.terms.budget.covers(price, self.spends, own, self.terms.rest, shares)


class Blocks:
    """The blocks of one ledger; the last few are remembered, since most charges are like earlier ones."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms
        self._read: dict[str, Block] = {}
        self._by_spends: dict[tuple[Spend, ...], Block] = {}

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
            block = self._by_spends.get(spends)
        except TypeError:  # a field that has no hash has no JSON form either
            return self._read_back(spends)
        if block is None:
            block = self._read_back(spends)
            _ = block.cost  # what cannot be paid for is refused before it is remembered
            _remember(
                self._by_spends, block.spends, block
            )  # equal to what was given, and nobody else's to change
        return block

    def _read_back(self, spends: tuple[Spend, ...]) -> Block:
        try:
            text = json.dumps([spend.to_json() for spend in spends])
            block = self._read_anew(text)  # a name may have been registered anew, for another class
        except SourdineError:
            raise  # such as that a class has no name, with what to do
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise _unlike(spends[0]) from problem
        for read, spend in zip(block.spends, spends, strict=True):
            if read != spend or not _alike(read, spend):
                raise _unlike(spend)
        return block


def _remember(known: dict[K, Block], key: K, block: Block) -> None:
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = block


def _alike(read: Spend, spend: Spend) -> bool:
    """Whether their parts are of the same classes: one that is derived may call itself equal."""
    return all(
        type(getattr(read, name)) is type(getattr(spend, name))
        for name in ("mechanism", "distance", "count", "sampling", "part")
    )


def _unlike(spend: Spend) -> InvalidParameter:
    kind = type(spend.mechanism).__name__
    return InvalidParameter(
        f"A spend of {kind} would not be read back from the ledger as it is, so its price could never be "
        "checked. Nothing was spent. Use the class that its name stands for, and not one made from it."
    )


class Statement(NamedTuple):
    """What a charge costs and what its line will state, before and after what the time adds.

    The digest is of both.
    """

    cost: Cost
    before: str
    after: str
    digest: str


def state(
    block: Block,
    *,
    purpose: str,
    author: str | None,
    secure: bool | None,
    digest: str | None,
    allowance: str | None,
) -> Statement:
    """The statement of a block and the digest of what was declared."""
    if allowance is not None:
        check_text("allowance", allowance)
    stated = say_who(purpose, author_of(author), block.cost.price)
    if secure is not None:
        stated += f', "secure": {json.dumps(check.boolean("Ledger", "secure", secure))}'
    if digest is not None:
        stated += f', "declared_digest": "{digest}"'
    described = f'"spends": {block.text}'
    return Statement(block.cost, stated, described, digest_of(stated, allowance or "", described))


def digest_of(*texts: str) -> str:
    """The SHA-256 of texts, whatever stands in them."""
    return hashlib.sha256(json.dumps(texts).encode()).hexdigest()


def say_who(purpose: str, author: str, price: Fraction) -> str:
    """What every line states: for what, by whom, at what price, with which software."""
    check_text("purpose", purpose)
    who = f'"purpose": {json.dumps(purpose)}, "author": {json.dumps(author)}'
    return f'{who}, "price": "{price}", "software": {json.dumps(_software())}'


def author_of(author: str | None) -> str:
    """Who charges: the name that is given, or that of the user."""
    name = author if author is not None else _user()
    check_text("author", name)
    return name


@cache
def _software() -> str:
    return f"sourdine {version('sourdine')}"


@cache
def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
