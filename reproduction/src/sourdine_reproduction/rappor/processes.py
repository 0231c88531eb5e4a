"""Names of processes: what 186,792 reports tell of the most frequent, and of one that is malicious."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from sourdine.core.display import Figure
from sourdine.local.rappor import Rappor
from sourdine.local.rappor.decode import (
    Candidates,
    Correction,
    Decoding,
    DecodingTerms,
    Evidence,
    decode_by_lasso,
)
from sourdine.report.charts.base import Axis, Row
from sourdine.report.view import Section, TextTable
from sourdine.testing import SeededBits
from sourdine_reproduction.rappor.collecting import (
    Finds,
    WordLaw,
    collect,
    draw_names,
    spread,
    standing_words,
)
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, compare, judge
from sourdine_reproduction.statements import Standing

REPORTS = 186_792
ORACLE = Rappor(bits=128, hashes=2, cohorts=8, f=Fraction(1, 2), p=Fraction(1, 2), q=Fraction(3, 4))
SEEDS = 20
MALWARE, PLACE = "malware.exe", 9
FIRST, SHARE = 0.045, 0.026  # of the most frequent process, and of the malware
CANDIDATES = 200
_SHOWN = 20
_NAMES = (
    "svchost chrome explorer conhost rundll32 csrss lsass services winlogon taskhost dwm spoolsv wmiprvse "
    "smss wininit lsm audiodg searchindexer searchprotocolhost searchfilterhost dllhost msiexec iexplore "
    "firefox outlook winword excel powerpnt onenote acrobat reader_sl skype itunes ituneshelper "
    "ipodservice mdnsresponder java javaw jusched igfxtray hkcmd igfxpers nvvsvc atieclxx rtkngui "
    "syntpenh wlanext wuauclt trustedinstaller msmpeng msseces avgnt avguard ccsvchst mcshield notepad "
    "cmd powershell python perl vmtoolsd teamviewer dropbox googleupdate flashutil steam winrar sidebar "
    "unsecapp taskeng"
)


def _law() -> WordLaw:
    """Shares A/(i + b), with the first and the malware's given, until they add up to 1."""
    ratio = FIRST / SHARE
    b = (PLACE - ratio) / (ratio - 1)
    shares = FIRST * (1 + b) / (np.arange(1, CANDIDATES + 1) + b)
    count = int(np.searchsorted(np.cumsum(shares), 1.0))
    present = np.append(shares[:count], 1.0 - shares[:count].sum())  # the last one takes the rest
    names = [f"{name}.exe" for name in _NAMES.split()]
    names.insert(PLACE - 1, MALWARE)
    names = names[: count + 1]
    absent = [f"setup{i}.exe" for i in range(1, CANDIDATES - count)]
    return WordLaw((*names, *absent), np.append(present, np.zeros(len(absent))))


LAW = _law()
_BAD = LAW.words.index(MALWARE)


@dataclass(frozen=True, eq=False)
class ReportsRun:
    """What one set of reports gave."""

    decoding: Decoding

    @property
    def finds(self) -> Finds:
        return Finds.among(self.decoding.detected, LAW)

    @property
    def estimated(self) -> tuple[float, float]:
        """The least and the greatest estimate among the found."""
        some = self.decoding.shares[self.decoding.detected]
        return float(np.min(some, initial=1.0)), float(np.max(some, initial=0.0))


def reproduce(settings: Settings) -> ExperimentPart:
    """As many reports as were published, several times over."""
    candidates = Candidates.of(ORACLE, LAW.words)
    runs = []
    for seed in settings.watch("process names", range(4 if settings.quick else SEEDS)):
        quiet = Settings(quick=settings.quick)
        bits = SeededBits(1000 + seed)
        counts = collect(ORACLE, LAW, REPORTS, bits=bits, settings=quiet, label="process names")
        terms = DecodingTerms(correction=Correction.BONFERRONI)
        runs.append(ReportsRun(decode_by_lasso(Evidence.of(ORACLE, counts), candidates, terms=terms)))
    return ExperimentPart((_processes(runs), _malware(runs), _epsilon()), _section(runs, settings))


def _processes(runs: list[ReportsRun]) -> ClaimVerdict:
    mean, error = spread([run.finds.words for run in runs])
    least, most = (float(np.mean([run.estimated[end] for run in runs])) for end in (0, 1))
    return judge(
        "rappor.processes",
        finding=f"{mean:.1f} ± {error:.1f}, with shares from {100 * least:.1f} to {100 * most:.1f} %",
        standing=Standing.UNTESTED,
        why="The machines of the source are not at hand. The list is made up around the published shares, "
        "with ten names down to 2.5 %: so many reports can show such names, which says nothing of the "
        "published ones.",
    )


def _malware(runs: list[ReportsRun]) -> ClaimVerdict:
    shares = [100 * float(run.decoding.shares[_BAD]) for run in runs]
    mean, _ = spread(shares)
    detections = sum(bool(run.decoding.detected[_BAD]) for run in runs)
    error = 100 * float(np.nanmean([run.decoding.errors[_BAD] for run in runs]))
    return judge(
        "rappor.malware",
        finding=f"{mean:.1f} % on average, where 2.6 % is true; ± {error:.1f} in one set of reports",
        standing=Standing.UNTESTED,
        why="The machines of the source are not at hand; here the share was put in. It was called found in "
        f"{detections} of {len(runs)} sets. The published share has an interval of about ±{1.96 * error:.1f} "
        "points, which is not told.",
    )


def _epsilon() -> ClaimVerdict:
    return judge(
        "rappor.processes.epsilon",
        finding=f"{ORACLE.epsilon_one:.4f}",
        standing=compare("1.07", ORACLE.epsilon_one),
        why=f"Of one report. All reports of a machine on one name reveal up to "
        f"{ORACLE.epsilon_infinity:.3f}, and 18 reports on 18 names up to 18 times ε₁.",
    )


def _section(runs: list[ReportsRun], settings: Settings) -> Section:
    first = runs[0].decoding
    fates = standing_words(first, LAW)
    rows: list[Row] = [
        {
            "word": LAW.words[i],
            "fate": fates[i],
            "true": float(LAW.shares[i]),
            "share": float(first.shares[i]),
            "lower": _number(first.lower[i]),
            "upper": _number(first.upper[i]),
        }
        for i in range(_SHOWN)
    ]
    there = int(LAW.present.sum())
    sets = f"{len(runs)} sets of reports" + (f" (quick: {SEEDS} without --quick)" if settings.quick else "")
    table = TextTable(
        name="processes",
        title=f"The {_SHOWN} most frequent names, over {len(runs)} sets of reports",
        columns=("name", "true %", "mean estimate %", "standard error", "times found"),
        rows=tuple(
            (
                LAW.words[i],
                100 * float(LAW.shares[i]),
                100 * float(np.mean([run.decoding.shares[i] for run in runs])),
                100 * float(np.nanmean([run.decoding.errors[i] for run in runs])),
                sum(bool(run.decoding.detected[i]) for run in runs),
            )
            for i in range(_SHOWN)
        ),
        note="LASSO leaves some names out, which then count as 0; the standard errors are of the others.",
    )
    finds = runs[0].finds
    bad = 100 * float(first.shares[_BAD])
    return Section(
        title="Names of processes",
        paragraphs=(
            "The names of the source are not published, so that these are made up: "
            f"{there} names with shares A/(i + b), where A and b make the most frequent {100 * FIRST:g} % "
            f"and the malware, in place {PLACE}, {100 * SHARE:g} %. The list of candidates has "
            f"{CANDIDATES - there} names more. 128 bits, 2 hashes, 8 cohorts, f = 0.5, p = 0.5, q = 0.75; "
            f"every report is by a device of its own, "
            f"though 10,133 machines made the published ones. Averages over {sets}.",
        ),
        tables=(table,),
        figures=(
            Figure(
                title=f"In one set, {finds.words} names are found, {finds.false} of them false; the "
                f"malware's 2.6 % is estimated at {bad:.1f} %",
                chart=draw_names(rows, x=Axis(field="share", title="share of reports", form=".0%")),
                note="Points are estimates with their 95 % intervals, ticks the truth. LASSO, Bonferroni at "
                "5 %. A name at 0 without an interval was left out by LASSO.",
            ),
        ),
    )


def _number(end: float) -> float | None:
    return float(end) if np.isfinite(end) else None
