"""The life of one report: the value 68 in a filter of 256 bits by 4 hashes, as the paper draws it."""

import math
from fractions import Fraction

import numpy as np

from sourdine.core.display import Figure
from sourdine.core.format import shorten_up
from sourdine.local.rappor import BasicRappor, Device, Life, Rappor
from sourdine.report.charts.base import Row
from sourdine.report.view import Cell, Section, TextTable
from sourdine.testing import SeededBits
from sourdine_reproduction.rappor.collecting import draw_bits
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

ORACLE = Rappor(bits=256, hashes=4, cohorts=1, f=Fraction(1, 2), p=Fraction(1, 2), q=Fraction(3, 4))
WORDS = Rappor(bits=128, hashes=2, cohorts=16, f=Fraction(1, 2), p=Fraction(1, 2), q=Fraction(3, 4))
NUMBERS = BasicRappor(categories=101, f=Fraction(0), p=Fraction(1, 2), q=Fraction(3, 4))
VALUE = "68"
SET, OTHER = "set by the value", "noise"
_REPORTS = (1, 2, 5, 10, 20, 100)


def reproduce(settings: Settings) -> ExperimentPart:
    """The picture, and what reports reveal, one and all."""
    life = Device.new(ORACLE, bits=SeededBits(68)).life(VALUE, SeededBits(86))
    return ExperimentPart((_ln3(),), _section(life))


def _ln3() -> ClaimVerdict:
    single = NUMBERS.epsilon_one
    exact = abs(single - math.log(3)) < 1e-9 and WORDS.epsilon_one < single
    return judge(
        "rappor.ln3",
        finding=f"{single:.4f} for one bit a value and f = 0; ε₁ = {shorten_up(WORDS.epsilon_one, 4)}, ε∞ = "
        f"{shorten_up(WORDS.epsilon_infinity, 4)} for words with f = 0.5 and 2 hashes",
        standing=Standing.LOOSE if exact else Standing.WRONG,
        why="Exactly ln 3 for the normal law, a little less for words, and half of it for home pages: of one "
        "report. At f = 0 every further report costs as much again. With f = 0.5 all reports of a device on "
        "one word cost 4 ln 3, and a device that reports on several words pays that for each.",
    )


def _section(life: Life) -> Section:
    stages = {
        "filter": life.filter,
        "permanent": life.permanent,
        "report": life.report,
    }
    rows: list[Row] = [
        {"stage": stage, "bit": int(bit), "end": int(bit) + 1, "kind": SET if life.filter[bit] else OTHER}
        for stage, ones in stages.items()
        for bit in np.flatnonzero(ones)
    ]
    ones = int((life.report & life.filter).sum())
    set_, filter_ones, sent = (int(ones.sum()) for ones in stages.values())
    costs: list[tuple[Cell, ...]] = [
        (str(count), ORACLE.epsilon_after(count), WORDS.epsilon_after(count)) for count in _REPORTS
    ]
    costs.append(("endlessly many", ORACLE.epsilon_infinity, WORDS.epsilon_infinity))
    return Section(
        title="The life of a report",
        paragraphs=(
            f"The value {VALUE} sets {set_} of 256 bits by 4 hashes. The permanent answer turns each bit "
            "over with probability f/2 = 0.25, once for ever. The report, drawn anew every time, has a 1 "
            "with probability q = 0.75 where the permanent bit is 1, and p = 0.5 where it is 0.",
        ),
        tables=(
            TextTable(
                name="costs",
                title="What reports of one device on one word reveal (ε)",
                columns=("reports", "256 bits, 4 hashes", "128 bits, 2 hashes"),
                rows=tuple(costs),
                note="f = 0.5, p = 0.5, q = 0.75. Pure ε, against whoever sees them all.",
            ),
        ),
        figures=(
            Figure(
                title=f"Of the {set_} bits that the value sets, the report shows {ones} among {sent} ones: "
                "nobody can tell which they are",
                chart=draw_bits(rows, size=ORACLE.bits, stages=tuple(stages), names=(SET, OTHER)),
                note=f"Every bar is a 1. The filter has {set_} of them, the permanent answer {filter_ones}, "
                f"the report {sent}. Only the last is ever sent.",
            ),
        ),
    )
