"""How often an address may ask: within a burst, and then at its rate; networks of IPv6 as one."""

import pytest

from sourdine.collector import rates
from sourdine.collector.processes import run
from sourdine.collector.rates import ConnectionCounts, Rates
from sourdine.collector.settings import CollectorSettings
from sourdine.core.errors import InvalidParameter


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


def test_connections_of_an_address_and_of_its_network_are_bounded() -> None:
    counts = ConnectionCounts(3, ["192.0.2.99"])
    assert [counts.admit("192.0.2.1") for _ in range(4)] == [True, True, True, False]
    assert [counts.admit("192.0.2.2") for _ in range(4)] == [True, True, True, False]
    assert not counts.admit("192.0.2.3")  # its network has six
    assert counts.admit("198.51.100.1")
    assert all(counts.admit("192.0.2.99") for _ in range(20))  # a proxy, for everybody behind it
    counts.release("192.0.2.1")
    assert counts.admit("192.0.2.3")
    assert counts.refused == 3
    assert all(counts.admit(f"2001:db8:0:{k}::1") for k in range(6))
    assert not counts.admit("2001:db8:0:7::1")
    assert counts.admit("2001:db8:1::1")
    assert all(ConnectionCounts(0).admit("192.0.2.1") for _ in range(100))


def test_a_network_of_proxies_has_no_bound() -> None:
    """A proxy that was named by its network had 512 connections, for everybody behind it."""
    counts = ConnectionCounts(3, ["10.0.0.0/8", "2001:db8::/32"])
    for address in ("10.1.2.3", "2001:db8::1"):
        assert all(counts.admit(address) for _ in range(20))
    assert [counts.admit("192.0.2.1") for _ in range(4)] == [True, True, True, False]


@pytest.mark.parametrize("proxy", ["*", "proxy.example", "10.0.0.1/8", ""])
def test_a_proxy_is_an_address_or_a_network(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the sign for all of them a client's own X-Forwarded-For was believed; the others were ignored."""
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: None)
    with pytest.raises(InvalidParameter, match="must be an IP address or a network"):
        run(CollectorSettings(store="reports.db"), [], proxies=[proxy])


def test_connections_that_end_leave_nothing() -> None:
    counts = ConnectionCounts(3)
    for k in range(50):
        assert counts.admit(f"192.0.2.{k}")
        counts.release(f"192.0.2.{k}")
    assert not counts._open
