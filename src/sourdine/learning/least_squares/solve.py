"""A linear head in one release: noisy sums of products of features, then a system of linear equations.

No gradient is taken and nothing is sampled, so there is no batch, learning rate or number of epochs to tune.
The result holds the head, what it cost, and how noisy its equations were.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import torch
from torch import Tensor, nn

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.certificate.card import Card
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.budget import ConcentratedBudget
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.release import Release
from sourdine.accounting.spend import Spend
from sourdine.accounting.zcdp import ZeroConcentrated
from sourdine.core import check
from sourdine.core.distance import root_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, plain
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.learning.features.extractor import ShowProgress
from sourdine.learning.least_squares.equations import (
    COARSEST,
    CONSTANT,
    FINEST,
    MOST_ROWS,
    SHARE,
    NormalEquations,
    Projection,
    UnitRows,
    WholeRows,
)
from sourdine.mechanisms.gaussian import MOST_SIGMA, Gaussian

_AT_ONCE = 1000
_LIMITS = (
    "Settings that were tuned on the same data, and other runs on them, cost extra and are not counted here.",
    "The guarantee is about one unit. What is true of a whole group may be learnt, and should be.",
)


@dataclass(frozen=True, kw_only=True)
class Solved(Release):
    """A head by private least squares with its certificate; `values` is the head, a model of torch.

    `epsilon` is what it cost, its upper end the claim. `noise` is the deviation of the noise in the sums,
    where an example counts at most 1 in each. `accuracy` is that on public data, if there were some.
    """

    epsilon: Bracket
    delta: float
    noise: float
    width: int
    classes: int
    accuracy: float | None = None

    @property
    def model(self) -> nn.Module:
        """The head; `state_dict` is plain."""
        head: nn.Module = self.values
        return head

    def words(self) -> dict[str, str]:
        """The release as people read it, line by line."""
        (spend,) = self.spends
        return {
            "equations": f"{counted(self.width, 'feature')} and a constant, {self.classes:,} classes",
            "released": f"{counted(spend.distance.coordinates or 0, 'sum')}, once",
            "noise": f"{self.noise:.6g} in sums where an example counts at most 1",
            "epsilon": f"{self.epsilon.upper:.4g} at delta {plain(self.delta)}, "
            f"{spend.distance.neighbours} neighbours",
        }

    def card(
        self, ledger: Ledger | Path | str | None = None, *, name: str = "A head by private least squares"
    ) -> Card:
        """The card that goes with it; with the ledger that paid, its certificate is part of it."""
        facts = self.words() | {
            "trained parameters": f"{(self.width + 1) * self.classes:,}",
            "unit": "example",
            "noise bits": "secure" if self.secure else "SEEDED: this model protects nobody",
        }
        if self.accuracy is not None:
            facts["accuracy on public data"] = f"{100 * self.accuracy:.2f} %"
        certificate = None if ledger is None or self.receipt is None else self.certificate(ledger)
        return Card(name=name, facts=facts, assumptions=self.notes, limits=_LIMITS, certificate=certificate)


def accuracy_of(model: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    """The share of examples whose class gets the highest score."""
    with torch.no_grad():
        hits = 0
        for start in range(0, len(targets), _AT_ONCE):
            scores = model(inputs[start : start + _AT_ONCE].to(torch.float32))
            hits += int((scores.argmax(1) == targets[start : start + _AT_ONCE]).sum())
    return hits / len(targets)


_DIGITS = 10**4  # noise is rounded up to this, so that people can write it down
_RIDGE = 0.2
_MOST = 1024


def solve(
    data: tuple[Tensor, Tensor],
    *,
    classes: int,
    epsilon: float,
    delta: float,
    norm: float | None = None,
    most: int = _MOST,
    ridge: float = _RIDGE,
    public: tuple[Tensor, Tensor] | None = None,
    ledger: Ledger | Path | str | None = None,
    purpose: str = "solve least squares",
    progress: ShowProgress = iter,
    bits: Bits = SYSTEM,
) -> Solved:
    """A linear head by private least squares, within (epsilon, delta) for adding or removing an example.

    The sums of the normal equations are released once with discrete Gaussian noise, a change of d in L2 at
    the price of rho = d^2 / (2 sigma^2) (Canonne, Kamath, Steinke 2020); that is the perturbation
    of sufficient statistics (Dwork, Talwar, Thakurta, Zhang 2014, for the matrix). All that
    follows reads only them: eigenvalues of the noisy matrix below `ridge` times sigma times the square root
    of the width, which is how much the noise moves them, are raised to that. AdaSSP (Wang 2018)
    pays for a ridge that looks at the data; this one is free.

    Rows of more than `most` numbers are projected to so many by random signs first: there is less to noise,
    and to solve. Every row is then brought to length 1; with `norm`, rows that are longer are shortened to
    it, and all divided by it. What is no number and a label that names no class count for nothing.

    >>> numbers = torch.Generator().manual_seed(1)
    >>> rows = torch.randn(4000, 3, generator=numbers)
    >>> data = (rows, (rows[:, 0] > 0).long())
    >>> head = solve(data, classes=2, epsilon=1, delta=1e-5, public=data)
    >>> head.epsilon.upper <= 1, head.accuracy > 0.9
    (True, True)
    """
    classes = check.integer("Equations", "classes", classes, 2, 1 << 14)
    if norm is not None:
        norm = float(check.positive("UnitRows", "norm", norm, 1 << 40))
    rows, targets = data
    if len(rows) != len(targets) or not 1 <= len(rows) <= MOST_ROWS or targets.ndim != 1:
        raise InvalidParameter(
            "The data of least squares must hold equally many rows and classes, at least one of each and at "
            f"most 2^28. There are {len(rows):,} and {len(targets):,}."
        )
    if targets.is_floating_point():
        raise check.fail("solve", "data", "name classes by whole numbers", targets.dtype)
    strength = float(check.positive("solve", "ridge", ridge, 1 << 20))
    inputs, width = math.prod(rows.shape[1:]), check.integer("solve", "most", most, 1, 1 << 13)
    projection = Projection(inputs, width) if inputs > width else None
    looked = nn.Sequential(nn.Flatten(), projection or nn.Identity(), UnitRows(norm))
    width = min(inputs, width)
    mechanism, equations = least_noise(width, classes, epsilon, delta)
    spend = Spend(mechanism=mechanism, distance=equations.distance)
    accountant = ZeroConcentrated()
    declared = {"classes": str(classes), "width": str(width), "norm": str(norm), "delta": repr(float(delta))}
    receipt = None
    with opened(ledger) as payer:
        if payer is not None:
            receipt = payer.charge(spend, purpose=purpose, secure=bits.secure, declared=declared)
    sums = equations.sums(rows, targets, WholeRows(projection=projection, norm=norm), progress)
    noise = float(mechanism.sigma) / equations.unit**2
    weights = _solved(*equations.read(mechanism.sample(sums, bits)), strength * noise * math.sqrt(width + 1))
    model = _head(looked, weights)
    return Solved(
        values=model,
        intervals=None,
        spends=(spend,),
        receipt=receipt,
        secure=bits.secure,
        notes=_ASSUMPTIONS,
        declarations=declared,
        epsilon=accountant.epsilon(accountant.lift(spend.loss()), delta),
        delta=float(delta),
        noise=noise,
        width=width,
        classes=classes,
        accuracy=None if public is None else accuracy_of(model, *public),
    )


_ASSUMPTIONS = (
    "The unit is one example: neighbours are data sets where one example is added or removed (add-remove).",
    "How many numbers an example has, and the classes, are public. The number of examples is used nowhere.",
    "Features, their scale and the ridge were chosen without looking at these data.",
)


def least_noise(width: int, classes: int, epsilon: float, delta: float) -> tuple[Gaussian, NormalEquations]:
    """The noise that keeps within a budget, and the finest equations it can be added to.

    >>> mechanism, equations = least_noise(100, 10, 1.0, 1e-5)
    >>> round(float(mechanism.sigma) / equations.unit**2, 2), equations.fineness
    (5.72, 12)
    """
    least = check.positive("solve", "epsilon", epsilon, 1000)
    rho = ConcentratedBudget.within(least, float(check.inside("solve", "delta", delta, 0, 1))).limit
    for fineness in range(FINEST, COARSEST - 1, -1):
        equations = NormalEquations(width=width, classes=classes, fineness=fineness)
        needed = root_above(equations.distance.amount / (2 * rho)) / equations.unit**2
        sigma = Fraction(math.ceil(needed * _DIGITS), _DIGITS) * equations.unit**2
        if sigma <= MOST_SIGMA:
            return Gaussian(sigma=sigma), equations
    raise check.fail("solve", "epsilon", "leave noise that can be drawn", epsilon, "Take a larger epsilon.")


def _solved(matrix: Tensor, columns: Tensor, floor: float) -> Tensor:
    """What the equations say, as far as the noise lets them."""
    centred = columns - columns.mean(1, keepdim=True)  # no class is ahead for being one of few
    values, vectors = torch.linalg.eigh(matrix)
    solution: Tensor = vectors @ ((vectors.T @ centred) / values.clamp(min=floor)[:, None])
    return solution


def _head(rows: nn.Sequential, weights: Tensor) -> nn.Sequential:
    """The model: rows brought to their length, then a linear layer."""
    last = nn.Linear(len(weights) - 1, weights.shape[1])
    scaled = torch.cat([weights[:-1] * SHARE, weights[-1:] * CONSTANT]).to(torch.float32)
    with torch.no_grad():
        last.weight.copy_(scaled[:-1].T)
        last.bias.copy_(scaled[-1])
    return nn.Sequential(*rows, last).eval()
