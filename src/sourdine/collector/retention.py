"""Single reports are removed when the announced time is over; their part in the counts stays."""

from datetime import date, timedelta

import numpy as np

from sourdine.collector.store import ReportStore, StoredQuestion


def prune(store: ReportStore, question: StoredQuestion, day: date) -> list[str]:
    """Remove single reports of the periods whose time is over on a day, in one transaction; which they were.

    Counts are the same before and after. Once a question is closed, and the time of its last report is over,
    the digests of submission ids go as well.
    """
    announcement = question.signed.announcement
    closes = min(announcement.closes, date.fromisoformat(question.closed or "9999-12-31"))
    kept_for = timedelta(days=announcement.retention)
    old = [
        period
        for period in store.periods(question.number)
        if announcement.period.last_day(period, closes) + kept_for < day
    ]
    is_over = closes + kept_for < day
    if not old and not (is_over and store.has_keys(question.number)):
        return []
    asked = question.question
    try:
        store.begin_alone()
        total = asked.tally(np.zeros((0, asked.oracle.width), np.uint8))
        for period in old:
            for _, rows in store.stream(question.number, period):
                total += asked.tally(rows)
        sealed = store.sealed(question.number)
        store.forget(question.number, old, total if sealed is None else total + sealed, keys=is_over)
        store.commit()
    except BaseException:
        store.rollback()
        raise
    store.tidy()
    return old
