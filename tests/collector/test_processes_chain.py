"""Issuer, shuffler and collector as processes, killed at random: every token once, reports in one batch."""

from pathlib import Path

import pytest

from tests.campaigns.collect.chain import run_chain


@pytest.mark.slow
def test_nothing_is_lost_or_counted_twice(tmp_path: Path) -> None:
    chain = run_chain(tmp_path, clients=60, kills=2, seed=1)
    assert chain.acknowledged == chain.tokens == 60
    assert (chain.twice, chain.unknown, chain.lost, chain.spent_twice) == (0, 0, 0, 0)
    assert chain.collected + chain.at_the_shuffler == 60
    assert chain.collected > 0
    assert chain.smallest_batch >= chain.batch
