"""Home pages: what twelve million reports tell, and what it takes for a page to be seen."""

from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from sourdine.core.display import Figure
from sourdine.core.lazy import ndtri
from sourdine.local.rappor import Rappor
from sourdine.local.rappor.decode import (
    Candidates,
    Correction,
    Decoding,
    DecodingTerms,
    Evidence,
    decode_by_lasso,
)
from sourdine.local.rappor.rappor import BloomOracle
from sourdine.report.charts.base import Axis, Row
from sourdine.report.view import Section, TextTable
from sourdine.testing import SeededBits
from sourdine_reproduction.rappor.collecting import WordLaw, collect, draw_ranks, standing_words
from sourdine_reproduction.registry import ClaimVerdict, ExperimentPart, Settings, compare, judge
from sourdine_reproduction.statements import Standing

REPORTS = 12_000_000
LEAST = 14_000  # users of a page that is seen, as published
PAGES, EXPECTED = 43, 12  # that make up 85 %; the first ones nobody wonders about
MASS = 0.85
CANDIDATES = 8_600  # of which 43 are the published 0.5 %
ORACLE = Rappor(bits=128, hashes=2, cohorts=32, f=Fraction(3, 4), p=Fraction(1, 2), q=Fraction(3, 4))
ONE, ENDLESS = "one report a user", "endlessly many reports a user"
_LEVEL = 0.05
_ELSEWHERE = "The pages of the source's users are not at hand."


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large the experiment is."""

    reports: int
    candidates: int


FULL = Size(reports=REPORTS, candidates=CANDIDATES)
QUICK = Size(reports=600_000, candidates=430)


def _beyond(ratio: float, last: float) -> float:
    """How far a geometric row of shares that ends at the last is above the published mass."""
    return float((last * ratio ** -np.arange(PAGES)).sum() - MASS)


def law_of(size: Size) -> WordLaw:
    """43 pages, each a fixed part of the one before; all others share the rest evenly."""
    from scipy.optimize import brentq  # it takes long to load, and a list of experiments needs none of it

    last = LEAST / REPORTS
    ratio = brentq(partial(_beyond, last=last), 0.5, 0.99)
    pages = last * ratio ** -np.arange(PAGES - 1.0, -1.0, -1.0)
    others = size.candidates - PAGES
    names = (
        *(f"expected{i}.example" for i in range(1, EXPECTED + 1)),
        *(f"unexpected{i}.example" for i in range(1, PAGES - EXPECTED + 1)),
        *(f"page{i}.example" for i in range(1, others + 1)),
    )
    return WordLaw(names, np.append(pages, np.full(others, (1 - MASS) / others)))


@dataclass(frozen=True, eq=False)
class Collection:
    """What reports of one kind show."""

    oracle: BloomOracle
    decoding: Decoding
    law: WordLaw

    @property
    def pages(self) -> int:
        """How many of the pages were found."""
        return int(self.decoding.detected[:PAGES].sum())

    @property
    def unexpected(self) -> int:
        return int(self.decoding.detected[EXPECTED:PAGES].sum())

    @property
    def others(self) -> int:
        """How many pages were found that next to nobody has."""
        return int(self.decoding.detected[PAGES:].sum())

    @property
    def rarest(self) -> float:
        """The true share of the rarest page that was found."""
        return float(np.min(self.law.shares[:PAGES][self.decoding.detected[:PAGES]], initial=1.0))

    def at_rate(self) -> tuple[int, int]:
        """How many of the pages, and of the others, a false-discovery rate of 5 % finds instead."""
        detections = Correction.BENJAMINI_HOCHBERG.detect(self.decoding.p_values, _LEVEL)
        return int(detections[:PAGES].sum()), int(detections[PAGES:].sum())


def error_in_users(oracle: BloomOracle, reports: int) -> float:
    """The standard error of a rare word's count: h bits of it, no other word in the way."""
    return float(np.sqrt(oracle.channel.variance(0.0, 1) / oracle.hashes * reports))


def needed_users(oracle: BloomOracle, reports: int, candidates: int) -> float:
    """How many users a page needs to be found half of the time, at Bonferroni's 5 %."""
    return float(-ndtri(_LEVEL / candidates)) * error_in_users(oracle, reports)


def reproduce(settings: Settings) -> ExperimentPart:
    """Reports made once, and the limit of reports made again and again."""
    size = QUICK if settings.quick else FULL
    law = law_of(size)
    kinds: dict[str, BloomOracle] = {ONE: ORACLE, ENDLESS: ORACLE.once()}
    collections = {name: _collect(name, oracle, law, size, settings) for name, oracle in kinds.items()}
    verdicts = (
        _least(),
        _pages(collections, size),
        _candidates(collections, size),
        _mass(collections, size),
        _epsilon(),
    )
    return ExperimentPart(verdicts, _section(collections, size))


def _collect(name: str, oracle: BloomOracle, law: WordLaw, size: Size, settings: Settings) -> Collection:
    bits = SeededBits(31 if name == ONE else 32)
    label = f"home pages, {name}"
    counts = collect(oracle, law, size.reports, bits=bits, settings=settings, label=label)
    candidates = Candidates.of(oracle, law.words)
    terms = DecodingTerms(correction=Correction.BONFERRONI)
    (decoding,) = (
        decode_by_lasso(Evidence.of(oracle, each), candidates, terms=terms)
        for each in settings.watch(f"decoding {name}", [counts])
    )
    return Collection(oracle, decoding, law)


def _least() -> ClaimVerdict:
    one, endless = (error_in_users(oracle, REPORTS) for oracle in (ORACLE, ORACLE.once()))
    needed = needed_users(ORACLE, REPORTS, CANDIDATES)
    return judge(
        "rappor.pages.least",
        finding=f"about {_rounded(needed)}, by formula",
        standing=Standing.OTHERWISE if needed > 1.5 * LEAST else Standing.REPRODUCED,
        why=f"One standard error of a count is {_rounded(one)} users, with one report by each of 12 million. "
        f"Where everybody reports endlessly, only the permanent noise is left, {_rounded(endless)} users: "
        f"{LEAST:,} are {LEAST / endless:.1f} of those.",
    )


def _rounded(users: float) -> str:
    return f"{round(users, -2):,.0f}"


def _pages(collections: dict[str, Collection], size: Size) -> ClaimVerdict:
    one, endless = collections[ONE], collections[ENDLESS]
    many = PAGES - EXPECTED
    return judge(
        "rappor.pages.unexpected",
        finding=f"{one.unexpected} of {many}; {endless.unexpected} where users report endlessly"
        + _how_many(size),
        standing=Standing.UNTESTED,
        why=f"{_ELSEWHERE} This is on a made-up law whose rarest page has {LEAST:,} of 12 million users, by "
        "LASSO and Bonferroni." + _not_all(size),
    )


def _candidates(collections: dict[str, Collection], size: Size) -> ClaimVerdict:
    one, endless = (
        100 * (each.pages + each.others) / size.candidates
        for each in (collections[ONE], collections[ENDLESS])
    )
    return judge(
        "rappor.pages.candidates",
        finding=f"{one:.2f} %; {endless:.2f} % where users report endlessly" + _how_many(size),
        standing=Standing.UNTESTED,
        why=f"{_ELSEWHERE} The made-up list is so long that its {PAGES} pages are 0.5 % of it."
        + _not_all(size),
    )


def _mass(collections: dict[str, Collection], size: Size) -> ClaimVerdict:
    one, endless = (100 * each.decoding.mass for each in (collections[ONE], collections[ENDLESS]))
    return judge(
        "rappor.pages.mass",
        finding=f"{one:.0f} %; {endless:.0f} % where users report endlessly" + _how_many(size),
        standing=Standing.UNTESTED,
        why=f"{_ELSEWHERE} On a made-up law, by the estimates. Frequent pages are found even where rare ones "
        "are missed." + _not_all(size),
    )


def _epsilon() -> ClaimVerdict:
    return judge(
        "rappor.pages.epsilon",
        finding=f"{ORACLE.epsilon_one:.4f}",
        standing=compare("0.53", ORACLE.epsilon_one),
        why=f"Of one report. A device that reports on one page for ever reveals up to "
        f"{ORACLE.epsilon_infinity:.3f}.",
    )


def _how_many(size: Size) -> str:
    return "" if size == FULL else f" (quick: {size.reports:,} reports, {size.candidates:,} candidates)"


def _not_all(size: Size) -> str:
    return "" if size == FULL else " A quick run is too small to judge by."


def _section(collections: dict[str, Collection], size: Size) -> Section:
    return Section(
        title="Home pages",
        paragraphs=(
            "The pages of the source are not published either. Made up: "
            f"{PAGES} pages, {EXPECTED} of them expected, each with the same part of the one before, down to "
            f"{LEAST:,} of 12 million users; together they have {100 * MASS:g} %. The other "
            f"{size.candidates - PAGES:,} candidates share the rest evenly. {size.reports:,} reports, 128 "
            "bits, 2 hashes, 32 cohorts, f = 0.75, p = 0.5, q = 0.75. LASSO selects, since there are more "
            "candidates than cohorts × bits, and Bonferroni's 5 % decides."
            if size == FULL
            else f"Quick: {size.reports:,} reports and {size.candidates:,} candidates instead of "
            f"{REPORTS:,} and {CANDIDATES:,}. The law is the same: {PAGES} made-up pages, {EXPECTED} of them "
            f"expected, with {100 * MASS:g} % together, the rarest with {LEAST / REPORTS:.2%}.",
            "Whether the published 12 million are reports or users who report every day is not said. Both "
            f"ends are shown: {ONE}, and {ENDLESS}, of which only the permanent response is left.",
        ),
        tables=(
            TextTable(
                name="pages",
                title=f"{PAGES} pages among {size.candidates:,} candidates",
                columns=(
                    "reports",
                    "ε",
                    "standard error (users)",
                    "users needed",
                    "rarest found (users)",
                    f"of {PAGES} pages",
                    f"of {PAGES - EXPECTED} unexpected",
                    "others found",
                    "share found",
                    "pages, at 5 % false",
                    "others, at 5 % false",
                ),
                rows=tuple(
                    (
                        name,
                        each.oracle.epsilon_one,
                        round(error_in_users(each.oracle, size.reports)),
                        round(needed_users(each.oracle, size.reports, size.candidates)),
                        round(each.rarest * size.reports),
                        each.pages,
                        each.unexpected,
                        each.others,
                        f"{100 * each.decoding.mass:.0f} %",
                        *each.at_rate(),
                    )
                    for name, each in collections.items()
                ),
                note="Standard errors and users needed (to be found half of the time) are by formula, for a "
                "page that shares no bit with others. The last columns are by a false-discovery rate of 5 %. "
                "Others have next to no users. One crowd each.",
            ),
        ),
        figures=tuple(_figure(name, each, size) for name, each in collections.items()),
    )


def _figure(name: str, collection: Collection, size: Size) -> Figure:
    decoding, fates = collection.decoding, standing_words(collection.decoding, collection.law)
    rows: list[Row] = [
        {
            "place": i + 1,
            "fate": fates[i],
            "true": float(collection.law.shares[i]),
            "share": float(decoding.shares[i]),
            "lower": float(decoding.lower[i]) if np.isfinite(decoding.lower[i]) else None,
            "upper": float(decoding.upper[i]) if np.isfinite(decoding.upper[i]) else None,
        }
        for i in range(PAGES)
    ]
    return Figure(
        title=f"With {name}, {collection.pages} of {PAGES} pages are found in {size.reports / 1e6:g} million "
        f"reports, {collection.unexpected} of the {PAGES - EXPECTED} unexpected",
        chart=draw_ranks(
            rows,
            x=Axis(field="place", title="page, the most frequent first"),
            y=Axis(field="share", title="share of users", form=".0%"),
        ),
        note="Points are estimates with their 95 % intervals; the line is the truth. A page at 0 without an "
        "interval was left out by LASSO.",
    )
