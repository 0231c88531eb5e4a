"""A server and its writers killed with -9 while they charge."""

from fractions import Fraction
from pathlib import Path

import pytest

from benchmarks.servers import Server
from tests.campaigns.ledger.crash import torment


@pytest.mark.parametrize("kills", [6, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_charge_is_lost_doubled_or_beyond_the_limit(tmp_path: Path, server: Server, kills: int) -> None:
    outcome = torment(
        tmp_path,
        processes=8,
        kills=kills,
        limit=Fraction(10**6),
        seed=11,
        progress=lambda done: None,
        server=server,
    )
    assert (outcome.unrecorded, outcome.duplicates, outcome.overspent) == (0, 0, 0)
    assert outcome.kills == kills
    assert outcome.recorded >= outcome.acknowledged > 0


def test_the_limit_holds_when_writers_and_server_are_killed_at_it(tmp_path: Path, server: Server) -> None:
    outcome = torment(
        tmp_path,
        processes=4,
        kills=3,
        limit=Fraction(5, 1000),
        seed=1,
        progress=lambda done: None,
        server=server,
    )
    assert (outcome.unrecorded, outcome.duplicates, outcome.overspent) == (0, 0, 0)
    assert outcome.recorded <= 5
