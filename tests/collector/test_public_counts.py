"""Public results of two workers: whoever looks at every moment sees 256 reports or more at once."""

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.collect.load import flood, requests
from benchmarks.servers import Server
from sourdine.collector.blocks import recount
from sourdine.collector.settings import open_store
from sourdine.collector.store import LEAST_BLOCK
from tests.collector.parts import WORK
from tests.collector.test_processes import Address, command

pytestmark = pytest.mark.slow
_REQUESTS = 5_000


def shown(address: Address, what: str) -> int:
    """The number of reports that everybody is shown."""
    path = f"{address.reports}/v1/questions/{WORK.fingerprint}/{what}"
    with urllib.request.urlopen(path, timeout=30) as answer:
        content = json.loads(answer.read())
    return int(content["reports"] if what == "counts" else sum(content["periods"].values()))


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_no_move_is_below_the_least_in_5000_requests(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Counts moved by 1 and 178 reports, where a worker cut what another one had put together."""
    place = str(tmp_path / "reports.db")
    if kind == "postgres":
        server: Server = request.getfixturevalue("server")
        place = server.new()
    seen = [0]
    asked = ["--public-results", "--workers", "2", "--rate", "0", "--store", place]
    with command(tmp_path, *asked) as (address, _), ThreadPoolExecutor(1) as crowd:
        port = int(address.reports.rpartition(":")[2])
        singles = requests(WORK, _REQUESTS - 2, 1)
        large = requests(WORK, 2 * 8193, 8193)  # whose last report was a block of one
        for start in range(0, len(singles), 250):
            part = singles[start : start + 250] + (large[:1] if start == 1000 else [])
            part += large[1:] if start == 3000 else []
            sending = crowd.submit(flood, port, part)
            while not sending.done():
                seen.append(shown(address, ("counts", "estimates")[len(seen) % 2]))
            sending.result()
        seen += [shown(address, "counts"), shown(address, "estimates")]
    moves = [after - before for before, after in pairwise(seen)]
    assert [move for move in moves if move and move < LEAST_BLOCK] == []
    assert len({move for move in moves if move}) > 1
    store = open_store(place)
    assert recount(store, 1, WORK).reports == _REQUESTS - 2 + 2 * 8193
    least = store.run("SELECT min(reports) FROM {schema}.blocks")[0][0]
    store.close()
    assert least >= LEAST_BLOCK
