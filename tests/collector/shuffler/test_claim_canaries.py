"""The whole chain audited by canaries: a device whose answer is one or the other, in a batch of others.

Whoever reads the collector sees a batch as it came in, and how the counts moved. From many runs with either
answer of the canary, events bound epsilon from below: never above the claim, and far above it if the order of
arrival goes through.
"""

import math
import secrets
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sourdine.audit import binomial
from sourdine.collector.blocks import recount
from sourdine.collector.period import KeptPeriod
from sourdine.collector.settings import open_store
from sourdine.collector.shuffler import batches
from sourdine.collector.shuffler.batches import seal_batches, settle, waiting_batches
from sourdine.collector.shuffler.claim import claim_of_batches
from sourdine.collector.store import ReportStore
from sourdine.collector.submission import BodyKind, Submission
from sourdine.local import GRR, Memo, Question
from sourdine.local.lines import written
from tests.collector.parts import announced

BATCH, RUNS, DELTA = 100, 700, Fraction(1, 100)
QUESTION = Question(name="canary", oracle=GRR(epsilon=2, categories=2))
SIGNED = announced(QUESTION, period=KeptPeriod.WHOLE, batch=BATCH, delta=DELTA)
_ALARM = 1e-6 / 16  # of each bound


def passed_on(folder: Path, answer: int) -> tuple[np.ndarray, ReportStore]:
    """For each run, whether the first row of the batch is 1, and by how much the count of 1 has moved."""
    shuffler, collector = open_store(str(folder / f"s{answer}.db")), open_store(str(folder / f"c{answer}.db"))
    shuffler.register(SIGNED)
    collector.register(SIGNED)
    (question,) = shuffler.questions()
    seen = np.zeros((RUNS, 2), np.int64)
    before = 0
    for run in range(RUNS):
        answers = [answer, *[0] * (BATCH - 1)]
        rows = np.concatenate([Memo(QUESTION, secrets.token_bytes(32)).row(each) for each in answers])
        shuffler.write(
            [
                Submission(
                    1, secrets.token_bytes(16), written(QUESTION.fingerprint, row[None]), BodyKind.LINES, ""
                )
                for row in rows
            ]
        )
        seal_batches(shuffler, question)
        (batch,) = waiting_batches(shuffler, question)
        collector.write([Submission(1, batch.id, batch.rows.tobytes(), BodyKind.PACKED, "", batch.label)])
        settle(shuffler, question, batch)
        ones = (
            int(recount(collector, 1, QUESTION).sums[1]) if run % 50 == 49 else before + int(batch.rows.sum())
        )
        assert ones == before + int(batch.rows.sum())  # counts move by the whole batch
        seen[run] = batch.rows[0, 0], ones - before
        before = ones
    return seen, collector


def audited(one: np.ndarray, other: np.ndarray) -> float:
    """The largest epsilon that an event shows: the first report of a batch, or how many reports are 1."""
    best = 0.0
    events = [lambda seen: seen[:, 0] == 1, *(lambda seen, t=t: seen[:, 1] >= t for t in (12, 14, 16))]
    for event in events:
        for above, below in ((event(one), event(other)), (~event(other), ~event(one))):
            p = binomial.least(int(above.sum()), RUNS, _ALARM) - float(DELTA)
            q = binomial.most(int(below.sum()), RUNS, _ALARM)
            best = max(best, math.log(p / q) if p > q else 0.0)
    return best


@pytest.mark.slow
def test_a_canary_is_told_no_better_than_the_page_claims(tmp_path: Path) -> None:
    no, _ = passed_on(tmp_path, 0)
    yes, collector = passed_on(tmp_path, 1)
    claim = claim_of_batches(SIGNED.announcement, collector.events(), 1)
    assert (claim.count, claim.smallest) == (RUNS, BATCH)
    assert claim.epsilon is not None
    assert claim.epsilon < 0.6
    assert audited(yes, no) <= claim.epsilon


@pytest.mark.slow
def test_a_shuffler_that_keeps_the_order_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "permutation", lambda count, bits: np.arange(count))
    monkeypatch.setattr(batches, "random_numbers", lambda count: np.arange(1, count + 1, dtype=np.uint64))
    rows = batches._rows

    def in_order(store: ReportStore, question: object, period: str) -> np.ndarray:
        """Reports as they came: the store itself has none of that order, so it is put back for the canary."""
        taken = rows(store, question, period)  # type: ignore[arg-type]
        return taken if period else np.concatenate([canary, taken[_without(taken, canary)]])

    def _without(taken: np.ndarray, first: np.ndarray) -> np.ndarray:
        place = int(np.flatnonzero((taken == first).all(axis=1))[0])
        return np.delete(np.arange(len(taken)), place)

    write = ReportStore.write
    canary = np.zeros((1, 1), np.uint8)

    def watched(store: ReportStore, submissions: list[Submission], events: object = None) -> object:
        nonlocal canary
        if not submissions[0].is_batch:
            canary = np.array([[int(submissions[0].body.split()[1], 16)]], np.uint8)
        return write(store, submissions)

    monkeypatch.setattr(ReportStore, "write", watched)
    monkeypatch.setattr(batches, "_rows", in_order)
    no, _ = passed_on(tmp_path, 0)
    yes, collector = passed_on(tmp_path, 1)
    claim = claim_of_batches(replace(SIGNED.announcement), collector.events(), 1)
    assert claim.epsilon is not None
    assert audited(yes, no) > 1.5 * claim.epsilon
