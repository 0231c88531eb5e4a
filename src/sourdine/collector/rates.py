"""How often one address may ask, and by how many connections. Addresses never leave the process."""

import hashlib
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from sourdine.core.errors import InvalidParameter

_MOST_KNOWN = 1 << 16
_BURST = 4.0  # seconds of the rate that may come at once


class Rates:
    """A leaky bucket for each address, or for each network of 64 bits where addresses are of IPv6."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._key = secrets.token_bytes(32)
        self._buckets: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def admits(self, address: str) -> bool:
        """Whether one more request of an address is let in now."""
        if self._rate <= 0:
            return True
        name = hashlib.blake2b(_network(address), key=self._key, digest_size=12).digest()
        now = time.monotonic()
        level, before = self._buckets.pop(name, (0.0, now))
        level = max(0.0, level - (now - before) * self._rate)
        admitted = level < self._rate * _BURST
        self._buckets[name] = (level + 1 if admitted else level, now)
        if len(self._buckets) > _MOST_KNOWN:
            self._buckets.popitem(last=False)  # whoever was silent for the longest time
        return admitted


class ConnectionCounts:
    """The open connections of each address and of each network of addresses, both bounded.

    One address with as many connections as a server takes would otherwise shut out everybody else. An address
    of IPv6 is 64 bits of it, and a network 48; of IPv4 a network is 24 bits. Proxies, each an address or a
    network such as 10.0.0.0/8, speak for others and are exempt.
    """

    def __init__(self, most: int, exempt: Collection[str] = ()) -> None:
        self._most = most
        self._exempt = [read_network(each) for each in exempt]
        self._open: Counter[bytes] = Counter()
        self.refused = 0

    def admit(self, address: str) -> bool:
        """Count one more connection of an address, unless it or its network has too many."""
        names = self._names(address)
        if any(self._open[name] >= most for name, most in names):
            self.refused += 1
            return False
        for name, _ in names:
            self._open[name] += 1
        return True

    def release(self, address: str) -> None:
        """Count one connection less."""
        for name, _ in self._names(address):
            self._open[name] -= 1
            if self._open[name] <= 0:
                del self._open[name]

    def _names(self, address: str) -> list[tuple[bytes, int]]:
        if self._most <= 0 or self._is_exempt(address):
            return []
        own = _network(address)
        wide = own[:6] if len(own) == 8 else own[:-1]
        return [(b"address " + own, self._most), (b"network " + wide, 2 * self._most)]

    def _is_exempt(self, address: str) -> bool:
        try:
            known = ip_address(address)
        except ValueError:
            return False
        return any(known in network for network in self._exempt)


def read_network(text: str) -> IPv4Network | IPv6Network:
    """Read the address or the network of a proxy."""
    try:
        return ip_network(text)
    except ValueError:
        # Uvicorn takes a name or a malformed network for one that no request comes from, and "*" for
        # everybody, whose first X-Forwarded-For a client writes as it likes.
        raise InvalidParameter(
            "A proxy must be an IP address or a network such as 10.0.0.0/8. Name those that are yours."
        ) from None


def _network(address: str) -> bytes:
    try:
        known = ip_address(address)
    except ValueError:
        return address.encode("utf-8", "replace")
    if isinstance(known, IPv6Address):
        return known.packed if known.ipv4_mapped else known.packed[:8]
    return known.packed
