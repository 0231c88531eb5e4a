"""One line of a ledger: which mechanism is used, how often, on what."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from sourdine.accounting.accountant import Accountant
from sourdine.accounting.joint import together
from sourdine.accounting.subsampling.samplers import Sampling
from sourdine.accounting.transforms import parallel
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Mechanism
from sourdine.core.serialization import decoded, encoded, is_ours, name_of

if TYPE_CHECKING:
    from dp_accounting.dp_event import DpEvent

C = TypeVar("C")


@dataclass(frozen=True)
class DisjointPart:
    """One of several parts of the data, disjoint in units: those of a family cost as much as their worst.

    Names that look alike are the same, however their letters are put together (Unicode normal form C): as two
    parts they would cost as much as one of them.
    """

    family: str
    key: str

    def __post_init__(self) -> None:
        for name in ("family", "key"):
            text = getattr(self, name)
            if not isinstance(text, str):
                raise check.fail("DisjointPart", name, "be a text", text)
            check.keep(self, **{name: unicodedata.normalize("NFC", text)})


@dataclass(frozen=True, kw_only=True)
class Spend:
    """A mechanism used `count` times on data at a distance, perhaps on samples, perhaps on one part.

    >>> from sourdine.mechanisms import Laplace
    >>> spend = Spend(mechanism=Laplace(scale=10), distance=Distance.l1(1), count=3)
    >>> Spend.from_json(spend.to_json()) == spend
    True
    """

    mechanism: Mechanism
    distance: Distance
    count: int = 1
    sampling: Sampling | None = None
    part: DisjointPart | None = None

    def __post_init__(self) -> None:
        kinds = {"mechanism": Mechanism, "distance": Distance}
        kinds |= {name: kind for name, kind in _OPTIONAL.items() if getattr(self, name) is not None}
        for name, kind in kinds.items():
            if not isinstance(getattr(self, name), kind):
                raise check.fail("Spend", name, f"be a {kind.__name__}", getattr(self, name))
        object.__setattr__(self, "count", check.integer("Spend", "count", self.count, 1, 2**62))

    def loss(self) -> PrivacyLoss:
        """The loss of all uses together."""
        return together([(self.one_loss(), self.count)])

    def one_loss(self) -> PrivacyLoss:
        """The loss of one use, with its sampling."""
        loss = self.mechanism.loss(self.distance)
        return loss if self.sampling is None else self.sampling.apply(loss)

    @classmethod
    def from_dp_event(
        cls, event: object, neighbours: Neighbours = Neighbours.ADD_REMOVE
    ) -> "tuple[Spend, ...]":
        """What an event of the package dp_accounting spends: one spend for each of its mechanisms.

        They are never less than the event (docs/guarantees/dp_events.md); an event that nothing here is known
        to cover is refused. An event bounds what one unit adds: replaced, it moves a sum twice as far.
        """
        from sourdine.accounting.dp_events import spends_of_event

        return spends_of_event(event, neighbours)

    def to_dp_event(self) -> "DpEvent":
        """An event of dp_accounting, which must be installed, that is never less than this spend."""
        from sourdine.accounting.dp_events import event_of_spend

        return event_of_spend(self)

    def to_json(self) -> dict[str, object]:
        """A description that `from_json` turns back into an equal spend."""
        return encoded(self)

    @classmethod
    def from_json(cls, description: Mapping[str, object]) -> "Spend":
        """The spend that a description tells of."""
        return decoded(cls, description)


def foreign_names(spends: Iterable[Spend]) -> tuple[str, ...]:
    """The names of the mechanisms and samplings among these that are not of this package.

    >>> from sourdine.mechanisms import Laplace
    >>> foreign_names([Spend(mechanism=Laplace(scale=10), distance=Distance.l1(1))])
    ()
    """
    used = {type(part) for spend in spends for part in (spend.mechanism, spend.sampling) if part is not None}
    return tuple(sorted(name for name in map(name_of, used) if not is_ours(name)))


def foreign_words(names: Sequence[str]) -> str:
    """What people are told of such names.

    >>> foreign_words(["acme.example/tail-noise/1"])
    'Not of this package: acme.example/tail-noise/1. What is claimed of it is the word of its author.'
    """
    them = "it is the word of its author" if len(names) == 1 else "them is the word of their authors"
    return f"Not of this package: {', '.join(names)}. What is claimed of {them}."


_OPTIONAL: dict[str, type] = {"sampling": Sampling, "part": DisjointPart}


def block_loss(spends: Sequence[Spend]) -> PrivacyLoss:
    """All spends of a plan as one loss: the worst within a family of parts, the sum of all else.

    >>> from sourdine.mechanisms import Laplace
    >>> women = Spend(mechanism=Laplace(scale=2), distance=Distance.l1(1), part=DisjointPart("sex", "f"))
    >>> block_loss([women, replace(women, part=DisjointPart("sex", "m"))]).epsilon
    Fraction(1, 2)
    """
    return together(_losses(spends))


def plan_cost(spends: Sequence[Spend], accountant: Accountant[C]) -> C:
    """What a plan costs by an accountant; for PLD it is sharper than the block as one loss."""
    costs = [accountant.repeat(accountant.lift(loss), count) for loss, count in _losses(spends)]
    total = costs[0]
    for cost in costs[1:]:
        total = accountant.join(total, cost)
    return total


def _losses(spends: Sequence[Spend]) -> list[tuple[PrivacyLoss, int]]:
    """Every loss of a plan and its count; a family of parts is one loss."""
    if not spends:
        raise check.fail("a plan", "spends", "hold at least one spend", list(spends))
    families: defaultdict[str, defaultdict[str, list[Spend]]] = defaultdict(lambda: defaultdict(list))
    whole = []
    for spend in spends:
        if spend.part is None:
            whole.append(spend)
        else:
            families[spend.part.family][spend.part.key].append(replace(spend, part=None))
    losses = _counted(whole)
    for parts in families.values():
        if all(spend.distance.neighbours is Neighbours.REPLACE for part in parts.values() for spend in part):
            raise UnsupportedLoss(
                "Parts cost as much as their worst only when a unit touches one of them, and a unit that is "
                "replaced may leave one part and enter another. Charge the parts as spends without a part."
            )
        plans = [_counted(part) for part in parts.values()]
        losses.append((parallel([together(plan) for plan in plans]), 1))
    return losses


def _counted(spends: Sequence[Spend]) -> list[tuple[PrivacyLoss, int]]:
    """The losses of spends, equal ones counted together."""
    counts: Counter[Spend] = Counter()
    for spend in spends:
        counts[replace(spend, count=1)] += spend.count
    return [(spend.one_loss(), count) for spend, count in counts.items()]
