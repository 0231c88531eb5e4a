"""A table of the user's own, for attacks that take one: what they find tells about it, and is not private."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.explain import posterior_bounds
from sourdine.anonymity.records import Missing, Records
from sourdine.core.errors import InvalidParameter
from sourdine.frames.schema import Schema


@dataclass(frozen=True, kw_only=True)
class OwnTable:
    """A table of the user's own, as an attacker sees it: who is alike in what is known, and the secret bit.

    >>> people = OwnTable(known=np.array([0, 1, 1]), secret=np.array([True, False, False]), words="ill = yes")
    >>> people.single_out().tolist(), round(people.guess, 3)
    ([0], 0.667)
    """

    known: NDArray[np.int64]
    secret: NDArray[np.bool_]
    words: str

    @classmethod
    def read(cls, table: object, *, secret: str, known: Sequence[str] = (), columns: object = None) -> Self:
        """A file or a frame, in which the secret is that a column has a value, as in "disease = flu"."""
        name, sign, value = (part.strip() for part in secret.partition("="))
        if not (name and sign and value):
            raise InvalidParameter(
                f"What is the secret? '{secret}' names no column and value. Write it like 'disease = flu'."
            )
        declared = columns if isinstance(columns, Schema | Mapping) else None
        records = Records.read(table, quasi=[*known, name], columns=declared, missing=Missing.VALUE)
        *others, hidden = records.quasi
        if value not in hidden.labels:
            raise InvalidParameter(
                f"No record has the stated value in '{name}', so there is no secret to find. Write it as it "
                "is in the table."
            )
        alike = np.zeros(len(records.counts), np.int64)
        for column in others:
            alike = np.unique(alike * (len(column.labels) + 1) + column.codes, return_inverse=True)[1]
        bit = hidden.codes == hidden.labels.index(value)
        return cls(
            known=np.repeat(alike, records.counts),
            secret=np.repeat(bit, records.counts),
            words=f"{name} = {value}",
        )

    @property
    def guess(self) -> float:
        """How often whoever knows the share alone is right."""
        share = float(self.secret.mean())
        return max(share, 1 - share)

    def limit(self, epsilon: Fraction | float) -> float:
        """The same for whoever also sees something of that epsilon."""
        return posterior_bounds(self.guess, float(epsilon)).upper

    def single_out(self) -> NDArray[np.int64]:
        """The people who are alone in what is known."""
        return np.flatnonzero(np.bincount(self.known)[self.known] == 1)
