"""What a collector shows of what it has: counts, estimates and metrics. All of it may be shown to anybody.

Reports are private by themselves, so whatever is computed of them costs nobody anything more.
"""

import threading
from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from sourdine.collector.announcement import Announcement
from sourdine.collector.blocks import RunningCounts
from sourdine.collector.period import today
from sourdine.collector.settings import CollectorSettings
from sourdine.collector.shuffler.claim import BatchClaim, claim_of_batches
from sourdine.collector.store import LEAST_BLOCK, ReportStore, StoredQuestion, StoreIdentity, line_faults
from sourdine.collector.writer import Writer
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, parse, shorten_up
from sourdine.local.estimate import Counts
from sourdine.local.pooling import pooled_estimate
from sourdine.local.survey_result import in_rows, survey_document
from sourdine.local.words import WordFindings, WordTree, find_words, words_document
from sourdine.report.pages.survey import ShownPeriods, survey_page, widest_half, words_page
from sourdine.report.view import Page, Section

ALL = "all"
"""What is asked for to see all periods together."""
_MOST_HISTORY = 400  # points of how intervals narrowed
_SEARCH_AGAIN = 1.01  # times as many reports as at the last search for words


class StoreResults:
    """Reads a store by a connection of its own, one request at a time."""

    def __init__(self, settings: CollectorSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._store: ReportStore | None = None
        self._running: dict[int, RunningCounts] = {}
        self._history: dict[tuple[int, str, bool], list[tuple[int, float]]] = {}
        self._findings: dict[tuple[int, str, bool], WordFindings] = {}

    def _open(self) -> ReportStore:
        if self._store is None:
            self._store = self._settings.open_store()
        return self._store

    def close(self) -> None:
        """Let go of the store."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    def questions(self) -> list[StoredQuestion]:
        """All questions of the store."""
        with self._lock:
            return self._open().questions()

    def identity(self) -> StoreIdentity:
        """Return the name of the store."""
        with self._lock:
            return self._open().identity()

    def periods(self, question: StoredQuestion, *, grouped: bool = False) -> dict[str, Counts]:
        """The counts of a question as they are now, by period.

        `grouped`: of a period that lasts only those reports that are in blocks, for everybody to see.
        """
        day = today()
        with self._lock:
            running = self._running.get(question.number)
            if running is None:
                running = RunningCounts(self._open(), question.number, question.question)
                self._running[question.number] = running
            return running.by_period(grouped=lambda name: grouped and not question.is_over(name, day))

    def counts(self, question: StoredQuestion, period: str | None, *, grouped: bool = False) -> Counts:
        """The counts of one period, or of the newest."""
        if period == ALL:
            raise InvalidParameter(
                "Counts of several periods are not added, since a device may have reported in each. Ask for "
                "one period at a time."
            )
        return _chosen(question, self.periods(question, grouped=grouped), period)[1][0]

    def faults(self, question: StoredQuestion) -> dict[str, int]:
        """How many lines were set apart, by reason."""
        with self._lock:
            return line_faults(self._open().events(), question.number)

    def batches(self, question: StoredQuestion) -> BatchClaim | None:
        """What came from a shuffler, and what is claimed of that; None where there is none."""
        if not question.signed.announcement.batch:
            return None
        with self._lock:
            events = self._open().events()
        return claim_of_batches(question.signed.announcement, events, question.number)

    def terms(self, question: StoredQuestion) -> tuple[str, ...]:
        """What was announced of a question, and what its batches came to."""
        batches = self.batches(question)
        return announced_terms(question.signed.announcement) + (
            () if batches is None else (batches.sentence,)
        )

    def page(self, question: StoredQuestion, period: str | None = None, *, grouped: bool = False) -> str:
        """The live page of a question."""
        found = self.periods(question, grouped=grouped)
        name, counts = _chosen(question, found, period)
        if isinstance(question.question.oracle, WordTree):
            return words_page(
                question.question,
                self.findings(question, question.question.oracle, name, grouped=grouped),
                faults=self.faults(question),
                terms=self.terms(question),
            ).html()
        announcement = question.signed.announcement
        history = self._history.setdefault((question.number, name, grouped), [])
        page = survey_page(
            question.question,
            counts,
            faults=self.faults(question),
            terms=self.terms(question),
            history=history,
            shown=_shown(announcement, found, name, grouped=grouped),
        )
        reports = sum(each.reports for each in counts)
        if reports and not question.question.oracle.takes_words:
            widest = widest_half(in_rows(pooled_estimate(question.question, counts)))
            if not history or reports > 1.01 * history[-1][0]:
                history.append((reports, widest))
                del history[1 : -_MOST_HISTORY or None]
        return page.html()

    def findings(
        self, question: StoredQuestion, oracle: WordTree, period: str, *, grouped: bool = False
    ) -> WordFindings:
        """The words that single reports of a period tell, searched anew once there are a hundredth more."""
        if period == ALL:
            raise InvalidParameter(
                "Words are told of one period at a time, since a device may have reported in each. Name one."
            )
        with self._lock:
            store, last = self._open(), self._findings.get((question.number, period, grouped))
            parts = [rows for _, rows in store.stream(question.number, period)]
            if grouped and not question.is_over(period, today()):
                parts.pop()  # the loose ones, which come last
            rows = np.concatenate([np.zeros((0, oracle.width), np.uint8), *parts])
            if last is None or not last.reports <= len(rows) <= _SEARCH_AGAIN * last.reports:
                last = self._findings[question.number, period, grouped] = find_words(oracle, rows)
            return last

    def list_page(self, *, grouped: bool = False) -> str:
        """The questions of the store, with links to their pages."""
        links = tuple(
            (
                f"{each.question.name} ({counted(self._reports(each, grouped=grouped), 'report')})",
                f"questions/{each.question.fingerprint}",
            )
            for each in self.questions()
        )
        return Page(
            title="Questions of this collector",
            lead="Each page shows what the reports say so far.",
            sections=(Section(title="Questions", links=links),),
        ).html()

    def _reports(self, question: StoredQuestion, *, grouped: bool = False) -> int:
        return sum(each.reports for each in self.periods(question, grouped=grouped).values())

    def estimates(
        self, question: StoredQuestion, confidence: float, period: str | None, *, grouped: bool = False
    ) -> dict[str, object]:
        """What the reports of a period say so far, or of all of them, for machines."""
        found = self.periods(question, grouped=grouped)
        name, counts = _chosen(question, found, period)
        oracle, in_all = question.question.oracle, question.signed.announcement.periods
        if isinstance(oracle, WordTree):
            findings = self.findings(question, oracle, name, grouped=grouped)
            content = words_document(question.question, findings)
        else:
            content = survey_document(question.question, counts, confidence, in_all=in_all)
        return content | {
            "period": name,
            "periods": {each: part.reports for each, part in found.items()},
            **self._beside(question),
        }

    def _beside(self, question: StoredQuestion) -> dict[str, object]:
        batches = self.batches(question)
        shuffled = {} if batches is None else {"shuffled": batches.to_json()}
        return {"quarantined": self.faults(question), **shuffled}

    @staticmethod
    def confidence(text: str) -> float:
        """A confidence from the text of a request."""
        level = parse(text[:32])
        if level is None or not 0 < level < 1:
            raise InvalidParameter("The confidence must be a number between 0 and 1, such as 0.95.")
        return check.confidence("estimates", Fraction(level))

    def batch_metrics(self) -> tuple[int, dict[str, int]]:
        """Return how many batches wait at a shuffler, and how many requests were refused, by reason."""
        with self._lock:
            store = self._open()
            own = store.identity().epoch
            waiting = sum(len(store.batches(each.number, own)) for each in store.questions())
            refused: dict[str, int] = {}
            for (_, kind), count in store.events().items():
                if kind.startswith("refused-"):
                    name = f'{{reason="{kind.removeprefix("refused-")}"}}'
                    refused[name] = refused.get(name, 0) + count
        return waiting, dict(sorted(refused.items()))

    def metrics(self, writer: Writer) -> str:
        """Counters in the text form of Prometheus; labels are fingerprints and fixed words alone."""
        lines = [
            "# HELP sourdine_reports_total Reports that are stored or were counted before they were removed.",
            "# TYPE sourdine_reports_total counter",
        ]
        names: dict[int, str] = {}
        for each in self.questions():
            names[each.number] = each.question.fingerprint
            reports = self._reports(each)
            lines.append(f'sourdine_reports_total{{question="{each.question.fingerprint}"}} {reports}')
        lines += [
            "# HELP sourdine_events_total Submissions and lines that were not stored, by reason.",
            "# TYPE sourdine_events_total counter",
        ]
        with self._lock:
            events = self._open().events()
        for (number, kind), count in sorted(events.items()):
            lines.append(f'sourdine_events_total{{question="{names.get(number, "")}",kind="{kind}"}} {count}')
        lines += [
            "# HELP sourdine_waiting Submissions in the queue of this process.",
            "# TYPE sourdine_waiting gauge",
            f"sourdine_waiting {writer.waiting}",
            "# HELP sourdine_commits_total Transactions of this process.",
            "# TYPE sourdine_commits_total counter",
            f"sourdine_commits_total {writer.commits}",
        ]
        return "\n".join(lines) + "\n"


def metric(name: str, kind: str, about: str, values: Mapping[str, int]) -> str:
    """Return one metric in the text form of Prometheus, by labels."""
    lines = [f"# HELP {name} {about}", f"# TYPE {name} {kind}"]
    return "\n".join([*lines, *(f"{name}{labels} {value}" for labels, value in values.items())]) + "\n"


def _chosen(
    question: StoredQuestion, found: Mapping[str, Counts], period: str | None
) -> tuple[str, list[Counts]]:
    """The name and the counts of a period, of all, or (None) of the newest."""
    if not found:
        return "", [question.question.tally(np.zeros((0, question.question.oracle.width), np.uint8))]
    if period == ALL:
        return ALL, list(found.values())
    name = max(found) if period is None else period
    if name not in found:
        raise InvalidParameter(
            "There are no reports of this period. Name the first day of one, such as 2026-11-16, or all of "
            "them by the word all; without a period it is the newest."
        )
    return name, [found[name]]


def _shown(
    announcement: Announcement, found: Mapping[str, Counts], name: str, *, grouped: bool
) -> ShownPeriods:
    """Which period a page is about, with links to the others."""
    words = announcement.period.words
    links = [
        (f"{words(each)} ({counted(counts.reports, 'report')})", f"?period={each}")
        for each, counts in sorted(found.items(), reverse=True)
    ]
    if len(links) > 1:
        links.append(("all periods together", f"?period={ALL}"))
    return ShownPeriods(
        name="all periods" if name == ALL else words(name),
        in_all=announcement.periods,
        links=tuple(links) if len(links) > 1 else (),
        group=LEAST_BLOCK if grouped else 0,
    )


def announced_terms(announcement: Announcement) -> tuple[str, ...]:
    """What was announced of a question, in words for whoever is asked."""
    secrets = (
        "" if announcement.secrets == 1 else f", {announcement.secrets} secrets that each make it pay again"
    )
    days = counted(announcement.retention, "day")
    time = "no time at all" if announcement.period == "whole" else f"only its {announcement.period}"
    often = (
        "one from each device"
        if announcement.period == "whole"
        else f"one a {announcement.period} from each device"
    )
    return (
        f"All reports of one device together reveal at most ε = {shorten_up(announcement.device_epsilon)}: "
        f"{counted(announcement.answers, 'different answer')} under one secret{secrets}."
        + (" That an answer changed is seen beside that." if announcement.answers > 1 else ""),
        f"Reports are taken from {announcement.opens} to {announcement.closes}, {often}. Of the time of a "
        f"report {time} is kept, and no address; {days} after that it lives on in the counts alone.",
    )
