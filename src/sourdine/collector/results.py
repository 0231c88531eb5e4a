"""What a collector shows of what it has: counts, estimates and metrics. All of it may be shown to anybody.

Reports are private by themselves, so whatever is computed of them costs nobody anything more.
"""

import threading
from fractions import Fraction

import numpy as np

from sourdine.collector.announcement import Announcement
from sourdine.collector.settings import CollectorSettings
from sourdine.collector.shuffler.claim import BatchClaim, claim_of_batches
from sourdine.collector.store import ReportStore, RunningCounts, StoredQuestion, line_faults
from sourdine.collector.writer import Writer
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, parse, shorten_up
from sourdine.local.estimate import Counts
from sourdine.local.survey_result import in_rows, survey_document
from sourdine.local.words import WordFindings, WordTree, find_words, words_document
from sourdine.report.pages.page import Page, Section
from sourdine.report.survey.page import survey_page, widest_half
from sourdine.report.survey.words import words_page

_MOST_HISTORY = 400  # points of how intervals narrowed
_SEARCH_AGAIN = 1.01  # times as many reports as at the last search for words


class StoreResults:
    """Reads a store by a connection of its own, one request at a time."""

    def __init__(self, settings: CollectorSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._store: ReportStore | None = None
        self._running: dict[int, RunningCounts] = {}
        self._history: dict[int, list[tuple[int, float]]] = {}
        self._findings: dict[int, WordFindings] = {}

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

    def counts(self, question: StoredQuestion) -> Counts:
        """The counts of a question as they are now."""
        with self._lock:
            running = self._running.get(question.number)
            if running is None:
                running = RunningCounts(self._open(), question.number, question.question)
                self._running[question.number] = running
            return running.refresh()

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

    def page(self, question: StoredQuestion) -> str:
        """The live page of a question."""
        counts = self.counts(question)
        if isinstance(question.question.oracle, WordTree):
            return words_page(
                question.question,
                self.findings(question, question.question.oracle),
                faults=self.faults(question),
                terms=self.terms(question),
            ).html()
        history = self._history.setdefault(question.number, [])
        page = survey_page(
            question.question,
            counts,
            faults=self.faults(question),
            terms=self.terms(question),
            history=history,
        )
        if counts.reports and not question.question.oracle.takes_words:
            widest = widest_half(in_rows(question.question.estimate(counts)))
            if not history or counts.reports > 1.01 * history[-1][0]:
                history.append((counts.reports, widest))
                del history[1 : -_MOST_HISTORY or None]
        return page.html()

    def findings(self, question: StoredQuestion, oracle: WordTree) -> WordFindings:
        """The words that the single reports of now tell, searched anew once there are a hundredth more."""
        with self._lock:
            store, last = self._open(), self._findings.get(question.number)
            parts = [rows for _, rows in store.stream(question.number, None)]
            rows = np.concatenate([np.zeros((0, oracle.width), np.uint8), *parts])
            if last is None or not last.reports <= len(rows) <= _SEARCH_AGAIN * last.reports:
                last = self._findings[question.number] = find_words(oracle, rows)
            return last

    def list_page(self) -> str:
        """The questions of the store, with links to their pages."""
        links = tuple(
            (
                f"{each.question.name} ({counted(self.counts(each).reports, 'report')})",
                f"questions/{each.question.fingerprint}",
            )
            for each in self.questions()
        )
        return Page(
            title="Questions of this collector",
            lead="Each page shows what the reports say so far.",
            sections=(Section(title="Questions", links=links),),
        ).html()

    def estimates(self, question: StoredQuestion, confidence: float) -> dict[str, object]:
        """What the reports say so far, for machines."""
        oracle = question.question.oracle
        if isinstance(oracle, WordTree):
            content = words_document(question.question, self.findings(question, oracle))
            return content | self._beside(question)
        counts = self.counts(question)
        content = survey_document(question.question, counts, confidence)
        return content | self._beside(question)

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

    def metrics(self, writer: Writer) -> str:
        """Counters in the text form of Prometheus; labels are fingerprints and fixed words alone."""
        lines = [
            "# HELP sourdine_reports_total Reports that are stored or were counted before they were removed.",
            "# TYPE sourdine_reports_total counter",
        ]
        names: dict[int, str] = {}
        for each in self.questions():
            names[each.number] = each.question.fingerprint
            reports = self.counts(each).reports
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


def announced_terms(announcement: Announcement) -> tuple[str, ...]:
    """What was announced of a question, in words for whoever is asked."""
    secrets = (
        "" if announcement.secrets == 1 else f", {announcement.secrets} secrets that each make it pay again"
    )
    days = counted(announcement.retention, "day")
    time = "no time at all" if announcement.period == "whole" else f"only its {announcement.period}"
    return (
        f"All reports of one device together reveal at most ε = {shorten_up(announcement.device_epsilon)}: "
        f"{counted(announcement.answers, 'different answer')} under one secret{secrets}.",
        f"Reports are taken from {announcement.opens} to {announcement.closes}. Of the time of a report "
        f"{time} is kept, no address and no order; {days} after that it lives on in the counts alone.",
    )
