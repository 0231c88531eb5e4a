"""From a shuffler to a collector over the loopback: whole batches, once, from the shuffler alone."""

import asyncio
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sourdine.collector.blocks import recount
from sourdine.collector.period import KeptPeriod, today
from sourdine.collector.receipt import BATCH_HEADER, MAC_HEADER, BatchLabel, SharedKey
from sourdine.collector.retention import prune
from sourdine.collector.server import CollectorApplication
from sourdine.collector.settings import CollectorSettings, open_store
from sourdine.collector.shuffler.batches import seal_batches
from sourdine.collector.shuffler.delivery import CollectorLink, DeliveryFailed, check_address, pass_on
from sourdine.collector.store import ReportStore
from sourdine.collector.submission import SubmissionStanding
from sourdine.core.errors import InvalidParameter
from sourdine.local import Question
from tests.campaigns.collect.proxy import Fault
from tests.collector.parts import WORK, announced, lines, new_store, running, submission
from tests.collector.wire import Wire, wired

SIGNED = announced(period=KeptPeriod.WHOLE, batch=20, retention=0)
KEY = "ab" * 32
PATH = f"/v1/questions/{WORK.fingerprint}/reports"
CLOSES = SIGNED.announcement.closes


@pytest.fixture
def wire(tmp_path: Path) -> Iterator[Wire]:
    settings = CollectorSettings(store=str(tmp_path / "c.db"), shuffler_key=KEY, rate=0)
    new_store(settings.store, SIGNED).close()
    with wired(settings) as made:
        yield made


def shuffler(folder: Path, wire: Wire) -> CollectorSettings:
    return CollectorSettings(store=str(folder / "s.db"), collector=wire.address, shuffler_key=KEY)


def linked(settings: CollectorSettings, store: ReportStore) -> CollectorLink:
    """A shuffler that has begun."""
    link = CollectorLink(settings)
    link.synchronise(store)
    return link


def add(store: ReportStore, count: int, seed: int = 0) -> None:
    """Reports in a submission each."""
    store.write([submission(lines(1, seed + i), period="") for i in range(count)])


def later(monkeypatch: pytest.MonkeyPatch, days: int) -> None:
    monkeypatch.setattr("sourdine.collector.reception.today", lambda: CLOSES + timedelta(days=days))


@pytest.mark.parametrize(
    "fault", [each for each in Fault if each not in (Fault.NONE, Fault.CUT_AFTER, Fault.SILENT)], ids=str
)
def test_no_answer_but_the_receipt_delivers_a_batch(tmp_path: Path, wire: Wire, fault: Fault) -> None:
    """A redirect to a login page lost 25 of 25 acknowledged reports, and sent the secret to another host."""
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    add(store, 25)
    link = linked(settings, store)
    wire.faults = [fault]
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, today(), link)
    assert wire.counted() == 0
    assert recount(store, 1, WORK).reports == 25
    assert wire.proxy.login_headers == []
    assert pass_on(settings, store, today(), link) == 1
    assert wire.counted() == 25
    assert KEY not in str(wire.proxy.headers)
    store.close()


def test_a_receipt_is_for_one_batch_and_its_content(tmp_path: Path) -> None:
    key, epoch = SharedKey(KEY), secrets.token_bytes(16)
    label = BatchLabel(secrets.token_bytes(16), secrets.token_bytes(16), 3, 1, 20)
    receipt = key.receipt("f" * 16, label, b"body", epoch)
    assert key.confirmed_epoch(receipt, "f" * 16, label, b"body") == epoch
    others = [
        ("e" * 16, label, b"body"),
        ("f" * 16, replace(label, name=secrets.token_bytes(16)), b"body"),
        ("f" * 16, replace(label, reports=19), b"body"),
        ("f" * 16, replace(label, revision=2), b"body"),
        ("f" * 16, replace(label, seal=4), b"body"),
        ("f" * 16, label, b"other"),
    ]
    assert [key.confirmed_epoch(receipt, *each) for each in others] == [None] * len(others)
    forged = receipt.replace(epoch.hex(), secrets.token_hex(16))
    assert key.confirmed_epoch(forged, "f" * 16, label, b"body") is None
    assert SharedKey("cd" * 32).confirmed_epoch(receipt, "f" * 16, label, b"body") is None
    for text in ("", "epoch=", receipt + " ", receipt.upper(), "é" * 100):
        assert key.confirmed_epoch(text, "f" * 16, label, b"body") is None


@pytest.mark.parametrize(
    "change",
    ["seal=0", "part=1/1", "reports=0", "seal=99999999999999999999", "revision=x", "store=00", "reports=٣"],
)
def test_a_label_that_is_none(change: str) -> None:
    text = BatchLabel(bytes(16), bytes(16), 3, 1, 20).to_text()
    assert BatchLabel.from_text(text) is not None
    name = change.partition("=")[0]
    changed = " ".join(change if part.startswith(name + "=") else part for part in text.split(" "))
    assert BatchLabel.from_text(changed) is None


@pytest.mark.parametrize(
    ("address", "taken"),
    [
        ("http://127.0.0.1:8080", True),
        ("http://[::1]:8080", True),
        ("http://localhost", True),
        ("https://collector.example", True),
        ("http://10.0.0.7:8080", False),
        ("http://localhost.example", False),
        ("http://127.0.0.1@collector.example", False),
        ("ftp://127.0.0.1", False),
        ("collector.example", False),
    ],
)
def test_plain_http_stays_on_this_machine(address: str, taken: bool) -> None:
    if taken:
        assert check_address(address, plain_http=False) == address
        return
    with pytest.raises(InvalidParameter):
        check_address(address, plain_http=False)


def test_plain_http_elsewhere_if_that_is_asked_for() -> None:
    assert check_address("http://10.0.0.7:8080/", plain_http=True) == "http://10.0.0.7:8080"


def test_a_batch_is_judged_by_the_revision_that_sealed_it(tmp_path: Path, wire: Wire) -> None:
    """A revision with a larger batch stranded sealed ones, until they were removed."""
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    add(store, 25)
    seal_batches(store, store.questions()[0])
    two = announced(period=KeptPeriod.WHOLE, batch=40, retention=0, version=2)
    open_store(wire.settings.store).register(two)
    store.register(two)
    assert pass_on(settings, store, today()) == 1
    assert wire.counted() == 25
    add(store, 25, 100)
    assert pass_on(settings, store, today()) == 0
    assert recount(store, 1, WORK).reports == 25
    store.close()


def test_a_batch_of_a_revision_that_the_collector_does_not_know_waits_for_it(
    tmp_path: Path, wire: Wire
) -> None:
    settings = shuffler(tmp_path, wire)
    two = announced(period=KeptPeriod.WHOLE, batch=10, retention=0, version=2)
    store = new_store(settings.store, two)
    add(store, 15)
    with pytest.raises(DeliveryFailed, match="409"):
        pass_on(settings, store, today())
    assert wire.counted() == 0
    open_store(wire.settings.store).register(two)
    assert pass_on(settings, store, today()) == 1
    assert wire.counted() == 15
    store.close()


def test_what_waits_keeps_the_batch_that_it_was_promised(tmp_path: Path, wire: Wire) -> None:
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    two = announced(period=KeptPeriod.WHOLE, batch=5, retention=0, version=2)
    add(store, 10)
    store.register(two)
    open_store(wire.settings.store).register(two)
    assert pass_on(settings, store, today()) == 0
    add(store, 10, 50)
    assert pass_on(settings, store, today()) == 1
    add(store, 5, 90)
    assert pass_on(settings, store, today()) == 1
    assert wire.counted() == 25
    store.close()


def test_a_store_put_back_from_a_backup_counts_nothing_twice(tmp_path: Path, wire: Wire) -> None:
    """25 reports became 50, each in two batches."""
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    add(store, 15)
    store.close()
    shutil.copy(tmp_path / "s.db", tmp_path / "backup")
    store = open_store(settings.store)
    unheard = submission(lines(1, 77), period="")
    add(store, 9, 30)
    store.write([unheard])  # whose device gets no answer
    assert pass_on(settings, store, today()) == 1
    store.close()
    assert wire.counted() == 25
    shutil.copy(tmp_path / "backup", tmp_path / "s.db")
    store = open_store(settings.store)
    assert recount(store, 1, WORK).reports == 15
    link = linked(settings, store)
    assert recount(store, 1, WORK).reports == 0
    assert store.write([unheard])[0].standing is SubmissionStanding.DUPLICATE
    add(store, 30, 200)
    assert pass_on(settings, store, today(), link) == 1
    assert wire.counted() == 55
    store.close()


def test_a_store_that_falls_behind_a_running_shuffler_counts_nothing_twice(
    tmp_path: Path, wire: Wire
) -> None:
    """After a failover each batch was refused until the numbers of seals had caught up, and was lost."""
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    link = linked(settings, store)
    add(store, 15)
    store.close()
    shutil.copy(tmp_path / "s.db", tmp_path / "replica")
    store = open_store(settings.store)
    for seed in (30, 60):
        add(store, 20, seed)
        assert pass_on(settings, store, today(), link) == 1
    store.close()
    assert wire.counted() == 55
    shutil.copy(tmp_path / "replica", tmp_path / "s.db")
    store = open_store(settings.store)
    assert pass_on(settings, store, today(), link) == 0
    add(store, 20, 90)
    assert pass_on(settings, store, today(), link) == 1
    assert wire.counted() == 75
    assert (1, "repeated") not in wire.events()
    store.close()


def test_what_waited_for_a_batch_that_never_arrived_is_not_lost_by_a_restore(
    tmp_path: Path, wire: Wire
) -> None:
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    add(store, 15)
    store.close()
    shutil.copy(tmp_path / "s.db", tmp_path / "backup")
    store = open_store(settings.store)
    add(store, 10, 30)
    seal_batches(store, store.questions()[0])  # and is destroyed before it is sent
    store.close()
    shutil.copy(tmp_path / "backup", tmp_path / "s.db")
    store = open_store(settings.store)
    add(store, 5, 60)
    assert pass_on(settings, store, today()) == 1
    assert wire.counted() == 20
    store.close()


def test_a_store_that_was_copied_while_it_runs_is_refused_its_second_seal(tmp_path: Path, wire: Wire) -> None:
    """Whatever an operator does: the collector takes reports under the number of one seal once."""
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    add(store, 25)
    store.close()
    shutil.copy(tmp_path / "s.db", tmp_path / "copy.db")
    one, other = open_store(settings.store), open_store(str(tmp_path / "copy.db"))
    first, second = linked(settings, one), linked(settings, other)
    assert pass_on(settings, one, today(), first) == 1
    with pytest.raises(DeliveryFailed, match="409"):
        pass_on(replace(settings, store=str(tmp_path / "copy.db")), other, today(), second)
    assert wire.counted() == 25
    assert wire.events()[1, "repeated"] == 1
    one.close()
    other.close()


def test_parts_of_a_seal_arrive_in_order_so_that_a_restore_counts_nothing_twice(
    tmp_path: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first part brings the digests of submissions, without which a restored store takes one again."""
    monkeypatch.setattr("sourdine.collector.shuffler.batches.MOST_BATCH", 20)
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    add(store, 39)
    store.close()
    shutil.copy(tmp_path / "s.db", tmp_path / "backup")
    store = open_store(settings.store)
    unheard = submission(lines(1, 77), period="")
    store.write([unheard])
    link = linked(settings, store)
    wire.faults = [Fault.BAD_GATEWAY]
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, today(), link)
    assert wire.counted() == 0
    store.close()
    shutil.copy(tmp_path / "backup", tmp_path / "s.db")
    store = open_store(settings.store)
    link = linked(settings, store)
    store.write([unheard])
    assert pass_on(settings, store, today(), link) == 2
    assert wire.counted() == 40
    store.close()


def test_the_rest_of_a_seal_that_a_restore_lost_is_logged(
    tmp_path: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("sourdine.collector.shuffler.batches.MOST_BATCH", 20)
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    add(store, 41)
    store.close()
    shutil.copy(tmp_path / "s.db", tmp_path / "backup")
    store = open_store(settings.store)
    link = linked(settings, store)
    wire.faults = [Fault.NONE, Fault.BAD_GATEWAY]
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, today(), link)
    assert wire.counted() == 21
    store.close()
    shutil.copy(tmp_path / "backup", tmp_path / "s.db")
    store = open_store(settings.store)
    linked(settings, store)
    assert recount(store, 1, WORK).reports == 0
    assert "At most 21 reports of 1 part" in caplog.text
    store.close()


def test_a_collector_put_back_while_the_shuffler_runs_is_noticed(
    tmp_path: Path, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    """It was noticed at the next start of the shuffler only."""
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    add(store, 25)
    link = linked(settings, store)
    assert pass_on(settings, store, today(), link) == 1
    collected = open_store(wire.settings.store)
    for table in ("batches", "blocks", "loose", "submissions"):
        collected.run(f"DELETE FROM {table}")
    collected.close()
    add(store, 30, 100)
    wire.faults = [Fault.BAD_GATEWAY]  # while it was away
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, today(), link)
    assert pass_on(settings, store, today(), link) == 1
    assert wire.counted() == 30
    assert caplog.text.count("25 reports less") == 1
    wire.faults = [Fault.BAD_GATEWAY]
    add(store, 30, 200)
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, today(), link)
    assert pass_on(settings, store, today(), link) == 1
    assert caplog.text.count("25 reports less") == 1, "a line for each loss, not for each look"
    store.close()


def test_a_collector_that_takes_nothing_is_asked_less_and_less_often(
    tmp_path: Path, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    """Each second a batch was sent again, and a line logged, for a week after its question was closed."""
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    app = CollectorApplication(settings)
    add(store, 25)
    wire.faults = [Fault.NONE, *[Fault.FORBIDDEN] * 7]
    assert [app._pass_on() for _ in range(7)] == [2, 4, 8, 16, 30, 30, 30]
    assert len(caplog.records) == 1
    assert [app._pass_on() for _ in range(2)] == [1, 1]
    assert wire.counted() == 25
    store.close()


def test_batches_that_nobody_takes_are_removed_though_the_collector_never_answers(
    tmp_path: Path, wire: Wire
) -> None:
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    add(store, 25)
    link = linked(settings, store)
    wire.faults = [Fault.BAD_GATEWAY] * 8
    for day in (today(), CLOSES + timedelta(days=8)):
        with pytest.raises(DeliveryFailed):
            pass_on(settings, store, day, link)
    assert recount(store, 1, WORK).reports == 0
    assert wire.counted() == 0
    store.close()


def test_a_collector_put_back_from_a_backup_is_noticed(
    tmp_path: Path, wire: Wire, caplog: pytest.LogCaptureFixture
) -> None:
    """What was delivered after its backup is lost there; the number is logged, and nothing counts twice."""
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    add(store, 25)
    assert pass_on(settings, store, today()) == 1
    collected = open_store(wire.settings.store)
    for table in ("batches", "blocks", "loose", "submissions"):
        collected.run(f"DELETE FROM {table}")
    collected.close()
    add(store, 30, 100)
    assert pass_on(settings, store, today()) == 1
    assert wire.counted() == 30
    assert "25 reports less" in caplog.text
    store.close()


def test_a_shuffler_takes_nothing_before_it_knows_what_the_collector_has(tmp_path: Path, wire: Wire) -> None:
    settings = shuffler(tmp_path, wire)
    new_store(settings.store, SIGNED).close()

    async def ask(settings: CollectorSettings) -> tuple[set[int], int]:
        """What is answered until a report is taken."""
        statuses = set()
        async with running(settings) as client:
            first = (await client.ask("GET", "/ready")).status
            for _ in range(200):
                status = (await client.post(lines(1))).status
                statuses.add(status)
                if status == 201:
                    break
                await asyncio.sleep(0.05)
            assert (await client.ask("GET", "/ready")).status == 200
        return statuses, first

    wire.faults = [Fault.BAD_GATEWAY]
    assert asyncio.run(ask(settings)) == ({503, 201}, 503)


def test_digests_of_submissions_go_when_their_time_is_over(tmp_path: Path, wire: Wire) -> None:
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    add(store, 25)
    assert pass_on(settings, store, today()) == 1
    assert store.has_keys(1)
    link = linked(settings, store)
    pass_on(settings, store, CLOSES + timedelta(days=8), link)
    assert not store.has_keys(1)
    assert store.questions()[0].closed
    store.close()


def test_batches_arrive_whole_and_once_though_an_answer_is_lost(tmp_path: Path, wire: Wire) -> None:
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    store.write([submission(lines(15), period="")])
    link = linked(settings, store)
    assert pass_on(settings, store, today(), link) == 0
    assert wire.counted() == 0
    store.write([submission(lines(10, 1), period="")])
    wire.faults = [Fault.CUT_AFTER]
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, today(), link)
    assert wire.counted() == 25
    store.write([submission(lines(3, 2), period="")])
    assert pass_on(settings, store, today(), link) == 1
    assert wire.counted() == 25
    assert recount(store, 1, WORK).reports == 3
    collected = open_store(wire.settings.store)
    assert collected.events() == {(1, "batch-25"): 1, (1, "duplicate"): 1}


def test_a_question_that_is_over_leaves_no_rest(tmp_path: Path, wire: Wire) -> None:
    settings = shuffler(tmp_path, wire)
    store = new_store(settings.store, SIGNED)
    store.write([submission(lines(45), period=""), submission(lines(1, 3), period="")])
    store.close_question(1, today().isoformat())
    assert pass_on(settings, store, today()) == 1
    store_again = open_store(settings.store)
    assert recount(store_again, 1, WORK).reports == 0
    assert wire.counted() == 46


def test_a_collector_takes_shuffled_questions_from_the_shuffler_alone(tmp_path: Path, wire: Wire) -> None:
    store = new_store(str(tmp_path / "s.db"), SIGNED)
    add(store, 20)
    (batch,) = seal_batches(store, store.questions()[0])
    label, key = batch.label.to_text(), SharedKey(KEY)
    few = replace(batch.label, reports=19, submissions=0)
    short = batch.rows.tobytes()[:19]

    def sent(label: str, body: bytes, mac: str, **more: str) -> dict[str, str]:
        return {
            "idempotency-key": batch.id.hex(),
            "content-type": "application/octet-stream",
            BATCH_HEADER: label,
            MAC_HEADER: mac,
            **{name.replace("_", "-"): text for name, text in more.items()},
        }

    async def ask() -> list[int]:
        found = []
        async with running(wire.settings) as client:

            async def post(headers: dict[str, str], body: bytes) -> None:
                found.append((await client.ask("POST", PATH, headers, body)).status)

            mac = key.batch_mac(WORK.fingerprint, label, batch.body)
            plain = {"content-type": "text/plain", "idempotency-key": secrets.token_hex(16)}
            await post(plain, lines(30))
            await post({**plain, "sourdine-shuffler": KEY}, lines(30))
            await post(sent(label, batch.body, "0" * 64), batch.body)
            await post(sent(label, batch.body, mac), bytes(len(batch.body)))
            await post(sent(label, batch.body, mac, idempotency_key=secrets.token_hex(16)), batch.body)
            await post(sent(label.replace("seal=1", "seal=2"), batch.body, mac), batch.body)
            await post(sent("nonsense", batch.body, mac), batch.body)
            await post(
                sent(few.to_text(), short, key.batch_mac(WORK.fingerprint, few.to_text(), short)), short
            )
            await post(sent(label, batch.body, mac, content_type="text/plain"), batch.body)
            await post(sent(label, batch.body, mac), batch.body)
            await post(sent(label, batch.body, mac), batch.body)
        return found

    assert asyncio.run(ask()) == [403] * 7 + [422] * 2 + [201, 200]
    assert wire.counted() == 20
    store.close()


def test_a_shuffler_shows_nothing_of_what_it_has(tmp_path: Path, wire: Wire) -> None:
    settings = replace(shuffler(tmp_path, wire), results_port=0)
    new_store(settings.store, SIGNED).close()

    async def ask() -> list[int]:
        async with running(settings) as client:
            one = WORK.fingerprint
            places = (f"/v1/questions/{one}/counts", f"/v1/questions/{one}/estimates", "/metrics", "/")
            return [(await client.ask("GET", place)).status for place in places]

    assert asyncio.run(ask()) == [404] * 4


def test_the_metrics_of_a_shuffler_move_with_no_report(tmp_path: Path, wire: Wire) -> None:
    settings = replace(shuffler(tmp_path, wire), results_port=9)
    new_store(settings.store, SIGNED).close()

    async def ask() -> list[tuple[int, bytes]]:
        async with running(settings) as client:
            while (await client.post(lines(1))).status != 201:
                await asyncio.sleep(0.05)
            found = []
            for port, host in ((9, "127.0.0.1:9"), (8080, "127.0.0.1:8080"), (9, "evil.example:9")):
                assert (await client.post(lines(1))).status == 201
                answer = await client.ask("GET", "/metrics", {"Host": host}, port=port)
                found.append((answer.status, answer.body))
            assert (await client.post(lines(1))).status == 201
            again = await client.ask("GET", "/metrics", {"Host": "[::1]:9"}, port=9)
            return [*found, (again.status, again.body)]

    first, outside, elsewhere, later = asyncio.run(ask())
    assert [first[0], outside[0], elsewhere[0], later[0]] == [200, 404, 404, 200]
    reason = b"sourdine_refused_total"
    kept = [line for line in first[1].splitlines() if not line.startswith(reason)]
    assert kept == [line for line in later[1].splitlines() if not line.startswith(reason)]
    assert b"sourdine_batches_waiting 0" in kept
    assert WORK.fingerprint.encode() not in first[1]


def test_a_batch_that_is_not_taken_holds_up_no_other_question(tmp_path: Path, wire: Wire) -> None:
    """The collector knows nothing of the first question: the second is passed on all the same."""
    settings, lost = shuffler(tmp_path, wire), Question(name="lost", oracle=WORK.oracle)
    store = new_store(settings.store, announced(lost, period=KeptPeriod.WHOLE, batch=20), SIGNED)
    store.write([submission(lines(20, question=lost), period=""), submission(lines(30), 2, period="")])
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, today())
    assert wire.counted() == 30
    assert recount(store, 1, lost).reports == 20
    assert recount(store, 2, WORK).reports == 0


def test_what_was_taken_on_the_last_day_arrives_on_the_next(
    tmp_path: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = shuffler(tmp_path, wire)
    closes = SIGNED.announcement.closes
    store = new_store(settings.store, SIGNED)
    store.write([submission(lines(20), period="")])
    monkeypatch.setattr("sourdine.collector.reception.today", lambda: closes + timedelta(days=1))
    assert pass_on(settings, store, closes + timedelta(days=1)) == 1
    assert wire.counted() == 20
    store.write([submission(lines(20, 1), period="")])
    wire.faults = [Fault.NONE, Fault.CUT_AFTER]  # what the collector has is asked first
    with pytest.raises(DeliveryFailed):
        pass_on(settings, store, closes + timedelta(days=7))
    collected = open_store(wire.settings.store)
    (question,) = collected.questions()
    prune(collected, replace(question, closed=""), closes + timedelta(days=7))
    assert pass_on(settings, store, closes + timedelta(days=7)) == 1
    assert wire.counted() == 40
    assert wire.events()[1, "duplicate"] == 1


def test_a_batch_of_before_a_question_was_prolonged_is_taken_as_long_as_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was refused a week after the last day of its revision, and removed at the end."""
    two = announced(
        period=KeptPeriod.WHOLE, batch=20, retention=0, version=2, closes=CLOSES + timedelta(days=60)
    )
    collector = CollectorSettings(store=str(tmp_path / "c.db"), shuffler_key=KEY, rate=0)
    new_store(collector.store, SIGNED, two).close()
    with wired(collector) as wire:
        settings = shuffler(tmp_path, wire)
        store = new_store(settings.store, SIGNED)
        add(store, 25)
        seal_batches(store, store.questions()[0])
        store.register(two)
        later(monkeypatch, 30)
        assert pass_on(settings, store, CLOSES + timedelta(days=30)) == 1
        assert wire.counted() == 25
        store.close()


def test_a_clock_that_is_a_day_ahead_drops_nothing(tmp_path: Path, wire: Wire) -> None:
    settings, closes = shuffler(tmp_path, wire), SIGNED.announcement.closes
    store = new_store(settings.store, SIGNED)
    store.write([submission(lines(10), period="")])
    assert pass_on(settings, store, closes + timedelta(days=1)) == 0
    store.write([submission(lines(10, 1), period="")])  # the clock is set back, and the question open
    assert pass_on(settings, store, closes) == 1
    assert wire.counted() == 20
    store.write([submission(lines(10, 2), period="")])
    assert pass_on(settings, store, closes + timedelta(days=2)) == 0
    assert recount(store, 1, WORK).reports == 0


def test_what_a_collector_takes_no_more_is_not_kept_for_ever(
    tmp_path: Path, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, late = shuffler(tmp_path, wire), SIGNED.announcement.closes + timedelta(days=8)
    store = new_store(settings.store, SIGNED)
    store.write([submission(lines(20), period="")])
    monkeypatch.setattr("sourdine.collector.reception.today", lambda: late)
    with pytest.raises(DeliveryFailed, match="410"):
        pass_on(settings, store, late)
    assert recount(store, 1, WORK).reports == 0
