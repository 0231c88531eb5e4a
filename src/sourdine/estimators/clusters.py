"""k-means: centres that begin where the private covariance says, and a few noisy rounds from there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import ClusterMixin, TransformerMixin

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.random.bits import Bits
from sourdine.estimators.components import ProductsPlan, centred, units
from sourdine.estimators.moments import ConstantRule, blocks, finest_unit, row_distance
from sourdine.estimators.payment import FitBudget, FitPlan, PrivateEstimator
from sourdine.estimators.rows import Floats, RowRule
from sourdine.estimators.shapes import Array, used_matrix
from sourdine.mechanisms.gaussian import Gaussian

_BEGIN = Fraction(1, 3)  # of the budget for the covariance
_STEP = 2.0**-10


@dataclass(frozen=True, kw_only=True)
class ClustersPlan:
    """The products of columns once, then `rounds` times the sums of the rows next to each centre.

    A row is at most `unit` long with its constant, and counts for one centre only, so it moves the sums of a
    round by at most that.
    """

    begin: ProductsPlan
    clusters: int
    rounds: int
    unit: int
    mechanism: Gaussian
    neighbours: Neighbours

    @classmethod
    def within(
        cls, owner: str, rule: ConstantRule, clusters: int, rounds: int, budget: FitBudget
    ) -> "ClustersPlan":
        """The least noise within a budget."""
        begin = ProductsPlan.within(owner, rule, 1, budget.share(_BEGIN))
        rho = budget.rho * (1 - _BEGIN) / rounds
        unit, mechanism = finest_unit(owner, lambda unit: _moved(unit, budget.neighbours), rho, 1 << 12)
        return cls(
            begin=begin,
            clusters=clusters,
            rounds=rounds,
            unit=unit,
            mechanism=mechanism,
            neighbours=budget.neighbours,
        )

    @property
    def spends(self) -> tuple[Spend, ...]:
        """The products, and all rounds."""
        distance = _moved(self.unit, self.neighbours)
        return (*self.begin.spends, Spend(mechanism=self.mechanism, distance=distance, count=self.rounds))

    def run(self, rows: Array, targets: Array | None, bits: Bits) -> Mapping[str, object]:
        """The centres in the columns' own units."""
        rule = self.begin.rule
        widths, middles = units(rule)
        _, mean, spread = centred(rule, self.begin.release(rows, bits))
        centres = (_spread_out(mean, spread, self.clusters) - middles) / widths
        noise = float(self.mechanism.sigma) / self.unit
        for _ in range(self.rounds):
            sums = self._round(rows, centres, bits)
            counts = sums[:, -1] / rule.constant
            # a centre moves as far as its rows are more than noise could be
            trust = np.clip(counts / (3 * noise / rule.constant), 0, 1)[:, None]
            moved = np.clip(sums[:, :-1] / np.maximum(counts, 1.0)[:, None], -1, 1)
            centres = trust * moved + (1 - trust) * centres
        return {"cluster_centers_": centres * widths + middles}

    def _round(self, rows: Array, centres: Floats, bits: Bits) -> Floats:
        """The noisy sums of the rows next to each centre, and of their constants."""
        rule, many = self.begin.rule, len(centres)
        steps = np.rint(np.clip(centres, -1, 1) / _STEP)
        total = np.zeros((many, rule.width))
        for (some,) in blocks(rows):
            whole = rule.whole(some, self.unit)
            places = nearest(whole[:, :-1], steps, self.unit)
            total += (places == np.arange(many)[:, None]).astype(np.float64) @ whole
        noisy: Floats = self.mechanism.sample(total.astype(np.int64), bits) / float(self.unit)
        return noisy


def nearest(rows: Floats, centres: Floats, unit: int) -> NDArray[np.int64]:
    """The centre next to each row, in whole numbers, so that no other row decides; the first of equal ones.

    Rows are in steps of 1/unit and centres in steps of 2^-10: |c|^2 - 2 x c is compared, times both.
    """
    lengths = np.square(centres).sum(axis=1) * (unit * _STEP)
    products = rows @ centres.T  # whole numbers below 2^53: exact in any order
    return np.asarray((lengths - 2 * products).argmin(axis=1), np.int64)


def _moved(unit: int, neighbours: Neighbours) -> Distance:
    return row_distance(unit**2, None, neighbours)


def _spread_out(mean: Floats, spread: Floats, clusters: int) -> Floats:
    """Centres to begin with: at even levels of a normal law along the two widest directions."""
    values, vectors = np.linalg.eigh(spread)
    wide = np.sqrt(np.maximum(values[::-1], 0))
    levels = ndtri((np.arange(clusters) + 0.5) / clusters)
    along = levels[:, None] * wide[0] * vectors[:, -1]
    if len(values) > 1 and clusters > 2:
        along = along + (np.where(np.arange(clusters) % 2, 0.7, -0.7) * wide[1])[:, None] * vectors[:, -2]
    return np.asarray(mean + along)


class KMeans(ClusterMixin, TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """k-means, (epsilon, delta)-DP for one row added or removed.

    A third of the budget releases the covariance, which says where centres begin; the rest the sums of the
    rows next to each centre, for `rounds` rounds (the private form of Lloyd's algorithm: Blum, Dwork,
    McSherry, Nissim 2005). Declare `bounds` of the columns, or the `norm` that rows are shortened to, or
    both.

    >>> draw = np.random.default_rng(1)
    >>> rows = np.concatenate([draw.normal(2, 0.5, (2000, 2)), draw.normal(8, 0.5, (2000, 2))])
    >>> model = KMeans(2, bounds=(0, 10), random_state=1).fit(rows)
    >>> np.sort(model.cluster_centers_[:, 0]).round()
    array([2., 8.])
    """

    learnt: ClassVar[tuple[str, ...]] = ("cluster_centers_",)
    rule_: ConstantRule
    cluster_centers_: Floats

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: tuple[float, float] | Sequence[tuple[float, float]] | None = None,
        norm: float | None = None,
        rounds: int = 4,
        ledger: Ledger | Path | str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.norm = norm
        self.rounds = rounds
        self.ledger = ledger
        self.random_state = random_state

    def declare(self, width: int) -> None:
        owner = type(self).__name__
        self.many_ = check.integer(owner, "n_clusters", self.n_clusters, 1, 1 << 10)
        self.rule_ = ConstantRule.beside(RowRule.declared(owner, width, bounds=self.bounds, norm=self.norm))

    def _plan(self, budget: FitBudget) -> FitPlan:
        rounds = check.integer(type(self).__name__, "rounds", self.rounds, 1, 1000)
        return ClustersPlan.within(type(self).__name__, self.rule_, self.many_, rounds, budget)

    def fit(self, X: object, y: object = None) -> Self:
        """Fit and pay: (epsilon, delta)-DP for one row, charged to the ledger before the rows are read.

        There are no `labels_`: which cluster a row of the data is in was not paid for. `predict` tells it to
        whoever has the row.
        """
        return self._fit(X)

    def fit_predict(self, X: object, y: object = None) -> NDArray[np.int64]:
        """Fit, and tell the cluster of each row to whoever has the rows: the labels are not private."""
        return self.fit(X).predict(X)

    def transform(self, X: object) -> Floats:
        """The distance of each row to each centre."""
        looked = used_matrix(self, X)
        widths, middles = units(self.rule_)
        within = self.rule_.rule.scaled(looked) * self.rule_.share * widths + middles
        apart = within[:, None, :] - self.cluster_centers_[None, :, :]
        found: Floats = np.sqrt(np.square(apart).sum(axis=2))
        return found

    def predict(self, X: object) -> NDArray[np.int64]:
        """The centre next to each row, of rows brought within their bounds and norm."""
        return np.asarray(self.transform(X).argmin(axis=1), np.int64)
