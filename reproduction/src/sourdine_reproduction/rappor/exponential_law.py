"""A hundred strings by an exponential law and a hundred that nobody has: which are found."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.core.display import Figure
from sourdine.local.rappor.decode import (
    Candidates,
    Correction,
    Decoding,
    Evidence,
    decode_by_lasso,
    decode_by_least_squares,
)
from sourdine.report.charts.base import Axis, Row
from sourdine.report.view import Cell, Section, TextTable
from sourdine.testing import SeededBits
from sourdine_reproduction.rappor.collecting import (
    Finds,
    WordLaw,
    collect,
    draw_finds,
    draw_ranks,
    spread,
    standing_words,
)
from sourdine_reproduction.rappor.one_life import WORDS as ORACLE
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, judge
from sourdine_reproduction.statements import Standing

REPORTS = 1_000_000
PRESENT = ABSENT = 100
LEVEL = 0.05
SEEDS = 20
PUBLISHED = Finds(47, 2)
_WEIGHTS = np.exp(-np.arange(PRESENT) / 20)
LAW = WordLaw(
    tuple(f"v{i}" for i in range(1, PRESENT + ABSENT + 1)),
    np.append(_WEIGHTS / _WEIGHTS.sum(), np.zeros(ABSENT)),
)
BONFERRONI, BH, PLAIN, SQUARES = (
    "LASSO, Bonferroni",
    "LASSO, BH",
    "LASSO, no correction",
    "least squares, BH",
)


@dataclass(frozen=True, eq=False)
class CrowdRun:
    """What one crowd of people gave."""

    lasso: Decoding
    squares: Decoding

    def detected(self, rule: str) -> NDArray[np.bool_]:
        """Which candidates a rule calls found."""
        if rule == SQUARES:
            return self.squares.detected
        p_values = self.lasso.p_values
        if rule == PLAIN:
            return np.asarray(p_values <= LEVEL)
        kind = Correction.BONFERRONI if rule == BONFERRONI else Correction.BENJAMINI_HOCHBERG
        return kind.detect(p_values, LEVEL)

    def finds(self, rule: str) -> Finds:
        return Finds.among(self.detected(rule), LAW)

    def above(self, rule: str, share: float) -> int:
        """How many of the strings above a share were found."""
        return int(self.detected(rule)[share < LAW.shares].sum())

    def worst(self, count: int) -> float:
        """The largest p-value among the most frequent strings."""
        return float(self.lasso.p_values[:count].max())


def reproduce(settings: Settings) -> ExperimentPart:
    """A million reports, from several crowds."""
    seeds = 2 if settings.quick else SEEDS
    candidates = Candidates.of(ORACLE, LAW.words)
    runs = [_run(seed, candidates, settings) for seed in range(seeds)]
    return ExperimentPart((_strings(runs), _frequent(runs), _p_values(runs)), _section(runs, settings))


def _run(seed: int, candidates: Candidates, settings: Settings) -> CrowdRun:
    label = f"exponential law, crowd {seed + 1}"
    counts = collect(ORACLE, LAW, REPORTS, bits=SeededBits(seed), settings=settings, label=label)
    evidence = Evidence.of(ORACLE, counts)
    return CrowdRun(decode_by_lasso(evidence, candidates), decode_by_least_squares(evidence, candidates))


def _words(runs: list[CrowdRun], rule: str) -> str:
    finds = [run.finds(rule) for run in runs]
    return f"{np.mean([f.words for f in finds]):.1f}, {np.mean([f.false for f in finds]):.2g} of them false"


def _mean(runs: list[CrowdRun], rule: str) -> float:
    return float(np.mean([run.finds(rule).words for run in runs]))


def _strings(runs: list[CrowdRun]) -> ClaimVerdict:
    return judge(
        "rappor.exponential",
        finding=_words(runs, BONFERRONI),
        standing=Standing.OTHERWISE if _mean(runs, BONFERRONI) < PUBLISHED.words - 5 else Standing.REPRODUCED,
        why=f"The corrected level finds strings down to 1 %. A false-discovery rate of 5 % finds "
        f"{_words(runs, BH)}; least squares {_words(runs, SQUARES)}. Without any correction it would be "
        f"{_words(runs, PLAIN)}.",
    )


def _frequent(runs: list[CrowdRun]) -> ClaimVerdict:
    many = int((LAW.shares > 0.01).sum())
    strict, loose = (
        float(np.mean([run.above(rule, 0.01) for run in runs])) for rule in (BONFERRONI, SQUARES)
    )
    return judge(
        "rappor.frequent",
        finding=f"{strict:.1f} of {many} by Bonferroni; {loose:.1f} by a false-discovery rate of 5 %",
        standing=Standing.REPRODUCED if strict >= many - 0.5 else Standing.OTHERWISE,
        why="On average. Every string above 1.5 % was found in every crowd by the latter."
        if all(run.above(SQUARES, 0.015) == int((LAW.shares > 0.015).sum()) for run in runs)
        else "On average.",
    )


def _p_values(runs: list[CrowdRun]) -> ClaimVerdict:
    ten, twenty = (float(np.median([run.worst(count) for run in runs])) for count in (10, 20))
    reached = sum(run.worst(10) < 1e-31 for run in runs), sum(run.worst(20) < 1e-10 for run in runs)
    return judge(
        "rappor.values",
        finding=f"below {ten:.0e} and {twenty:.0e} in half of {len(runs)} crowds",
        standing=Standing.REPRODUCED if all(reached) else Standing.OTHERWISE,
        why=f"The published numbers are reached in {reached[0]} and {reached[1]} of {len(runs)} crowds: so "
        "small a p-value moves by powers of ten from crowd to crowd.",
    )


def _section(runs: list[CrowdRun], settings: Settings) -> Section:
    first = runs[0].squares
    finds = Finds.among(first.detected, LAW)
    crowds = f"{len(runs)} crowds" + (" (quick: all 20 without --quick)" if settings.quick else "")
    return Section(
        title="An exponential law",
        paragraphs=(
            f"{REPORTS:,} people have strings v1 … v{PRESENT} with shares proportional to e^(−i/20); "
            f"v{PRESENT + 1} … v{PRESENT + ABSENT} are candidates that nobody has. Filters of 128 bits, 2 "
            f"hashes, 16 cohorts, f = 0.5, p = 0.5, q = 0.75. Averages over {crowds}. The strings of the "
            "source are not known; other names collide in other bits, which moves the numbers by about one.",
        ),
        tables=(_table(runs),),
        figures=(
            Figure(
                title=f"In one crowd, least squares finds {finds.words} strings, {finds.false} of them "
                "false: nearly all above 1 %, few below 0.5 %",
                chart=draw_ranks(
                    _rows(first),
                    x=Axis(field="number", title="number of the string, the most frequent first"),
                    y=Axis(field="share", title="share of people", form=".1~%"),
                ),
                note="Points are estimates with their 95 % intervals; the line is the truth. "
                "False-discovery rate 5 %.",
            ),
            Figure(
                title=f"Bonferroni finds {_mean(runs, BONFERRONI):.0f} strings where {PUBLISHED.words} were "
                f"published; a false-discovery rate of 5 % finds {_mean(runs, SQUARES):.0f}",
                chart=draw_finds(_bars(runs), names=("there", "absent")),
                note="All at a level of 5 %; BH is Benjamini-Hochberg. Lines are two standard "
                "errors around the mean number found.",
            ),
        ),
    )


def _rows(decoding: Decoding) -> list[Row]:
    return [
        {
            "number": i + 1,
            "fate": fate,
            "true": float(LAW.shares[i]),
            "share": float(decoding.shares[i]),
            "lower": float(decoding.lower[i]),
            "upper": float(decoding.upper[i]),
        }
        for i, fate in enumerate(standing_words(decoding, LAW))
    ]


def _bars(runs: list[CrowdRun]) -> list[Row]:
    rows: list[Row] = []
    for rule in (BONFERRONI, SQUARES, BH, "published", PLAIN):
        each = [PUBLISHED] if rule == "published" else [run.finds(rule) for run in runs]
        mean, error = spread([one.words for one in each])
        false = float(np.mean([one.false for one in each]))
        ends = {"low": mean - error, "high": mean + error}
        rows.append({"rule": rule, "kind": "there", "count": mean - false, "place": 0, **ends})
        rows.append({"rule": rule, "kind": "absent", "count": false, "place": 1, "low": 0, "high": 0})
    return rows


def _table(runs: list[CrowdRun]) -> TextTable:
    rows: list[tuple[Cell, ...]] = []
    for rule in (BONFERRONI, BH, SQUARES, PLAIN):
        finds = [run.finds(rule) for run in runs]
        mean, error = spread([one.words for one in finds])
        false, _ = spread([one.false for one in finds])
        above = [float(np.mean([run.above(rule, share) for run in runs])) for share in (0.01, 0.015)]
        rows.append((rule, mean, error, false, *above))
    rows.append(("published (Bonferroni)", PUBLISHED.words, None, PUBLISHED.false, 32, None))
    return TextTable(
        name="exponential",
        title="Strings found, on average",
        columns=("rule", "found", "± two standard errors", "false", "of 32 above 1 %", "of 24 above 1.5 %"),
        rows=tuple(rows),
        note="All at a level of 5 %; BH is Benjamini-Hochberg. No correction was not published: it is there "
        "to compare with.",
    )
