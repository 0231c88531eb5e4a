"""How often one address may ask. Addresses are digested with a key of the process and never leave it."""

import hashlib
import secrets
import time
from collections import OrderedDict
from ipaddress import IPv6Address, ip_address

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


def _network(address: str) -> bytes:
    try:
        known = ip_address(address)
    except ValueError:
        return address.encode("utf-8", "replace")
    if isinstance(known, IPv6Address):
        return known.packed if known.ipv4_mapped else known.packed[:8]
    return known.packed
