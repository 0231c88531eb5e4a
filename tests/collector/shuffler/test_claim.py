"""The epsilon on the page is that of the smallest batch that was really shuffled, for honest reports."""

from fractions import Fraction
from typing import Any

import pytest

from sourdine.collector.period import KeptPeriod
from sourdine.collector.shuffler.claim import claim_of_batches, honest
from sourdine.local import Question
from sourdine.local.rappor import BasicRappor
from sourdine.local.shuffle import amplified_epsilon
from tests.collector.parts import WORK, announced

ONCE = announced(period=KeptPeriod.WHOLE, batch=100).announcement
EVENTS = {(1, "batch-1000"): 2, (1, "batch-400"): 1, (2, "batch-100"): 9, (1, "duplicate"): 3}


def test_the_smallest_batch_of_the_question_counts() -> None:
    batches = claim_of_batches(ONCE, EVENTS, 1)
    assert (batches.count, batches.smallest, batches.delta) == (3, 400, 1e-6)
    assert batches.epsilon == amplified_epsilon(WORK.oracle, 396, 1e-6)
    assert "3 batches" in batches.sentence
    assert batches.to_json()["smallest"] == 400


def test_made_up_reports_hide_nobody() -> None:
    assert [honest(n) for n in (1, 2, 100, 101, 1000)] == [1, 1, 99, 99, 990]


@pytest.mark.parametrize(
    "more",
    [
        {"period": KeptPeriod.DAY},
        {"period": KeptPeriod.WHOLE, "answers": 2},
        {"period": KeptPeriod.WHOLE, "secret_days": 3},
    ],
)
def test_nothing_is_claimed_of_devices_that_report_again(more: dict[str, Any]) -> None:
    batches = claim_of_batches(announced(batch=100, **more).announcement, EVENTS, 1)
    assert batches.epsilon is None
    assert "nothing is claimed" in batches.sentence


def test_nothing_is_claimed_of_rappor_nor_without_batches() -> None:
    oracle = BasicRappor(categories=4, f=Fraction(1, 2), p=Fraction(1, 2), q=Fraction(3, 4))
    told = announced(Question(name="r", oracle=oracle), period=KeptPeriod.WHOLE, batch=100).announcement
    assert claim_of_batches(told, EVENTS, 1).epsilon is None
    assert claim_of_batches(ONCE, {}, 1).epsilon is None
    assert "yet" in claim_of_batches(ONCE, {}, 1).sentence
