"""The chain under faulty proxies, kills, revisions and restores, in processes and in small."""

from pathlib import Path

import pytest

from tests.campaigns.collect.chaos import Mode, run_chaos


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
@pytest.mark.parametrize("mode", list(Mode))
def test_nothing_counts_twice_and_nothing_is_lost_but_what_a_restore_or_a_crash_took(
    tmp_path: Path, mode: Mode, database: str
) -> None:
    chaos = run_chaos(
        tmp_path, mode=mode, database=database, reports=600, tokens=40, kills=3, restores=2, seconds=25
    )
    assert chaos.holds, chaos
    assert chaos.acknowledged == 600
    assert chaos.lost <= chaos.allowed
    assert chaos.collected + chaos.waiting + chaos.lost == 600
    assert chaos.least_batch >= 10
    assert chaos.revisions == 3
