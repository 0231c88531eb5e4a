"""Logistic regression of a yes-no answer that was given through coins (Blair, Imai, Zhou 2015).

The truth of a person with covariates x is yes with probability s = 1/(1 + e^(-x'b)), and they say yes with
probability r = q + (p - q)s by the channel of the design. The likelihood of what was said is that of coins
with these rates, so b follows from it without anybody's truth. It is post-processing of the answers and costs
nothing more: what they were protected by protects them still. Covariates are taken as they are. They must be
public, or made private by each person beforehand; nothing here protects them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import reals
from sourdine.core.lazy import expit, logit
from sourdine.local.estimate import Estimate, Floats, deviations
from sourdine.local.surveys.design import Survey

_OWNER = "regress"
_ROUNDS = 200
_CLOSE = 1e-6  # standard errors: a step this small is the last
_LARGEST_STEP = 4.0  # in logits of anybody, so that no round runs away
_FLAT = 12.0  # logits beyond which a share is 0 or 1 for all that reports can tell
_HALVINGS = 40
_ALIKE = 1e-9  # of a column's length that the others may leave unexplained
CONSTANT = "(intercept)"


@dataclass(frozen=True, eq=False)
class AnswerRegression:
    """Coefficients in logits, the intercept first, with the covariance of their estimates.

    `settled` is False where the likelihood has no maximum at finite coefficients: more or fewer people said
    yes than any share explains, or a covariate tells the answers apart. Errors then mean nothing.
    """

    names: tuple[str, ...]
    coefficients: Floats
    covariance: Floats = field(repr=False)
    log_likelihood: float
    reports: int
    confidence: float
    settled: bool

    @property
    def errors(self) -> Floats:
        """Standard errors, by the expected information."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def lower(self) -> Floats:
        """The lower ends of the intervals, each by itself."""
        return self.coefficients - deviations(self.confidence) * self.errors

    @property
    def upper(self) -> Floats:
        """The upper ends."""
        return self.coefficients + deviations(self.confidence) * self.errors

    def predict(self, covariates: ArrayLike) -> Estimate:
        """The shares of yes among people with these covariates, a row each, without the intercept."""
        design = _with_constant(_rows(covariates, len(self.names) - 1))
        scores = design @ self.coefficients
        off = np.sqrt(np.einsum("ij,jk,ik->i", design, self.covariance, design))
        reach = deviations(self.confidence) * off
        share = expit(scores)
        variance = (share * (1 - share) * off) ** 2
        lower, upper = expit(scores - reach), expit(scores + reach)
        return Estimate(share, variance, lower, upper, self.reports, self.confidence)


def regress(
    survey: Survey,
    answers: ArrayLike,
    covariates: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    counts: ArrayLike | None = None,
    confidence: float = 0.95,
) -> AnswerRegression:
    """Which people it is true of, from what they said: the most likely coefficients, by Fisher scoring.

    `answers` is one answer a person, `covariates` numbers for each; an intercept is added. `counts` tells
    how many people each row stands for. Without covariates the share is `Survey.estimate`'s, where that lies
    between 0 and 1.

    >>> rows = np.repeat([[0.0], [1.0]], 1000, axis=0)
    >>> answers = np.r_[np.arange(1000) < 350, np.arange(1000) < 550]  # two coins: true of 20 % and of 60 %
    >>> result = regress(Survey.two_coins(), answers, rows, names=["city"])
    >>> result.predict([[0], [1]]).value.round(3).tolist(), result.errors.round(2).tolist()
    ([0.2, 0.6], [0.19, 0.23])
    """
    level = check.confidence(_OWNER, confidence)
    given_design: object = survey
    if not isinstance(given_design, Survey):
        remedy = "Pass Survey.two_coins() or Survey.of(Warner(truth=0.7)), for example."
        raise check.fail(_OWNER, "survey", "be the design of the answers", survey, remedy)
    row = np.asarray(answers)
    if row.ndim != 1 or not row.size or not np.isin(row, (0, 1)).all():
        raise InvalidParameter(
            "The 'answers' of regress must be one yes (1) or no (0) a person. "
            "Pass a row of them, of somebody."
        )
    yes = row.astype(float)
    table = np.asarray(covariates, float)
    rows = _rows(table, table.shape[1] if table.ndim == 2 else 1)
    if len(rows) != len(yes):
        raise check.fail(_OWNER, "covariates", f"have a row for each of {len(yes):,} answers", len(rows))
    many = np.ones(len(yes)) if counts is None else reals(counts).astype(float)
    if many.shape != yes.shape or not (np.isfinite(many).all() and (many >= 0).all() and many.sum() > 0):
        raise check.fail(_OWNER, "counts", "be how many people each answer stands for", "other numbers")
    listed = tuple(f"x{i + 1}" for i in range(rows.shape[1])) if names is None else tuple(names)
    if len(listed) != rows.shape[1]:
        raise check.fail(_OWNER, "names", f"be {rows.shape[1]}, one a covariate", len(listed))
    center = np.average(rows, axis=0, weights=many)
    scale = np.sqrt(np.average((rows - center) ** 2, axis=0, weights=many))
    design = _with_constant((rows - center) / np.where(scale > 0, scale, 1.0))
    _refuse_alike(design * np.sqrt(many)[:, None], listed)
    fitted = _fit(_Likelihood(survey.channel.p, survey.channel.q, design, yes, many))
    back = np.diag(np.r_[1.0, 1 / scale])  # from standard units to those of the covariates
    back[0, 1:] = -center / scale
    return AnswerRegression(
        names=(CONSTANT, *listed),
        coefficients=back @ fitted.values,
        covariance=back @ fitted.covariance @ back.T,
        log_likelihood=fitted.log_likelihood,
        reports=round(float(many.sum())),
        confidence=level,
        settled=fitted.settled,
    )


@dataclass(frozen=True, eq=False)
class _Fitted:
    values: Floats
    covariance: Floats
    log_likelihood: float
    settled: bool


@dataclass(frozen=True, eq=False)
class _Likelihood:
    """What was said, as coins of rate q + (p - q)s."""

    p: float
    q: float
    design: Floats
    yes: Floats
    many: Floats

    def rates(self, values: Floats) -> tuple[Floats, Floats]:
        """The rates of yes, and their derivatives by the logit."""
        share = expit(self.design @ values)
        rate = self.q + (self.p - self.q) * share
        return np.clip(rate, 1e-300, 1 - 2.0**-53), (self.p - self.q) * share * (1 - share)

    def log(self, values: Floats) -> float:
        """The log-likelihood."""
        rate, _ = self.rates(values)
        return float(self.many @ np.where(self.yes > 0, np.log(rate), np.log1p(-rate)))

    def step(self, values: Floats) -> tuple[Floats, Floats]:
        """The score and the expected information."""
        rate, slope = self.rates(values)
        spread = rate * (1 - rate)
        score = self.design.T @ (self.many * (self.yes - rate) * slope / spread)
        weights = self.many * slope**2 / spread
        return score, (self.design * weights[:, None]).T @ self.design


def _fit(likelihood: _Likelihood) -> _Fitted:
    values = np.zeros(likelihood.design.shape[1])
    rate = float(np.average(likelihood.yes, weights=likelihood.many))
    share = (rate - likelihood.q) / (likelihood.p - likelihood.q)
    values[0] = logit(min(max(share, 0.01), 0.99))
    now, settled = likelihood.log(values), False
    for _ in range(_ROUNDS):
        score, information = likelihood.step(values)
        step = np.linalg.lstsq(information, score, rcond=None)[0]
        moved = float(np.abs(likelihood.design @ step).max())
        step *= min(1.0, _LARGEST_STEP / moved) if moved > 0 else 1.0
        settled = float(score @ step) <= _CLOSE**2
        for _ in range(_HALVINGS):
            if settled or likelihood.log(values + step) >= now:
                break
            step = step / 2
        values, now = values + step, likelihood.log(values + step)
        if settled:
            break
    _, information = likelihood.step(values)
    flat = bool(np.abs(likelihood.design @ values).max() > _FLAT)
    return _Fitted(values, np.asarray(np.linalg.pinv(information), np.float64), now, settled and not flat)


def _rows(table: ArrayLike, width: int) -> NDArray[np.float64]:
    rows = np.asarray(table, float)
    if rows.ndim == 1 and width <= 1:
        rows = rows.reshape(-1, width)
    if rows.ndim != 2 or rows.shape[1] != width or not np.isfinite(rows).all():
        raise InvalidParameter(
            f"The 'covariates' must be rows of {width} finite numbers. Leave out people who lack one, or "
            "fill it in."
        )
    return rows


def _with_constant(rows: Floats) -> Floats:
    return np.hstack([np.ones((len(rows), 1)), rows])


def _refuse_alike(design: Floats, names: Sequence[str]) -> None:
    """Refuse a covariate that the ones before it and the intercept determine."""
    for place, name in enumerate(names, 1):
        column, before = design[:, place], design[:, :place]
        left = column - before @ np.linalg.lstsq(before, column, rcond=None)[0]
        if math.sqrt(float(left @ left)) <= _ALIKE * math.sqrt(float(design[:, 0] @ design[:, 0])):
            raise InvalidParameter(
                f"The covariate '{name}' is constant, or follows from those before it, so that its "
                "coefficient can be anything. Leave it out."
            )
