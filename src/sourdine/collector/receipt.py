"""What shuffler and collector prove to each other: who sends a batch, and that the collector has it for good.

Both have one secret. It never travels: each request and each answer carries a message authentication code
(MAC) over all that it states, so that a proxy, a login page or another host can neither deliver nor confirm a
batch.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass, field

BATCH_HEADER = "Sourdine-Batch"
"""The label of a batch."""
MAC_HEADER = "Sourdine-Shuffler"
"""The MAC of a request of a shuffler."""
RECEIPT_HEADER = "Sourdine-Receipt"
"""The MAC of a collector's answer, with the epoch of its store."""
ID = 16  # bytes
DIGEST = 8  # bytes that a collector keeps of a submission to a shuffler
_LABEL = re.compile(
    r"store=([0-9a-f]{32}) name=([0-9a-f]{32}) seal=(\d{1,18}) part=(\d{1,9})/(\d{1,9}) "
    r"revision=(\d{1,10}) reports=(\d{1,9}) submissions=(\d{1,9})"
)
_RECEIPT = re.compile(r"epoch=([0-9a-f]{32}) mac=([0-9a-f]{64})")


@dataclass(frozen=True)
class BatchLabel:
    """The origin of a batch: which seal of which shuffler's store made it, under which revision.

    A seal takes all reports that wait. So a store that was put back from a backup seals reports again under a
    number that the collector knows, with another name: by that a collector refuses them.
    """

    store: bytes
    """The identity of the shuffler's store, which a backup has too."""
    name: bytes
    """The random name of the seal, of 16 bytes."""
    seal: int
    """How many seals of the question the store had made, this one counted."""
    revision: int
    """The version of the announcement that was in force."""
    reports: int
    submissions: int = 0
    """How many digests of submissions follow the reports in the body."""
    part: int = 0
    parts: int = 1

    @property
    def id(self) -> bytes:
        """The submission id of the batch: of the first part the name of the seal."""
        if self.part == 0:
            return self.name
        return hashlib.sha256(b"sourdine part\0%d\0%b" % (self.part, self.name)).digest()[:ID]

    def to_text(self) -> str:
        """The label as a header has it."""
        return (
            f"store={self.store.hex()} name={self.name.hex()} seal={self.seal} part={self.part}/{self.parts} "
            f"revision={self.revision} reports={self.reports} submissions={self.submissions}"
        )

    @classmethod
    def from_text(cls, text: str) -> "BatchLabel | None":
        """Read a label from a header; None if it is none."""
        found = _LABEL.fullmatch(text)
        if found is None or not found[0].isascii():
            return None
        store, name = bytes.fromhex(found[1]), bytes.fromhex(found[2])
        seal, part, parts, revision, reports, submissions = map(int, found.groups()[2:])
        if part >= parts or seal < 1 or reports < 1:
            return None
        return cls(store, name, seal, revision, reports, submissions, part, parts)


@dataclass(frozen=True)
class SharedKey:
    """The key that a shuffler and its collector derive from their secret."""

    text: str = field(repr=False)

    def _mac(self, kind: str, *parts: str) -> str:
        # Each kind of message has a first line of its own, so that none can be sent back as another.
        message = "\n".join((f"sourdine {kind}/1", *parts)).encode("utf-8", "surrogateescape")
        return hmac.new(bytes.fromhex(self.text), message, hashlib.sha256).hexdigest()

    def batch_mac(self, fingerprint: str, label: str, body: bytes) -> str:
        """Return the MAC of a request that brings a batch."""
        return self._mac("batch", fingerprint, label, hashlib.sha256(body).hexdigest())

    def state_mac(self, nonce: str, body: bytes) -> str:
        """Return the MAC of a request for what a collector has of a shuffler's store."""
        return self._mac("state", nonce, hashlib.sha256(body).hexdigest())

    def state_answer_mac(self, nonce: str, body: bytes) -> str:
        """Return the MAC of the answer to that."""
        return self._mac("state answer", nonce, hashlib.sha256(body).hexdigest())

    def receipt(self, fingerprint: str, label: BatchLabel, body: bytes, epoch: bytes) -> str:
        """Return the receipt for a batch: it covers id, count, digest of the content, epoch and revision.

        To be sent once the transaction that holds the batch is on the disk, and not before.
        """
        mac = self._mac(
            "receipt",
            fingerprint,
            label.id.hex(),
            str(label.reports),
            hashlib.sha256(body).hexdigest(),
            epoch.hex(),
            str(label.revision),
            label.to_text(),
        )
        return f"epoch={epoch.hex()} mac={mac}"

    def confirmed_epoch(self, receipt: str, fingerprint: str, label: BatchLabel, body: bytes) -> bytes | None:
        """Return the epoch of the collector that gave a receipt, or None if it is none for this batch."""
        found = _RECEIPT.fullmatch(receipt)
        if found is None:
            return None
        epoch = bytes.fromhex(found[1])
        expected = self.receipt(fingerprint, label, body, epoch)
        return epoch if hmac.compare_digest(receipt.encode(), expected.encode()) else None


def same(one: str | bytes, other: str) -> bool:
    """Compare two MACs in constant time."""
    first = one if isinstance(one, bytes) else one.encode("utf-8", "replace")
    return hmac.compare_digest(first, other.encode())


def answer_tag(submission: bytes) -> str:
    """Return the digest of a submission's id by which a client knows a collector's answer from a proxy's."""
    return hashlib.sha256(b"sourdine answer\0" + submission).hexdigest()[:32]


def passed_digest(secret: bytes, key: bytes) -> bytes:
    """Return the digest of a submission that a batch brings along; it tells nothing without the secret."""
    return hmac.new(secret, b"sourdine passed\0" + key, hashlib.sha256).digest()[:DIGEST]
