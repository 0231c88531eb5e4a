"""What is asked, of whom how much: several items, some of them two together, within one epsilon."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from itertools import product

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Mechanism
from sourdine.local.choose import choose
from sourdine.local.oracle import FrequencyOracle, digest
from sourdine.local.question import Question
from sourdine.mechanisms.randomized_response import MOST_EPSILON

FORMATS = {1: "sourdine questionnaire 1", 2: "sourdine questionnaire 2"}
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

    `oracles` has the frequency oracle of each question, in the order of `asks`; left out, `choose` takes
    them. The file names them: a version of `choose` that took another oracle would make other questions of
    the same file, and a device would pay for each of them again. A file of format 1 names none.

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
    oracles: tuple[FrequencyOracle, ...] = ()
    format: int = 2

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
        if type(self.format) is not int or self.format not in FORMATS:
            raise check.fail(owner, "format", "be 1 or 2", self.format)
        for items in self.asks:
            if len(_labels(items)) < 2:
                raise InvalidParameter(
                    f"The item '{items[0].name}' has fewer than two labels. List at least two."
                )
        way = None if self.given_way is None else check.member(owner, "given_way", self.given_way, Way)
        check.keep(self, given_way=min(Way, key=self.forecast) if way is None else way)
        check.keep(self, oracles=tuple(self.oracles) or self._chosen(self.way))
        self._check_oracles()
        if len({question.identity for question in self.questions}) < len(self.questions):
            # Reports carry a fingerprint of the question: one report would be counted for both.
            repeated = [question.name for question in self.questions]
            must = "have names that tell every question from every other"
            raise check.fail(owner, "items", must, repeated, "Rename an item.")

    def _check_oracles(self) -> None:
        given: tuple[object, ...] = self.oracles
        if len(given) != len(self.asks):
            raise check.fail("Questionnaire", "oracles", f"be {len(self.asks)}, one a question", len(given))
        most = self.report_epsilon(self.way)
        for oracle, items in zip(given, self.asks, strict=True):
            if not isinstance(oracle, FrequencyOracle) or oracle.categories != len(_labels(items)):
                must = f"be frequency oracles, that of '{items[0].name}' of {len(_labels(items))} categories"
                raise check.fail("Questionnaire", "oracles", must, oracle)
            if not oracle.spend.loss().epsilon <= most:
                raise check.fail("Questionnaire", "oracles", f"cost epsilon {most} at most", oracle.epsilon)

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
        for oracle in self.oracles if self.oracles and way is self.given_way else self._chosen(way):
            share = 1 / oracle.categories
            noise = float(oracle.channel.variance(share, 1))
            sampling = share * (1 - share) * (1 - 1 / asks)
            total += noise if way is Way.SPLIT else asks * (noise + sampling)
        return total / asks

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """The questions, each with a fingerprint of its own: collectors take their reports as any others."""
        return tuple(
            Question(
                name=f"{self.name}: {' and '.join(item.name for item in items)}",
                oracle=oracle,
                labels=_labels(items),
            )
            for oracle, items in zip(self.oracles, self.asks, strict=True)
        )

    def _chosen(self, way: Way) -> tuple[FrequencyOracle, ...]:
        epsilon = self.report_epsilon(way)
        return tuple(choose(epsilon, len(_labels(items))).oracle for items in self.asks)

    @property
    def identity(self) -> str:
        """The SHA-256 of the questionnaire as format 1 has it, in 64 digits.

        The choice of a device's question depends on it, so it must not change with the format or with an
        oracle: the device would answer a second question, and pay for that too.
        """
        return digest(self._body(1))

    def to_json(self) -> dict[str, object]:
        """The questionnaire for a file."""
        return self._body(self.format)

    def _body(self, form: int) -> dict[str, object]:
        return {
            "format": FORMATS[form],
            "name": self.name,
            "epsilon": str(self.epsilon),
            "items": [{"name": item.name, "labels": list(item.labels)} for item in self.items],
            "joint": [list(pair) for pair in self.joint],
            "changes": self.changes,
            "way": str(self.way),
            **({"oracles": [oracle.to_json() for oracle in self.oracles]} if form > 1 else {}),
        }

    @classmethod
    def from_json(cls, description: object) -> "Questionnaire":
        """A questionnaire from a file; one that is not written as this writes it is refused."""
        try:
            assert isinstance(description, Mapping)
            form = {text: number for number, text in FORMATS.items()}[description["format"]]
            questionnaire = cls(
                name=description["name"],
                epsilon=Fraction(description["epsilon"]),
                items=tuple(Item(each["name"], tuple(each["labels"])) for each in description["items"]),
                joint=tuple((one, other) for one, other in description["joint"]),
                changes=description["changes"],
                given_way=Way(description["way"]),
                oracles=tuple(map(_frequency_oracle, description["oracles"])) if form > 1 else (),
                format=form,
            )
            same = questionnaire.to_json() == dict(description)
        except (AssertionError, KeyError, TypeError, ValueError):
            same = False
        if not same:
            raise InvalidParameter("This is no questionnaire, or it was changed. Get the file again.")
        return questionnaire


def _labels(items: tuple[Item, ...]) -> tuple[str, ...]:
    return tuple(BESIDE.join(each) for each in product(*(item.labels for item in items)))


def _frequency_oracle(description: object) -> FrequencyOracle:
    assert isinstance(description, Mapping)
    oracle = Mechanism.from_json(description)
    assert isinstance(oracle, FrequencyOracle)
    return oracle
