"""The chain over HTTP, in processes of its own: the claim is that of the batches really shuffled."""

from pathlib import Path

import pytest

from sourdine.collector.shuffler.claim import honest
from sourdine.local.shuffle import amplified_epsilon
from tests.campaigns.collect.canaries import QUESTION, audit


@pytest.mark.slow
def test_canaries_of_the_whole_chain_show_no_more_than_its_page_claims(tmp_path: Path) -> None:
    found = audit(tmp_path, batch=20, runs=25)
    assert found.claimed == amplified_epsilon(QUESTION.oracle, honest(20), 0.01)
    assert found.shown <= found.claimed
    kept = {"content-type", "content-length", "idempotency-key", "sourdine-shuffler"}
    assert set(found.headers) - kept <= {"host", "user-agent", "connection", "accept-encoding"}
