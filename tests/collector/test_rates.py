"""How often an address may ask: within a burst, and then at its rate; networks of IPv6 as one."""

import pytest

from sourdine.collector import rates
from sourdine.collector.rates import Rates


def test_a_burst_and_then_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    limit = Rates(10.0)
    assert sum(limit.admits("192.0.2.1") for _ in range(100)) == 40
    assert limit.admits("192.0.2.2")
    now[0] = 1.0
    assert sum(limit.admits("192.0.2.1") for _ in range(100)) == 10
    now[0] = 100.0
    assert sum(limit.admits("192.0.2.1") for _ in range(100)) == 40


def test_addresses_of_one_network_count_together() -> None:
    limit = Rates(0.2)
    assert limit.admits("2001:db8::1")
    assert not limit.admits("2001:db8::2")
    assert limit.admits("2001:db8:0:1::1")
    assert limit.admits("::ffff:192.0.2.1")
    assert limit.admits("::ffff:192.0.2.2")
    assert limit.admits("no address")


def test_no_address_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rates, "_MOST_KNOWN", 5)
    limit = Rates(1.0)
    for k in range(20):
        limit.admits(f"192.0.2.{k}")
    assert len(limit._buckets) == 5
    assert all(len(name) == 12 for name in limit._buckets)
    assert all(Rates(0.0).admits("x") for _ in range(100))
