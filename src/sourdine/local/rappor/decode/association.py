"""How two variables go together, from reports of both by the same people."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.local.rappor.basic import BasicOracle
from sourdine.local.rappor.decode.decoding import Candidates
from sourdine.local.rappor.decode.likelihood import likelihoods
from sourdine.local.rappor.decode.mixture import Floats, most_likely, spreads
from sourdine.local.rappor.rappor import BloomOracle
from sourdine.local.rappor.responses import Rows

_INFORMING = 1 << 14  # reports that the information is measured on: a sample of all
_MOST_CELLS = 2048
_CHUNK = 1 << 11


@dataclass(frozen=True, kw_only=True)
class Variable:
    """Reports of one variable, and what is looked for in them; categories need no candidates."""

    oracle: BloomOracle | BasicOracle
    rows: Rows
    candidates: Candidates | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the values."""
        if isinstance(self.oracle, BasicOracle) or self.candidates is None:
            return tuple(str(i) for i in range(self.oracle.size))
        return self.candidates.words


@dataclass(frozen=True, eq=False, kw_only=True)
class Association:
    """Joint shares with their standard errors; the last row and the last column are of values not listed."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shares: Floats
    errors: Floats
    reports: int

    @property
    def lift(self) -> Floats:
        """How much more often two values come together than if they had nothing to do with each other."""
        apart = np.outer(self.shares.sum(axis=1), self.shares.sum(axis=0))
        return np.divide(self.shares, apart, out=np.ones_like(apart), where=apart > 0)


def associate(first: Variable, second: Variable) -> Association:
    """The most likely joint shares of two variables, report i of both being of one person.

    Given their values, a person's two reports are independent, so that the likelihood of a pair of values is
    the product of two (Fanti, Pihur, Erlingsson 2016). One person reports both: what the two
    reveal together is the sum of both epsilons.
    """
    a = likelihoods(first.oracle, first.rows, first.candidates)
    b = likelihoods(second.oracle, second.rows, second.candidates)
    if len(a) != len(b):
        raise InvalidParameter(
            f"There are {len(a)} reports of one variable and {len(b)} of the other. Pass one of each a "
            "person, in the same order."
        )
    shape, count = (a.shape[1], b.shape[1]), len(a)
    if shape[0] * shape[1] > _MOST_CELLS:
        raise InvalidParameter(
            f"{shape[0]} by {shape[1]} values are too many to tell apart. Keep the most frequent of each."
        )
    possible = np.outer(a.any(axis=0), b.any(axis=0)).ravel()
    places = np.nonzero(possible.reshape(shape))

    def step(cells: Floats) -> tuple[Floats, float]:
        table = np.zeros(shape, np.float32)
        table[places] = cells
        density = np.einsum("ij,ij->i", a @ table, b)
        more = (a / density[:, None]).T @ b
        likely = float(np.log(density.astype(np.float64)).mean())
        return cells * more.ravel()[possible].astype(np.float64) / count, likely

    def information(cells: Floats) -> Floats:
        table = np.zeros(shape, np.float32)
        table[places] = cells
        return _information(a[some], b[some], table, possible)

    some = slice(None, None, -(-count // _INFORMING))
    joint, errors = np.zeros(possible.size), np.zeros(possible.size)
    cells = most_likely(step, information, np.full(int(possible.sum()), 1 / possible.sum()))
    joint[possible], errors[possible] = cells, spreads(count * information(cells))
    return Association(
        rows=first.labels,
        columns=second.labels,
        shares=joint.reshape(shape),
        errors=errors.reshape(shape),
        reports=count,
    )


def _information(
    a: NDArray[np.float32], b: NDArray[np.float32], table: NDArray[np.float32], possible: NDArray[np.bool_]
) -> Floats:
    """The observed information a report, over the pairs of values that are possible."""
    density = np.einsum("ij,ij->i", a @ table, b)
    total = np.zeros((int(possible.sum()),) * 2)
    for start in range(0, len(a), _CHUNK):
        part = slice(start, start + _CHUNK)
        pairs = a[part, :, None] * b[part, None, :] / density[part, None, None]
        scores = pairs.reshape(len(pairs), -1)[:, possible]
        total += scores.T @ scores
    return total / len(a)
