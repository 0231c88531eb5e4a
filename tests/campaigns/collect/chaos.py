"""The chain under all that goes wrong at once: faulty proxies, kills of every part, revisions, restores.

    python -m tests.campaigns.collect.chaos --mode durable --reports 10000
    python -m tests.campaigns.collect.chaos --mode restores --database postgres

Each device has a number, which is its report, and sends it through a proxy until the collector's own answer
settles it; batches and requests for tokens go through such proxies too. Meanwhile every part is killed again
and again, and the questions get revisions with larger and smaller batches. In the mode `restores` the stores
of all parts are put back from backups that were made while they ran; in the mode `staging` the
shuffler has reports in memory alone. In the end no number may be counted twice, none may be lost by kills and
proxies, and what a restore or a crash of the staging mode lost must be of those that came since the backup or
within the time of staging.
"""

import argparse
import json
import random
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from secrets import token_bytes, token_hex
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

import numpy as np
from cryptography.hazmat.primitives import serialization

from benchmarks.servers import Server
from sourdine.accounting.certificate import SigningKey
from sourdine.collector.announcement import Announcement, SignedAnnouncement
from sourdine.collector.blocks import recount
from sourdine.collector.period import KeptPeriod, today
from sourdine.collector.settings import open_store
from sourdine.collector.tokens.blind import new_key, public_text
from tests.campaigns.collect.parts import PROCESSES, Part, start
from tests.campaigns.collect.proxy import Fault, Faults, Proxy
from tests.campaigns.collect.reporter import PLAIN, WITH_TOKENS, Reporters

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerProcess

_BATCHES = (20, 60, 10, 30)  # of the announcements, one after another
_STAGING = 3.0  # seconds that reports are in memory alone
_LATE = 1.5  # seconds by which a device may note an answer later than its report was stored
_PROCESSES = 8
_END = 120.0  # seconds that the last batches may take


class Mode(StrEnum):
    """What goes wrong beside proxies, kills and revisions."""

    DURABLE = "durable"
    RESTORES = "restores"
    STAGING = "staging"


@dataclass
class Chaos:
    """What was done to the chain, and what was left."""

    mode: str
    database: str
    reports: int
    acknowledged: int = 0
    collected: int = 0
    waiting: int = 0
    twice: int = 0
    unknown: int = 0
    lost: int = 0
    allowed: int = 0
    """How many acknowledged reports came since a backup that was put back, or within the time of staging."""
    lost_otherwise: int = 0
    refused: int = 0
    sent_again: int = 0
    kills: dict[str, int] = field(default_factory=dict)
    restores: dict[str, int] = field(default_factory=dict)
    revisions: int = 0
    batches: int = 0
    least_batch: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    logged_in: int = 0
    """How many requests followed a redirect to the login page."""
    seconds: float = 0.0

    @property
    def holds(self) -> bool:
        """Whether everything that is promised was kept."""
        wrong = self.twice + self.unknown + self.lost_otherwise + self.refused + self.logged_in
        return wrong == 0 and (self.lost == 0 or self.mode != Mode.DURABLE)


class StoreCopies:
    """Backups of a store while it is written, and putting them back, as the how-to says."""

    def __init__(self, address: str, folder: Path, server: Server | None) -> None:
        self.address, self.folder, self.server = address, folder, server

    def back_up(self, name: str) -> Path:
        """Write a backup."""
        target = self.folder / name
        if self.server is None:
            with closing(sqlite3.connect(self.address)) as one, closing(sqlite3.connect(target)) as other:
                one.backup(other)
            return target
        schema = "sourdine_reports_" + self.address.partition("#")[2]
        self._run("pg_dump", "--format=custom", f"--schema={schema}", f"--file={target}", self.server.address)
        return target

    def put_back(self, backup: Path) -> None:
        """Replace the store, which no process has open, by a backup."""
        if self.server is None:
            for ending in ("", "-wal", "-shm"):
                Path(self.address + ending).unlink(missing_ok=True)
            shutil.copy(backup, self.address)
            return
        schema = "sourdine_reports_" + self.address.partition("#")[2]
        self.server.execute(f"DROP SCHEMA {schema} CASCADE")
        self._run("pg_restore", "--single-transaction", f"--dbname={self.server.address}", str(backup))

    def _run(self, program: str, *words: str) -> None:
        assert self.server is not None
        subprocess.run(
            [str(Path(self.server.held.bin_path) / program), *words], check=True, capture_output=True
        )


class Site:
    """All parts, their proxies and stores, and what was done to them."""

    def __init__(self, folder: Path, chaos: Chaos, *, tokens: int, faults: float, seed: int) -> None:
        self.folder, self.chaos, self.seed = folder, chaos, seed
        self.dice = random.Random(seed)
        self.server = Server.start() if chaos.database == "postgres" else None
        self.signing, self.token_key = SigningKey.generate("office"), new_key()
        self.codes = {number: token_hex(16) for number in range(tokens)}
        self.stores = {
            name: StoreCopies(
                str(folder / f"{name}.db") if self.server is None else self.server.new(), folder, self.server
            )
            for name in ("shuffle", "serve")
        }
        self.stores["issue"] = StoreCopies(str(folder / "codes.db"), folder, None)
        self._write_files()
        self.announce(0)
        ports = ["--rate", "0", "--connections", "0"]
        issue = ["issue", "tokens.json", "--key", "key.pem", "--codes", "codes.txt", *ports]
        both = ["plain.json", "tokens.json"]
        serve = ["serve", *both, "--store", self.stores["serve"].address, "--shuffler-secret", "pair.key"]
        collector = Part([*serve, "--results-port", "0", *ports], folder)
        issuer = Part(issue, folder)
        self.to_collector = Proxy(collector.port, Faults(faults, seed + 1))
        shuffle = ["shuffle", *both, "--store", self.stores["shuffle"].address, "--secret", "pair.key"]
        staged = ["--staging", str(_STAGING)] if chaos.mode == Mode.STAGING else []
        shuffler = Part([*shuffle, "--collector", self.to_collector.address, *ports, *staged], folder)
        self.to_shuffler = Proxy(shuffler.port, Faults(faults, seed + 2))
        self.to_issuer = Proxy(issuer.port, Faults(faults, seed + 3))
        self.parts = {"issue": issuer, "shuffle": shuffler, "serve": collector}
        self.turns = {name: Lock() for name in self.parts}
        self.database_turn = Lock()  # a server that is being killed can be asked for no dump
        self.open_to_loss: list[tuple[float, float]] = []
        """Spans of time in which what was acknowledged may be lost by a restore or a crash."""
        self.put_out: set[tuple[int, int]] = set()
        """Question and number of reports that a collector had, and not the backup that was put back."""

    def _write_files(self) -> None:
        form = serialization.PrivateFormat.PKCS8
        key = self.token_key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        (self.folder / "key.pem").write_bytes(key)
        listed = "\n".join(self.codes.values()) or token_hex(16)
        (self.folder / "codes.txt").write_text(listed + "\n", encoding="ascii")
        (self.folder / "pair.key").write_bytes(token_bytes(32))

    def announce(self, revision: int) -> None:
        """Sign a revision of both questions, with another batch and another last day."""
        for name, question in (("plain", PLAIN), ("tokens", WITH_TOKENS)):
            announcement = Announcement(
                question=question,
                opens=today() - timedelta(days=1),
                closes=today() + timedelta(days=30 + revision),
                version=revision + 1,
                period=KeptPeriod.WHOLE,
                batch=_BATCHES[revision],
                tokens=public_text(self.token_key.public_key()) if name == "tokens" else "",
            )
            new = self.folder / f"{name}.new"
            signed = SignedAnnouncement.sign(announcement, self.signing)
            new.write_text(signed.to_text(), encoding="utf-8")
            new.replace(self.folder / f"{name}.json")

    def numbers(self, name: str) -> set[tuple[int, int]]:
        """Question and number of all reports in a store."""
        store = open_store(self.stores[name].address)
        try:
            return {
                (question.number, int(number))
                for question in store.questions()
                for number in np.flatnonzero(recount(store, question.number, question.question).sums)
            }
        finally:
            store.close()

    def kill(self, name: str, between: Callable[[float], None] = lambda moment: None) -> None:
        """Kill a part that is up, perhaps do something to its store, and start it again."""
        with self.turns[name]:
            part = self.parts[name]
            while not part.is_up:
                part.revive()
                time.sleep(0.05)
            time.sleep(self.dice.expovariate(1.0))
            part.kill()
            moment = time.time()
            if name == "shuffle" and self.chaos.mode == Mode.STAGING:
                self.open_to_loss.append((moment - _STAGING - _LATE, moment + _LATE))
            between(moment)
            part.start()
            self.chaos.kills[name] = self.chaos.kills.get(name, 0) + 1

    def restore(self, name: str, pause: float) -> None:
        """Back a store up while it is written, and put that back some time later."""
        with self.turns[name], self.database_turn:
            begun = time.time()
            backup = self.stores[name].back_up(f"{name}-{token_hex(4)}.backup")
        time.sleep(pause)

        def put_back(moment: float) -> None:
            with self.database_turn:
                before = self.numbers(name) if name == "serve" else set()
                self.stores[name].put_back(backup)
                if name == "serve":
                    self.put_out |= before - self.numbers(name)
            if name == "shuffle":
                self.open_to_loss.append((begun, moment + _LATE))

        self.kill(name, put_back)
        self.chaos.restores[name] = self.chaos.restores.get(name, 0) + 1

    def revise(self, revision: int) -> None:
        """Announce a revision, of which shuffler and collector learn as they start again, in any order."""
        self.announce(revision)
        for name in self.dice.sample(("shuffle", "serve"), 2):
            self.kill(name)
        self.chaos.revisions += 1

    def kill_database(self) -> None:
        """Kill every process of the database, and start it again."""
        assert self.server is not None
        with self.database_turn:
            self.server.kill()
            self.server.restart()
        self.chaos.kills["database"] = self.chaos.kills.get("database", 0) + 1

    def keep_up(self, done: Event) -> None:
        """Start parts again that ended by themselves, such as for a database that was away."""
        while not done.wait(0.5):
            for name, part in self.parts.items():
                if self.turns[name].acquire(blocking=False):  # else it is being killed
                    try:
                        part.revive()
                    finally:
                        self.turns[name].release()

    def close(self) -> None:
        """End everything."""
        for part in self.parts.values():
            if part.process is not None and part.process.is_alive():
                part.stop()
        for proxy in (self.to_collector, self.to_shuffler, self.to_issuer):
            proxy.close()
        if self.server is not None:
            self.server.remove()


class Crowd:
    """All devices, in some processes that are killed and begin again."""

    def __init__(self, site: Site, numbers: range, seconds: float) -> None:
        self.site, self.goes_on = site, Event()
        own = [tuple(numbers[i::_PROCESSES]) for i in range(_PROCESSES)]
        self.reporters = [
            Reporters(
                f"devices-{i}",
                mine,
                {number: site.codes[number] for number in mine if number in site.codes},
                public_text(site.token_key.public_key()),
                site.to_issuer.port,
                site.to_shuffler.port,
                site.folder,
                time.time(),
                seconds / max(len(mine), 1),
            )
            for i, mine in enumerate(own)
        ]
        self.alive: dict[str, ForkServerProcess] = {}
        self.killed = 0

    def run(self, kills: int, seconds: float) -> None:
        """Keep a process of each group of devices running until all are done, and kill some."""
        begun, dice = time.monotonic(), random.Random(self.site.seed + 4)
        left = list(self.reporters)
        while left:
            for each in list(left):
                process = self.alive.get(each.name)
                if process is None or not process.is_alive():
                    if process is not None and each.is_done:
                        left.remove(each)
                        continue
                    self.alive[each.name] = PROCESSES.Process(target=each.run)
                    self.alive[each.name].start()
            if left and self.killed < kills * (time.monotonic() - begun) / seconds and self.killed < kills:
                self.alive[dice.choice(left).name].kill()
                self.killed += 1
            time.sleep(0.2)


def run_chaos(
    folder: Path,
    *,
    mode: Mode = Mode.DURABLE,
    database: str = "sqlite",
    reports: int = 10_000,
    tokens: int = 500,
    kills: int = 15,
    restores: int = 4,
    seconds: float = 150.0,
    faults: float = 0.25,
    seed: int = 1,
) -> Chaos:
    """Run the chain once; the numbers are those of everything that happened."""
    begun = time.monotonic()
    chaos = Chaos(str(mode), database, reports)
    site = Site(folder, chaos, tokens=tokens, faults=faults, seed=seed)
    done = Event()
    try:
        start(site.parts)
        keeper = Thread(target=site.keep_up, args=(done,), daemon=True)
        keeper.start()
        crowd = Crowd(site, range(reports), seconds)
        acts = _acts(site, kills, restores if mode == Mode.RESTORES else 0)
        devices = Thread(target=crowd.run, args=(3 * _PROCESSES, seconds))
        devices.start()
        with ThreadPoolExecutor(len(acts)) as others:
            for each in [others.submit(_spread, act, seconds) for act in acts]:
                each.result()
        devices.join()
        chaos.kills["devices"] = crowd.killed
        _settle(site)
        done.set()
        keeper.join()
        _count(site, crowd)
    finally:
        done.set()
        site.close()
    chaos.seconds = round(time.monotonic() - begun, 1)
    return chaos


def _acts(site: Site, kills: int, restores: int) -> list[list[Callable[[], None]]]:
    """What is done to the chain, one list beside another."""
    acts: list[list[Callable[[], None]]] = [
        [lambda name=name: site.kill(name) for _ in range(kills)]  # type: ignore[misc]
        for name in site.parts
    ]
    acts.append([lambda i=i: site.revise(i) for i in range(1, len(_BATCHES))])  # type: ignore[misc]
    if restores:
        for name in site.stores:
            dice = random.Random(site.seed + len(name))
            pauses = [dice.uniform(2, 8) for _ in range(restores)]
            acts.append([lambda n=name, p=p: site.restore(n, p) for p in pauses])  # type: ignore[misc]
    if site.server is not None:
        acts.append([site.kill_database] * (kills // 3))
    return acts


def _spread(acts: list[Callable[[], None]], seconds: float) -> None:
    """Do one after another, spread over a time."""
    begun = time.monotonic()
    for i, act in enumerate(acts):
        time.sleep(max(0.0, begun + (i + 0.5) * seconds / len(acts) - time.monotonic()))
        act()


def _settle(site: Site) -> None:
    """Wait until what is enough for a batch has been delivered, through proxies that go on failing."""
    end = time.monotonic() + _END
    while time.monotonic() < end:
        time.sleep(2)
        store = open_store(site.stores["shuffle"].address)
        try:
            own = store.identity().epoch
            waits = any(store.batches(each.number, own) for each in store.questions())
            least = _BATCHES[-1]
            waits |= any(
                recount(store, each.number, each.question).reports >= least for each in store.questions()
            )
        finally:
            store.close()
        is_staged = site.chaos.mode == Mode.STAGING and time.monotonic() < end - _END + 2 * _STAGING
        if not waits and not is_staged:
            return


def _count(site: Site, crowd: Crowd) -> None:
    for part in site.parts.values():
        part.stop()
    chaos = site.chaos
    states = {number: state for each in crowd.reporters for number, state in each.states().items()}
    known = {n: float(s["at"]) for n, s in states.items() if s.get("settled") == "acknowledged"}
    chaos.acknowledged = len(known)
    chaos.refused = sum(s.get("settled", "").startswith("refused") for s in states.values())
    chaos.sent_again = sum(int(s.get("tries", "1")) - 1 for s in states.values())
    collected, waiting = (open_store(site.stores[name].address) for name in ("serve", "shuffle"))
    try:
        numbered = {each.question.fingerprint: each.number for each in collected.questions()}
        lost: set[int] = set()
        put_out = set[int]()
        for question in waiting.questions():
            there = numbered[question.question.fingerprint]
            came = recount(collected, there, question.question).sums
            rest = recount(waiting, question.number, question.question).sums
            with_tokens = question.question.name == WITH_TOKENS.name
            own = {number for number in range(chaos.reports) if (number in site.codes) == with_tokens}
            chaos.collected += int(came.sum())
            chaos.waiting += int(rest.sum())
            chaos.twice += int((came + rest > 1).sum())
            found = set(np.flatnonzero(came + rest).tolist())
            chaos.unknown += len(found - (own & known.keys()))
            lost |= (own & known.keys()) - found
            put_out |= {number for each, number in site.put_out if each == there}
        sizes = {
            int(kind.removeprefix("batch-")): count
            for (_, kind), count in collected.events().items()
            if kind.startswith("batch-")
        }
    finally:
        collected.close()
        waiting.close()
    recent = {
        number
        for number, moment in known.items()
        if any(begin <= moment <= end for begin, end in site.open_to_loss)
    }
    chaos.lost = len(lost)
    chaos.allowed = len((recent | put_out) & known.keys())
    chaos.lost_otherwise = len(lost - recent - put_out)
    chaos.batches, chaos.least_batch = sum(sizes.values()), min(sizes, default=0)
    proxies = (site.to_collector, site.to_shuffler, site.to_issuer)
    chaos.faults = {
        str(fault): sum(each.faults[fault] for each in proxies)
        for fault in Fault
        if any(each.faults[fault] for each in proxies)
    }
    chaos.logged_in = sum(len(each.login_headers) for each in proxies)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    reader.add_argument("--mode", choices=[str(each) for each in Mode], default=str(Mode.DURABLE))
    reader.add_argument("--database", choices=("sqlite", "postgres"), default="sqlite")
    reader.add_argument("--reports", type=int, default=10_000)
    reader.add_argument("--tokens", type=int, default=500, help="how many of them need a token")
    reader.add_argument("--kills", type=int, default=15, help="of each part")
    reader.add_argument("--restores", type=int, default=4, help="of each store, in the mode restores")
    reader.add_argument("--seconds", type=float, default=150.0, help="over which devices begin")
    reader.add_argument("--seed", type=int, default=1)
    asked = reader.parse_args()
    with tempfile.TemporaryDirectory(prefix="sourdine-chaos-") as name:
        chaos = run_chaos(
            Path(name),
            mode=Mode(asked.mode),
            database=asked.database,
            reports=asked.reports,
            tokens=asked.tokens,
            kills=asked.kills,
            restores=asked.restores,
            seconds=asked.seconds,
            seed=asked.seed,
        )
    print(json.dumps(asdict(chaos), indent=1))
    print("met" if chaos.holds else "missed")


if __name__ == "__main__":
    main()
