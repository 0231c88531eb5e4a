"""What is shown: the signed question byte for byte, counts, estimates, metrics, health and the client."""

import asyncio
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sourdine.collector.announcement import SignedAnnouncement
from sourdine.collector.period import KeptPeriod, today
from sourdine.collector.server import CollectorApplication
from sourdine.collector.settings import CollectorSettings, open_store
from sourdine.collector.store import ReportStore, StoreError
from sourdine.local import Counts
from tests.collector.parts import (
    KEY,
    WORK,
    Answer,
    Client,
    announced,
    lines,
    new_store,
    reports,
    running,
    settings_of,
    submission,
)

PATH = f"/v1/questions/{WORK.fingerprint}"


def shown(tmp_path: Path, *paths: str, port: int = 8080, **more: Any) -> list[Answer]:
    place = tmp_path / "reports.db"
    new_store(str(place), announced()).close()

    async def work() -> list[Answer]:
        async with running(settings_of(place, **more)) as client:
            await client.post(lines(40) + b"nonsense\n")
            return [await client.ask("GET", path, port=port) for path in paths]

    return asyncio.run(work())


def test_the_question_is_handed_on_as_it_was_signed(tmp_path: Path) -> None:
    answer, listed = shown(tmp_path, PATH, "/v1/questions")
    signed = SignedAnnouncement.from_text(answer.body.decode())
    assert signed.confirmed_by(KEY.public)
    assert signed.body == announced().body
    (one,) = json.loads(listed.body)["questions"]
    assert (one["fingerprint"], one["name"], one["open"]) == (WORK.fingerprint, "work", True)


def test_a_known_question_is_not_sent_again(tmp_path: Path) -> None:
    place = tmp_path / "reports.db"
    new_store(str(place)).close()

    async def work() -> list[Answer]:
        async with running(settings_of(place)) as client:
            first = await client.ask("GET", PATH)
            tag = first.headers[b"etag"].decode()
            return [first, await client.ask("GET", PATH, {"If-None-Match": tag})]

    first, again = asyncio.run(work())
    assert (first.status, again.status, again.body) == (200, 304, b"")


def test_results(tmp_path: Path) -> None:
    counts, estimates, metrics, health = shown(
        tmp_path, f"{PATH}/counts", f"{PATH}/estimates?confidence=0.9", "/metrics", "/health"
    )
    assert Counts.from_json(json.loads(counts.body)).sums.tolist() == WORK.tally(reports(40)).sums.tolist()
    told = json.loads(estimates.body)
    assert (told["reports"], told["confidence"], told["quarantined"]) == (40, 0.9, {"damaged": 1})
    expected = WORK.estimate(WORK.tally(reports(40)), 0.9)
    assert [each["value"] for each in told["answers"]] == expected.value.tolist()
    text = metrics.body.decode()
    assert f'sourdine_reports_total{{question="{WORK.fingerprint}"}} 40' in text
    assert 'kind="damaged"} 1' in text
    assert health.status == 200


def test_results_are_shown_on_their_own_port_alone(tmp_path: Path) -> None:
    paths = (f"{PATH}/counts", f"{PATH}/estimates", "/metrics", PATH)
    outside = shown(tmp_path, *paths, results_port=9000)
    inside = shown(tmp_path, *paths, results_port=9000, port=9000)
    assert [each.status for each in outside] == [404, 404, 404, 200]
    assert [each.status for each in inside] == [200] * 4

    async def led_here() -> list[int]:
        async with running(settings_of(tmp_path / "reports.db", results_port=9000)) as client:
            hosts = ("127.0.0.1:9000", "localhost:9000", "evil.example:9000", "127.0.0.1.evil.example")
            return [(await client.ask("GET", "/metrics", {"Host": host}, port=9000)).status for host in hosts]

    assert asyncio.run(led_here()) == [200, 200, 404, 404]


def test_everybody_sees_reports_in_groups_while_a_period_lasts(tmp_path: Path) -> None:
    """Whoever watches would see when a report came in, and know its sender by that."""
    place = tmp_path / "reports.db"
    store = new_store(str(place), announced(period=KeptPeriod.DAY))
    yesterday = (today() - timedelta(days=1)).isoformat()
    store.write([submission(lines(7), period=yesterday)])
    store.close()
    settings = settings_of(place, results_port=9000, public_results=True)

    async def work() -> list[tuple[list[int], int]]:
        async with running(settings) as client:
            found = []
            for count in (100, 155, 300):
                await client.post(lines(count))
                shown = []
                for port in (9000, 8080):
                    answer = await client.ask("GET", f"{PATH}/estimates?period=all", port=port)
                    shown.append(json.loads(answer.body)["reports"])
                found.append((shown, (await client.ask("GET", "/metrics")).status))
            page = await client.ask("GET", f"/questions/{WORK.fingerprint}")
            assert b"256 or more at a time" in page.body
            return found

    assert asyncio.run(work()) == [([107, 7], 404), ([262, 7], 404), ([562, 562], 404)]


def test_each_period_by_itself_and_all_together(tmp_path: Path) -> None:
    place = tmp_path / "reports.db"
    store = new_store(str(place), announced(period=KeptPeriod.DAY))
    days = [(today() - timedelta(days=k)).isoformat() for k in (1, 0)]
    for day in days:
        store.write([submission(lines(500), period=day)])  # the same devices with the same noise
    store.close()

    async def work(*paths: str) -> list[Answer]:
        async with running(settings_of(place)) as client:
            return [await client.ask("GET", f"{PATH}/{path}") for path in paths]

    newest, first, both, counts, sums, unknown = asyncio.run(
        work(
            "estimates",
            f"estimates?period={days[0]}",
            "estimates?period=all",
            f"counts?period={days[0]}",
            "counts?period=all",
            "estimates?period=2020-01-01",
        )
    )
    told = [json.loads(each.body) for each in (newest, first, both)]
    assert [(each["period"], each["reports"]) for each in told] == [
        (days[1], 500),
        (days[0], 500),
        ("all", 1000),
    ]
    widths = [each["answers"][0]["upper"] - each["answers"][0]["lower"] for each in told]
    assert widths[2] >= widths[0]  # as many devices, and so no narrower
    assert Counts.from_json(json.loads(counts.body)).reports == 500
    assert (sums.status, unknown.status) == (400, 400)
    (page,) = asyncio.run(pages(place, f"/questions/{WORK.fingerprint}?period=all"))
    assert b"1,000 reports so far" in page.body
    assert f"?period={days[0]}".encode() in page.body


async def pages(place: Path, *paths: str) -> list[Answer]:
    async with running(settings_of(place)) as client:
        return [await client.ask("GET", path) for path in paths]


def test_without_reports_there_are_no_answers_yet(tmp_path: Path) -> None:
    place = tmp_path / "reports.db"
    new_store(str(place)).close()

    async def work() -> Answer:
        async with running(settings_of(place)) as client:
            return await client.ask("GET", f"{PATH}/estimates")

    told = json.loads(asyncio.run(work()).body)
    assert (told["reports"], told["answers"]) == (0, [])


def test_a_store_that_is_written_by_others_is_seen(tmp_path: Path) -> None:
    place = tmp_path / "reports.db"
    new_store(str(place)).close()

    async def work() -> list[Answer]:
        async with running(settings_of(place)) as one, running(settings_of(place)) as two:
            await asyncio.gather(*(each.post(lines(10, i)) for i in range(5) for each in (one, two)))
            return [await one.ask("GET", f"{PATH}/counts"), await two.ask("GET", f"{PATH}/counts")]

    assert [json.loads(each.body)["reports"] for each in asyncio.run(work())] == [100, 100]


def test_the_end_waits_for_what_was_taken_in(tmp_path: Path) -> None:
    place = tmp_path / "reports.db"
    new_store(str(place)).close()

    async def work() -> list[Answer]:
        async with running(settings_of(place)) as client:
            tasks = [asyncio.ensure_future(client.post(lines(1))) for _ in range(50)]
            await asyncio.sleep(0)
        return list(await asyncio.gather(*tasks))

    answers = asyncio.run(work())
    taken = sum(each.status == 201 for each in answers)
    assert {each.status for each in answers} <= {201, 503}
    store = new_store(str(place))
    from sourdine.collector.blocks import recount

    assert recount(store, 1, WORK).reports == taken > 0
    store.close()


def test_what_is_no_file_of_the_client_is_not_there(tmp_path: Path) -> None:
    answers = shown(tmp_path, "/client/none.js", "/client/__init__.py", "/client/")
    assert [each.status for each in answers] == [404] * 3


def test_a_process_that_starts_while_the_store_is_away_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "reports.db"
    new_store(str(place), announced()).close()
    monkeypatch.setattr("sourdine.collector.server._REFRESH", 0.05)
    open_store = CollectorSettings.open_store
    away = True

    def perhaps(settings: CollectorSettings) -> ReportStore:
        if away:
            raise StoreError("The store is away.")
        return open_store(settings)

    monkeypatch.setattr(CollectorSettings, "open_store", perhaps)

    async def work() -> tuple[list[int], list[int]]:
        nonlocal away
        async with running(settings_of(place)) as client:

            async def statuses() -> list[int]:
                asked = [await client.ask("GET", path) for path in ("/health", "/v1/questions", PATH)]
                return [*(each.status for each in asked), (await client.post(lines(1))).status]

            before = await statuses()
            away = False
            await asyncio.sleep(0.3)
            return before, await statuses()

    assert asyncio.run(work()) == ([503] * 4, [200, 200, 200, 201])


def test_an_application_that_was_made_before_a_fork_serves_in_each_process(tmp_path: Path) -> None:
    """As servers do that load it once: nobody shares a thread, a connection or random numbers."""
    place = tmp_path / "reports.db"
    new_store(str(place)).close()
    app = CollectorApplication(settings_of(place))

    async def serve(seed: int) -> list[int]:
        async with app._life(None):  # type: ignore[arg-type]
            client = Client(app)
            return [(await client.post(lines(5, seed + i))).status for i in range(8)]

    processes = []
    for seed in (0, 100):
        processes.append(os.fork())
        if processes[-1] == 0:
            os._exit(asyncio.run(serve(seed)) != [201] * 8)
    assert [os.waitpid(each, 0)[1] for each in processes] == [0, 0]
    store = open_store(str(place))
    numbers = [number for some, _ in store.stream(1) for number in some.tolist()]
    store.close()
    assert len(set(numbers)) == len(numbers) == 80
