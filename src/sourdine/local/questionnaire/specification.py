"""What is asked, of whom how much: several items, some of them two together, within one epsilon."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from itertools import product

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.local.choose import choose
from sourdine.local.oracle import FrequencyOracle, digest
from sourdine.local.question import Question
from sourdine.mechanisms.randomized_response import MOST_EPSILON

FORMAT = "sourdine questionnaire 1"
BESIDE = " | "
"""What stands between the labels of two items that are asked together."""
_MOST_ITEMS, _MOST_CHANGES = 1000, 1 << 20
_LEAST_EPSILON = Fraction(1, 1 << 10)


class Way(StrEnum):
    """How a budget is shared among the questions of one device."""

    SAMPLE = "sample"
    """Each device answers one of them, by its secret, with all of it."""
    SPLIT = "split"
    """Each device answers all of them, with a part each."""


@dataclass(frozen=True)
class Item:
    """One thing that is asked, with the answers there are."""

    name: str
    labels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Questionnaire:
    """Items within one budget: all reports of a device together reveal at most `epsilon`, ever.

    That holds for any two histories of answers if `changes` is 1, and else for those with the same repeats.

    `joint` names pairs of items that are asked together, as one question about both; an item in a pair is not
    asked alone. `changes` is how many different answers to a question a device reports on at most: each is a
    report of its own, so the budget is divided by it beforehand. The way is the one with the smaller forecast
    variance, unless it is given.

    >>> survey = Questionnaire(
    ...     name="office", epsilon=2, items=(Item("way", ("foot", "car")), Item("lunch", ("no", "yes")))
    ... )
    >>> survey.way, [str(each.oracle.epsilon) for each in survey.questions]
    (<Way.SAMPLE: 'sample'>, ['2', '2'])
    """

    name: str
    epsilon: Fraction
    items: tuple[Item, ...]
    joint: tuple[tuple[str, str], ...] = ()
    changes: int = 1
    given_way: Way | None = None

    def __post_init__(self) -> None:
        owner = "Questionnaire"
        check.keep(
            self,
            epsilon=check.between(owner, "epsilon", self.epsilon, _LEAST_EPSILON, Fraction(MOST_EPSILON)),
            changes=check.integer(owner, "changes", self.changes, 1, _MOST_CHANGES),
        )
        names = [item.name for item in self.items]
        if not 1 <= len(names) <= _MOST_ITEMS or len(set(names)) < len(names):
            raise check.fail(owner, "items", f"be 1 to {_MOST_ITEMS}, of different names", names)
        for item in self.items:
            if any(BESIDE.strip() in label for label in item.labels):
                raise check.fail(owner, "items", f"have labels without '{BESIDE.strip()}'", item.name)
        for one, other in self.joint:
            if one == other or one not in names or other not in names:
                raise check.fail(owner, "joint", "be pairs of two different items", (one, other))
        if len({frozenset(pair) for pair in self.joint}) < len(self.joint):
            raise check.fail(owner, "joint", "name each pair once", self.joint)
        way = None if self.given_way is None else check.member(owner, "given_way", self.given_way, Way)
        check.keep(self, given_way=min(Way, key=self.forecast) if way is None else way)

    @property
    def asks(self) -> tuple[tuple[Item, ...], ...]:
        """What the questions are about: single items, then pairs."""
        by_name = {item.name: item for item in self.items}
        paired = {name for pair in self.joint for name in pair}
        singles = tuple((item,) for item in self.items if item.name not in paired)
        return singles + tuple((by_name[one], by_name[other]) for one, other in self.joint)

    def report_epsilon(self, way: Way) -> Fraction:
        """What one report may reveal, so that all of a device stay within the budget."""
        parts = self.changes * (len(self.asks) if way is Way.SPLIT else 1)
        return self.epsilon / parts

    @property
    def way(self) -> Way:
        """How the budget is shared."""
        assert self.given_way is not None  # since it was made
        return self.given_way

    def forecast(self, way: Way) -> float:
        """The mean variance of a share, times the number of devices, where all answers are as frequent.

        If one question is sampled, those who get it are a part of all devices, and stand for the others: that
        adds the variance of a sample without replacement.
        """
        asks = len(self.asks)
        total = 0.0
        for question in self._questions(way):
            assert isinstance(question.oracle, FrequencyOracle)
            share = 1 / question.oracle.categories
            noise = float(question.oracle.channel.variance(share, 1))
            sampling = share * (1 - share) * (1 - 1 / asks)
            total += noise if way is Way.SPLIT else asks * (noise + sampling)
        return total / asks

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The questions, each with a fingerprint of its own: collectors take their reports as any others."""
        return tuple(self._questions(self.way))

    def _questions(self, way: Way) -> Iterator[Question]:
        for items in self.asks:
            labels = tuple(BESIDE.join(each) for each in product(*(item.labels for item in items)))
            name = f"{self.name}: {' and '.join(item.name for item in items)}"
            oracle = choose(self.report_epsilon(way), len(labels)).oracle if len(labels) > 1 else None
            if oracle is None:
                raise InvalidParameter(
                    f"The item '{items[0].name}' has fewer than two labels. List at least two."
                )
            yield Question(name=name, oracle=oracle, labels=labels)

    @property
    def identity(self) -> str:
        """What the choice of a device's question depends on: the SHA-256 of the whole, in 64 digits."""
        return digest(self.to_json())

    def to_json(self) -> dict[str, object]:
        """The questionnaire for a file."""
        return {
            "format": FORMAT,
            "name": self.name,
            "epsilon": str(self.epsilon),
            "items": [{"name": item.name, "labels": list(item.labels)} for item in self.items],
            "joint": [list(pair) for pair in self.joint],
            "changes": self.changes,
            "way": str(self.way),
        }

    @classmethod
    def from_json(cls, description: object) -> "Questionnaire":
        """A questionnaire from a file; one that is not written as this writes it is refused."""
        try:
            assert isinstance(description, Mapping)
            questionnaire = cls(
                name=description["name"],
                epsilon=Fraction(description["epsilon"]),
                items=tuple(Item(each["name"], tuple(each["labels"])) for each in description["items"]),
                joint=tuple((one, other) for one, other in description["joint"]),
                changes=description["changes"],
                given_way=Way(description["way"]),
            )
            same = questionnaire.to_json() == dict(description)
        except (AssertionError, KeyError, TypeError, ValueError):
            same = False
        if not same:
            raise InvalidParameter("This is no questionnaire, or it was changed. Get the file again.")
        return questionnaire
