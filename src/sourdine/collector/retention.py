"""What happens to reports in time: mixed when their period is over, removed when the announced time is.

Their part in the counts stays.
"""

from datetime import date, timedelta

import numpy as np

from sourdine.collector.period import LATE
from sourdine.collector.store import ReportStore, StoredQuestion


def mix(store: ReportStore, question: StoredQuestion, day: date) -> list[str]:
    """Mix the reports of periods that are over since more than a day, so that no late one is left alone.

    Which periods those were. Counts are the same before and after.
    """
    over = [
        period
        for period in store.periods(question.number)
        if question.is_over(period, day - timedelta(days=1))
    ]
    mixed = [period for period in over if store.mix((question.number, period))]
    store.tidy()
    return mixed


def prune(store: ReportStore, question: StoredQuestion, day: date) -> list[str]:
    """Remove single reports of the periods whose time is over on a day, in one transaction; which they were.

    Counts are the same before and after. Once a question is closed, and the time of its last report is over,
    the digests of submission ids go as well, and the question stays closed whatever a clock says.
    """
    announcement = question.signed.announcement
    closes = min(announcement.closes, date.fromisoformat(question.closed or "9999-12-31"))
    kept_for = timedelta(days=announcement.retention)
    old = [
        period
        for period in store.periods(question.number)
        if announcement.period.last_day(period, closes) + kept_for < day
    ]
    # A batch that is sent again must find its key as long as it may come. It may be of an earlier revision.
    sealed_by = [each.announcement for each in store.revisions(question.number).values()]
    late = [each.closes + LATE for each in sealed_by if each.batch]
    if question.closed:
        late = [min(each, closes + LATE) for each in late]
    is_over = max([closes + kept_for, *late]) < day
    if not old and not (is_over and store.has_keys(question.number)):
        store.tidy()  # what an earlier act could not remove from the files for a reader of them
        return []
    asked = question.question
    try:
        store.begin_alone()
        sealed = store.sealed(question.number)
        for period in old:
            total = asked.tally(np.zeros((0, asked.oracle.width), np.uint8))
            for _, rows in store.stream(question.number, period):
                total += asked.tally(rows)
            sealed[period] = sealed[period] + total if period in sealed else total
        if is_over:  # for good: to a clock that is set back, keys that are gone would be new ones
            store.close_question(question.number, closes.isoformat())
        store.forget(question.number, old, sealed, keys=is_over)
        store.commit()
    except BaseException:
        store.rollback()
        raise
    store.tidy()
    return old
