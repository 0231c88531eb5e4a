"""Batches on their way: made when reports are enough, sent until the collector's receipt, then forgotten."""

import http.client
import json
import logging
import secrets
import ssl
from collections.abc import Sequence
from contextlib import suppress
from datetime import date, timedelta
from ipaddress import ip_address
from urllib.parse import urlsplit

from sourdine.collector.period import LATE
from sourdine.collector.receipt import (
    BATCH_HEADER,
    MAC_HEADER,
    RECEIPT_HEADER,
    BatchLabel,
    SharedKey,
    same,
)
from sourdine.collector.settings import CollectorSettings
from sourdine.collector.shuffler.batches import (
    Batch,
    catch_up,
    drop_rest,
    forget_keys,
    seal_batches,
    settle,
    waiting_batches,
)
from sourdine.collector.store import ReportStore, StoredQuestion
from sourdine.collector.submission import BodyKind
from sourdine.core.errors import InvalidParameter

LOG = logging.getLogger("sourdine.collector")
STATE_PATH = "/v1/shuffler"
_TIME = 60.0  # seconds that a collector may take
_HAS = (200, 201)
_REFUSED = (403, 409, 410, 413, 422)  # as a collector that is there may answer
_MOST_ANSWER = 1 << 28
_GRACE = timedelta(days=1)  # after a question has closed: a clock may be a day ahead


class DeliveryFailed(Exception):
    """A batch without a receipt: it is sent again later. The status says why; 0: no answer."""

    def __init__(self, status: int, reason: str = "") -> None:
        super().__init__(f"status {status}{reason and ', '}{reason}")
        self.status = status


def check_address(address: str, *, plain_http: bool) -> str:
    """Check the address of a collector: https, or http on this machine, or anywhere if that was asked for."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise InvalidParameter(
            "The address of the collector must be a scheme and a host. "
            "Give one such as https://collector.example."
        )
    if parts.scheme == "http" and not plain_http and not is_loopback(parts.hostname):
        raise InvalidParameter(
            "The address of the collector is plain http beyond this machine, where all on the way can read "
            "batches. Give an https address, or say --plain-http if a tunnel protects it."
        )
    return address.rstrip("/")


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class CollectorLink:
    """The way to a collector: without redirects and the environment's proxies, every answer proven."""

    def __init__(self, settings: CollectorSettings) -> None:
        self._address = urlsplit(check_address(settings.collector, plain_http=settings.plain_http))
        self._key = SharedKey(settings.shuffler_key)
        self.is_synchronised = False
        """Whether the collector has said, since this process began, which seals it has."""
        self.is_doubtful = False
        """Whether the collector was away: its store may have been put back from a backup meanwhile."""
        self.epoch: bytes | None = None
        self.delivered, self.failed = 0, 0
        self._missing: dict[str, int] = {}
        self._sealed: dict[int, int] = {}

    def is_behind(self, store: ReportStore, question: StoredQuestion) -> bool:
        """Return whether a store has fewer seals of a question than this process has seen in it.

        A server that failed over to a replica may lack the last ones, and has their reports waiting again.
        """
        before, now = self._sealed.get(question.number, 0), store.seals(question.number).seals
        self._sealed[question.number] = now
        return now < before

    def _post(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, str, bytes]:
        host, port = self._address.hostname or "", self._address.port
        connection = (
            http.client.HTTPConnection(host, port, timeout=_TIME)
            if self._address.scheme == "http"
            else http.client.HTTPSConnection(host, port, timeout=_TIME, context=ssl.create_default_context())
        )
        try:
            connection.request("POST", self._address.path.rstrip("/") + path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers.get(RECEIPT_HEADER, ""), answer.read(_MOST_ANSWER)
        except (OSError, http.client.HTTPException):
            return 0, "", b""
        finally:
            connection.close()

    def send(self, question: StoredQuestion, batch: Batch) -> None:
        """Send a batch, and return once the collector's receipt covers just its content."""
        fingerprint, body, label = question.question.fingerprint, batch.body, batch.label.to_text()
        status, receipt, _ = self._post(
            f"/v1/questions/{fingerprint}/reports",
            body,
            {
                "Idempotency-Key": batch.id.hex(),
                "Content-Type": str(BodyKind.PACKED),
                BATCH_HEADER: label,
                MAC_HEADER: self._key.batch_mac(fingerprint, label, body),
            },
        )
        if status not in _HAS:
            self.failed += 1
            self.is_doubtful |= status not in _REFUSED
            raise DeliveryFailed(status)
        epoch = self._key.confirmed_epoch(receipt, fingerprint, batch.label, body)
        if epoch is None:
            self.failed += 1
            self.is_doubtful = True
            raise DeliveryFailed(status, "without a receipt of the collector")
        self.delivered += 1

    def synchronise(self, store: ReportStore) -> None:
        """Ask the collector which seals of this store it has, before any report is taken or sealed.

        A store that was put back from a backup learns of what was delivered after it.
        """
        identity = store.identity()
        questions = {
            each.question.fingerprint: each
            for each in store.questions()
            if any(one.announcement.batch for one in store.revisions(each.number).values())
        }
        asked = {name: store.seals(each.number).seals for name, each in questions.items()}
        body = json.dumps({"store": identity.epoch.hex(), "questions": asked}).encode()
        nonce = secrets.token_hex(16)
        status, mac, answer = self._post(
            STATE_PATH,
            body,
            {
                "Idempotency-Key": nonce,
                "Content-Type": "application/json",
                MAC_HEADER: self._key.state_mac(nonce, body),
            },
        )
        if status not in _HAS or not same(mac, self._key.state_answer_mac(nonce, answer)):
            raise DeliveryFailed(status, "without an answer that the collector signed")
        found = json.loads(answer)
        self.epoch = bytes.fromhex(found["epoch"])
        for name, known in found["questions"].items():
            question = questions[name]
            later = _known(identity.epoch, known["batches"])
            dropped = catch_up(store, question, later)
            if later:
                LOG.warning(
                    "The store was put back from a backup. The collector has %d later batches; %d waiting "
                    "reports are counted there, and were removed.",
                    len(later),
                    dropped,
                )
            for reports, parts in _cut_short([label for label, _ in later]):
                LOG.warning(
                    "At most %d reports of %d part%s of a seal were not delivered before the store was put "
                    "back; they are lost.",
                    reports,
                    parts,
                    "" if parts == 1 else "s",
                )
            missing = store.seals(question.number).delivered - int(known["reports"])
            is_new = missing != self._missing.get(name, 0)
            self._missing[name] = missing
            if missing > 0 and is_new and not question.closed:
                LOG.warning(
                    "The collector has %d reports less than it gave receipts for. Its store was put back "
                    "from a backup.",
                    missing,
                )
        self.is_synchronised, self.is_doubtful = True, False


def _known(store: bytes, batches: list[dict[str, str]]) -> list[tuple[BatchLabel, bytes]]:
    found = []
    for each in batches:
        label = BatchLabel.from_text(each["label"])
        if label is not None and label.store == store:
            found.append((label, bytes.fromhex(each["digests"])))
    return found


def _cut_short(labels: Sequence[BatchLabel]) -> list[tuple[int, int]]:
    """Of seals that a collector has some parts of, how many reports and parts are missing at most.

    Parts arrive in order, and none is larger than the first.
    """
    found = []
    for name in dict.fromkeys(label.name for label in labels):
        parts = [label for label in labels if label.name == name]
        missing = parts[0].parts - len(parts)
        if missing > 0:
            found.append((missing * max(label.reports for label in parts), missing))
    return found


def pass_on(
    settings: CollectorSettings, store: ReportStore, day: date, link: CollectorLink | None = None
) -> int:
    """Make and send batches of all questions that have enough reports; how many were taken.

    When a question is over since a day, what is left of it is too little to be a batch, and is dropped.
    Batches that were refused or not answered are sent again for some days, and hold up nobody else's.
    """
    link = CollectorLink(settings) if link is None else link
    if not link.is_synchronised:
        link.synchronise(store)
    elif link.is_doubtful:
        with suppress(DeliveryFailed):  # then its time goes on, and it is asked again
            link.synchronise(store)
    questions = store.questions()
    if any(link.is_behind(store, question) for question in questions):
        link.is_synchronised = False  # no report is taken until it is
        link.synchronise(store)
    taken, failed = 0, None
    for question in questions:
        revisions = {version: each.announcement for version, each in store.revisions(question.number).items()}
        if not any(each.batch for each in revisions.values()):
            continue
        if seal_batches(store, question):
            link.is_behind(store, question)
        closes = max(each.closes for each in revisions.values())
        # The first part of a seal brings the digests of its submissions. A later one that arrived without
        # them would be counted again from a store that is put back to before the seal.
        stopped: set[bytes] = set()
        for batch in waiting_batches(store, question):
            try:
                if batch.label.name in stopped:
                    raise DeliveryFailed(0, "after another part")
                link.send(question, batch)
                taken += 1
            except DeliveryFailed as problem:
                failed = failed or problem
                stopped.add(batch.label.name)
                if day <= closes + LATE:
                    continue
                LOG.error(
                    "The collector has not taken a batch of %d reports in time; it is removed.",
                    batch.label.reports,
                )
                settle(store, question, batch, delivered=False)
                continue
            settle(store, question, batch)
        if question.closed or day > closes + _GRACE:
            drop_rest(store, question)
        if day > closes + LATE:
            forget_keys(store, question, day.isoformat())
    if failed is not None:
        raise failed
    return taken
