"""A specification: what is asked, by which oracle, with which labels. Devices and collectors share it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import either
from sourdine.core.mechanism import Mechanism
from sourdine.local.estimate import Counts, Estimate
from sourdine.local.oracle import Bytes, FrequencyOracle, Oracle, digest, first_written

FORMATS = {1: "sourdine local 1", 2: "sourdine local 2"}
_FIELDS = {"format", "question", "oracle", "labels", "fingerprint"}


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question put to many people, and how each one's answer is made private on their own device.

    Every report carries the fingerprint of the whole specification, so that reports to another question, or
    by other parameters, are never counted in. Categories may have labels. `format` is 1 for a question of
    version 0.1, whose reports carry a fingerprint over the names of that version.

    >>> from sourdine.local import GRR
    >>> coffee = Question(
    ...     name="coffee", oracle=GRR(epsilon=1, categories=2), labels=("no", "yes")
    ... )
    >>> Question.from_json(coffee.to_json()) == coffee
    True
    """

    name: str
    oracle: Oracle
    labels: tuple[str, ...] = ()
    format: int = 2

    def __post_init__(self) -> None:
        name: object = self.name
        if not isinstance(name, str) or not name.strip() or not name.isprintable():
            raise check.fail("Question", "name", "be one line of text", name)
        oracle: object = self.oracle
        if not isinstance(oracle, Oracle):
            raise check.fail("Question", "oracle", "be an oracle of sourdine.local", oracle)
        if self.labels:
            self._check_labels()
        if type(self.format) is not int or self.format not in FORMATS:
            raise check.fail("Question", "format", "be 1 or 2", self.format)

    def _check_labels(self) -> None:
        if not isinstance(self.oracle, FrequencyOracle):
            raise check.fail("Question", "labels", "be left out for numbers and words", self.labels)
        if len(self.labels) != self.oracle.categories:
            must = f"be {self.oracle.categories}, one a category"
            raise check.fail("Question", "labels", must, len(self.labels))
        labels: tuple[object, ...] = self.labels
        for place, label in enumerate(labels, 1):
            if not isinstance(label, str) or not label.strip() or not label.isprintable():
                must = "be lines of text, none of them blank and none with tabs"
                raise check.fail("Question", f"label {place}", must, label, "Mend that line.")
        first: dict[str, int] = {}
        for place, name in enumerate(self.labels, 1):
            if first.setdefault(name, place) != place:
                must = f"differ from each other, and {first[name]} and {place} do not"
                raise check.fail("Question", "labels", must, name, "List every label once.")

    @property
    def identity(self) -> str:
        """The SHA-256 of the whole specification as format 1 has it, in 64 hexadecimal digits.

        Secret noise depends on it: if it changed with the format, a device would draw another report on the
        same answer, and that would cost its epsilon again.
        """
        return digest(self._body(1))

    @property
    def fingerprint(self) -> str:
        """The first 16 digits of the SHA-256 of the specification, which any change of it changes."""
        return digest(self._body(self.format))[:16]

    def values(self, answers: Sequence[str]) -> NDArray[Any]:
        """Answers as people write them, for `sample`; one outside the domain is refused by its number.

        Numbers beyond their bounds are no mistake: every numeric oracle takes the nearest bound.
        """
        if self.oracle.takes_words:
            return np.array(answers, dtype=object)
        if not isinstance(self.oracle, FrequencyOracle):
            return self._array([_real(answer) for answer in answers], "a number", "Write it like 3.5.")
        count = self.oracle.categories
        if not self.labels:
            numbers = [_whole(answer, count) for answer in answers]
            return self._array(numbers, f"a category from 0 to {count - 1}", "Mend it.").astype(np.int64)
        known = {label: i for i, label in enumerate(self.labels)}
        remedy = "Spaces and capitals count. Mend it, or make a specification with a label such as 'other'."
        places = [known.get(answer, math.nan) for answer in answers]
        return self._array(places, f"one of the {count} labels", remedy).astype(np.int64)

    def _array(self, numbers: list[float], wanted: str, remedy: str) -> NDArray[np.float64]:
        array = np.array(numbers, dtype=np.float64)
        wrong = np.flatnonzero(np.isnan(array))
        if wrong.size:
            raise InvalidParameter(
                f"Answer {int(wrong[0]) + 1} to '{self.name}' is not {wanted}. Nothing was reported. {remedy}"
            )
        return array

    def tally(self, rows: Bytes) -> Counts:
        """The counts of packed reports to this question."""
        return replace(self.oracle.tally(self.oracle.unpack(rows)), fingerprint=self.fingerprint)

    def estimate(self, counts: Counts, confidence: float = 0.95) -> Estimate:
        """What counts of reports to this question say; those of another question are refused."""
        if counts.fingerprint != self.fingerprint:
            raise InvalidParameter(
                f"These counts are not of reports to '{self.name}' as it is specified here. Read by it they "
                "would mean nothing. Use the specification that the reports were made with."
            )
        return self.oracle.estimate(replace(counts, fingerprint=self.oracle.fingerprint), confidence)

    def _body(self, form: int) -> dict[str, Any]:
        return {
            "format": FORMATS[form],
            "question": self.name,
            "oracle": first_written(self.oracle) if form == 1 else self.oracle.to_json(),
            "labels": list(self.labels),
        }

    def to_json(self) -> dict[str, object]:
        """The specification for a file."""
        return {**self._body(self.format), "fingerprint": self.fingerprint}

    @classmethod
    def from_json(cls, description: object) -> "Question":
        """A specification read back; one that was changed by hand no longer has its fingerprint."""
        forms = {text: form for form, text in FORMATS.items()}
        if (
            not isinstance(description, Mapping)
            or set(description) != _FIELDS
            or description["format"] not in FORMATS.values()
        ):
            raise InvalidParameter(f"This is no specification of a question. Make one with {_maker()}.")
        oracle, labels = description["oracle"], description["labels"]
        if not isinstance(oracle, Mapping) or not isinstance(labels, list):
            raise InvalidParameter(f"The specification is malformed. Make it again with {_maker()}.")
        form = forms[description["format"]]
        question = cls(
            name=description["question"], oracle=_oracle(oracle), labels=tuple(labels), format=form
        )
        if description["fingerprint"] != question.fingerprint:
            raise InvalidParameter(
                "The specification does not match its own fingerprint: it was changed after it was made. "
                f"Make a new one with {_maker()}, and collect under that."
            )
        return question


def _whole(answer: str, count: int) -> float:
    """A category, or NaN."""
    digits = answer.strip()
    short = digits.isascii() and digits.isdecimal() and len(digits) < 10
    return int(digits) if short and int(digits) < count else math.nan


def _real(answer: str) -> float:
    """A number, or NaN."""
    try:
        return float(answer)
    except ValueError:
        return math.nan


def _oracle(description: Mapping[str, object]) -> Oracle:
    oracle = Mechanism.from_json(description)
    if not isinstance(oracle, Oracle):
        raise InvalidParameter(
            f"{type(oracle).__name__} makes no reports that can be counted. Name an oracle of sourdine.local."
        )
    return oracle


def _maker() -> str:
    return either("Question(...).to_json()", "'sourdine local spec'")
