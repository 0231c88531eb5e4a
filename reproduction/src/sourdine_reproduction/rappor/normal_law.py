"""Whole numbers by a normal law, a bit each: how many reports show the bell."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from sourdine.core.display import Figure
from sourdine.core.lazy import log_ndtr, ndtr, ndtri
from sourdine.core.random.bits import Bits
from sourdine.local.estimate import Estimate
from sourdine.local.rappor import BasicRappor
from sourdine.local.rappor.decode import Correction
from sourdine.report.charts.base import Axis, Row
from sourdine.report.view import Section, TextTable
from sourdine.testing import SeededBits
from sourdine_reproduction.rappor.collecting import draw_ranks
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

MEAN, DEVIATION, LAST = 50, 10, 100
SIZES = (10_000, 100_000, 1_000_000)
ORACLE = BasicRappor(categories=LAST + 1, f=Fraction(0), p=Fraction(1, 2), q=Fraction(3, 4))
_CHUNK = 1 << 16
_EDGES = (np.arange(LAST) + 0.5 - MEAN) / DEVIATION
TRUTH = np.diff(ndtr(np.concatenate([[-np.inf], _EDGES, [np.inf]])))


@dataclass(frozen=True, eq=False)
class Bell:
    """What a number of reports shows of the law."""

    estimate: Estimate

    @property
    def reports(self) -> int:
        return self.estimate.reports

    @property
    def error(self) -> float:
        """The root mean squared error of the shares."""
        return float(np.sqrt(np.mean((self.estimate.value - TRUTH) ** 2)))

    @property
    def height(self) -> float:
        """The true peak, in standard errors of an estimate."""
        return float(TRUTH.max() / np.sqrt(self.estimate.variance[MEAN]))

    @property
    def peaks(self) -> int:
        """How many values stand out of the noise, at a false-discovery rate of 5 %."""
        scores = self.estimate.value / np.sqrt(self.estimate.variance)
        return int(Correction.BENJAMINI_HOCHBERG.detect(np.exp(log_ndtr(-scores)), 0.05).sum())

    @property
    def alike(self) -> float:
        """The correlation of estimated and true shares."""
        return float(np.corrcoef(self.estimate.value, TRUTH)[0, 1])


def reproduce(settings: Settings) -> ExperimentPart:
    """The three sizes of the source."""
    bits = SeededBits(50)
    bells = [_collect(size, bits, settings) for size in SIZES]
    return ExperimentPart((_sizes(bells),), _section(bells))


def _collect(people: int, bits: Bits, settings: Settings) -> Bell:
    total = ORACLE.tally(ORACLE.sample(np.zeros(0, np.int64), bits))
    for start in settings.watch(f"normal law, {people:,}", range(0, people, _CHUNK)):
        total += ORACLE.tally(ORACLE.sample(_values(min(_CHUNK, people - start), bits), bits))
    return Bell(ORACLE.estimate(total))


def _values(count: int, bits: Bits) -> NDArray[np.int64]:
    uniform = ((bits.words(count) >> np.uint64(11)) + 0.5) * 2.0**-53
    whole: NDArray[np.int64] = np.rint(MEAN + DEVIATION * ndtri(uniform)).astype(np.int64)
    return np.clip(whole, 0, LAST)


def _sizes(bells: list[Bell]) -> ClaimVerdict:
    few, some, many = bells
    right = few.alike < 0.8 and some.alike > 0.8 and many.alike > 0.99
    return judge(
        "rappor.normal",
        finding=f"correlation with the truth {few.alike:.2f}, {some.alike:.2f} and {many.alike:.3f}",
        standing=Standing.REPRODUCED if right else Standing.OTHERWISE,
        why=f"The peak stands {few.height:.1f}, {some.height:.1f} and {many.height:.0f} standard errors "
        f"high; {few.peaks}, {some.peaks} and {many.peaks} of the {LAST + 1} values stand out.",
    )


def _section(bells: list[Bell]) -> Section:
    return Section(
        title="A normal law",
        paragraphs=(
            f"Whole numbers from 0 to {LAST}, normal with mean {MEAN} and standard deviation {DEVIATION}, "
            "each with a bit of its own, reported once by everybody: p = 0.5, q = 0.75, f = 0. Estimates are "
            "unbiased, and so may fall below 0.",
        ),
        tables=(
            TextTable(
                name="normal",
                title="A normal law by the number of reports",
                columns=(
                    "reports",
                    "root mean squared error",
                    "by formula",
                    "peak / standard error",
                    "values that stand out",
                    "correlation",
                ),
                rows=tuple(
                    (
                        bell.reports,
                        bell.error,
                        float(np.sqrt(np.mean(ORACLE.variance(TRUTH, bell.reports)))),
                        bell.height,
                        bell.peaks,
                        bell.alike,
                    )
                    for bell in bells
                ),
                note="Errors are of shares. Values stand out at a false-discovery rate of 5 %.",
            ),
        ),
        figures=tuple(_figure(bell) for bell in bells),
    )


def _figure(bell: Bell) -> Figure:
    estimate = bell.estimate
    rows: list[Row] = [
        {
            "value": value,
            "true": float(TRUTH[value]),
            "share": float(estimate.value[value]),
            "lower": float(estimate.lower[value]),
            "upper": float(estimate.upper[value]),
        }
        for value in range(LAST + 1)
    ]
    what = (
        "hide the bell in noise"
        if bell.alike < 0.8
        else ("show the bell" if bell.alike < 0.99 else "draw the bell precisely")
    )
    return Figure(
        title=f"{bell.reports:,} reports {what}: {bell.peaks} of {LAST + 1} values stand out",
        chart=draw_ranks(
            rows,
            x=Axis(field="value", title="value"),
            y=Axis(field="share", title="share of people", form=".1~%"),
            fates=False,
        ),
        note="Points are estimates with their 95 % intervals; the line is the truth.",
    )
