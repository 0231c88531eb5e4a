"""Real processes: started by the command, asked over sockets, slow ones cut off, ended without loss."""

import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from sourdine.cli.collect import app
from sourdine.cli.collect.serve import shared_key
from sourdine.cli.collect.tokens import read_private
from sourdine.collector.blocks import recount
from sourdine.collector.period import KeptPeriod
from sourdine.collector.processes import raise_file_limit
from sourdine.collector.settings import CollectorSettings, open_store
from sourdine.collector.tokens.blind import public_text
from tests.campaigns.collect.proxy import Fault
from tests.collector.parts import WORK, announced, lines
from tests.collector.wire import wired

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Address:
    """Where a server takes reports, and where it shows results."""

    reports: str
    results: str


@contextmanager
def command(folder: Path, *more: str, kind: str = "serve") -> Iterator[tuple[Address, subprocess.Popen[str]]]:
    path = folder / "work.announcement.json"
    terms: dict[str, Any] = {"batch": 20, "period": KeptPeriod.WHOLE} if kind == "shuffle" else {}
    if kind == "issue":
        key = folder / "tokens.pem"
        runner = CliRunner().invoke(app, ["token-key", str(key)])
        assert runner.exit_code == 0
        (folder / "codes.txt").write_text(secrets.token_hex(16), encoding="ascii")
        terms = {"tokens": public_text(read_private(key).public_key())}
        more = ("--key", str(key), "--codes", "codes.txt", *more)
    path.write_text(announced(**terms).to_text(), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "sourdine", "collect", kind, str(path), "--port", "0", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
        start_new_session=True,
    )
    assert process.stdout is not None
    address = Address("", "")
    for line in process.stdout:
        if line.startswith(("Listening on ", "Shuffling on ", "Issuing on ")):
            address = Address(line.split()[-1], "")
        if line.startswith(("Shuffling", "Issuing")):  # which show no results
            break
        if line.startswith("Results"):
            address = Address(address.reports, line.split()[-1].rstrip("/"))
            break
    latest = time.monotonic() + 60
    while time.monotonic() < latest:
        try:
            urllib.request.urlopen(f"{address.reports}/health", timeout=5).close()
            break
        except OSError:
            time.sleep(0.05)
    try:
        yield address, process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def post(address: Address, body: bytes) -> int:
    request = urllib.request.Request(
        f"{address.reports}/v1/questions/{WORK.fingerprint}/reports",
        body,
        {"Idempotency-Key": secrets.token_hex(16), "Content-Type": "text/plain"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert json.loads(answer.read())["accepted"] == len(body) // 20
        return int(answer.status)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_from_start_to_end(tmp_path: Path, workers: str) -> None:
    with command(tmp_path, "--public-results", "--workers", workers) as (address, process):
        assert [post(address, lines(5, k)) for k in range(20)] == [201] * 20
        for shown, expected in ((address.results, 100), (address.reports, 0)):  # to everybody in groups
            with urllib.request.urlopen(f"{shown}/v1/questions/{WORK.fingerprint}/counts") as answer:
                assert json.loads(answer.read())["reports"] == expected
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) in (0, -signal.SIGTERM)
        assert process.stdout is not None
        assert process.stdout.read() == ""  # no logs at all
    store = open_store(str(tmp_path / "reports.db"))
    assert recount(store, 1, WORK).reports == 100
    store.close()


@pytest.mark.parametrize("kind", ["serve", "shuffle"])
def test_what_is_under_way_when_it_ends_is_stored_if_it_was_acknowledged(tmp_path: Path, kind: str) -> None:
    """Sixteen send without a pause until nobody listens; a batch is on its way to one who never answers."""
    more: list[str] = []
    (tmp_path / "pair.key").write_bytes(os.urandom(32))
    collector = CollectorSettings(
        store=str(tmp_path / "c.db"), shuffler_key=shared_key(tmp_path / "pair.key")
    )
    with wired(collector) as wire:
        answers = iter([Fault.NONE])  # it says what it has, and then nothing
        wire.proxy.choose = lambda: next(answers, Fault.SILENT)
        if kind == "shuffle":
            more = ["--secret", "pair.key", "--collector", wire.address]
        with command(tmp_path, *more, "--rate", "0", kind=kind) as (address, process):

            def send(seed: int) -> int:
                acknowledged = 0
                while True:
                    try:
                        acknowledged += post(address, lines(1, seed)) == 201
                    except urllib.error.URLError as problem:
                        if isinstance(problem.reason, ConnectionRefusedError):
                            return acknowledged
                    except OSError:
                        pass

            with ThreadPoolExecutor(16) as crowd:
                sent = [crowd.submit(send, seed) for seed in range(16)]
                time.sleep(3)
                process.send_signal(signal.SIGTERM)
                begin = time.monotonic()
                assert process.wait(timeout=60) in (0, -signal.SIGTERM)
                assert time.monotonic() - begin < 15
                acknowledged = sum(each.result(60) for each in sent)
    store = open_store(str(tmp_path / ("reports.db" if kind == "serve" else "shuffler.db")))
    stored = recount(store, 1, WORK).reports
    store.close()
    assert 100 < acknowledged <= stored <= acknowledged + 16


def test_a_head_that_never_ends_is_cut_off(tmp_path: Path) -> None:
    with command(tmp_path) as (address, _):
        host, port = address.reports.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as slow:
            slow.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n")
            begin = time.monotonic()
            with suppress(ConnectionResetError):
                assert slow.recv(1) == b""
            assert 5 < time.monotonic() - begin < 50
        with socket.create_connection((host, int(port)), timeout=60) as garbage:
            garbage.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
            assert garbage.recv(100).startswith(b"HTTP/1.1 400")
        assert post(address, lines(1)) == 201


def test_a_body_that_never_ends_is_cut_off_after_its_answer_too(tmp_path: Path) -> None:
    """Else some thousand connections that were refused, and drip on, would keep everybody else out."""
    with command(tmp_path) as (address, _):
        host, port = address.reports.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=60) as slow:
            slow.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
            assert slow.recv(1000).startswith(b"HTTP/1.1 200")
            begin = time.monotonic()
            with suppress(ConnectionError):
                while time.monotonic() - begin < 60:
                    slow.sendall(b"0")
                    time.sleep(0.5)
            assert time.monotonic() - begin < 60
        assert post(address, lines(1)) == 201


def connected(port: int, network: int, count: int) -> list[socket.socket]:
    """Connections from an address of the loopback that begin a request and do not go on."""
    made = []
    for _ in range(count):
        one = socket.create_connection(
            ("127.0.0.1", port), timeout=30, source_address=(f"127.0.{network}.1", 0)
        )
        with suppress(OSError):  # the server may have cut it at once
            one.sendall(b"POST")
        made.append(one)
    return made


def asked(port: int, network: int, path: str) -> int:
    """The status of a request from an address of the loopback."""
    line = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode()
    with socket.create_connection(
        ("127.0.0.1", port), timeout=30, source_address=(f"127.0.{network}.1", 0)
    ) as one:
        one.sendall(line)
        return int(one.recv(100).split()[1])


def test_one_address_shuts_out_nobody_and_a_full_server_says_that_it_lives(tmp_path: Path) -> None:
    """With 2,048 connections it gave everybody 503 for ten seconds."""
    raise_file_limit()
    with command(tmp_path) as (address, _):
        port = int(address.reports.rpartition(":")[2])
        flood = connected(port, 1, 2048)
        assert asked(port, 2, "/v1/questions") == 200
        for network in (3, 4, 5):
            flood += connected(port, network, 512)
        assert asked(port, 6, "/v1/questions") == 503
        assert [asked(port, 6, path) for path in ("/health", "/ready")] == [200, 200]
        for each in flood:
            each.close()
        assert asked(port, 6, "/v1/questions") == 200


def forwarded(address: Address, *chains: str) -> list[int]:
    """The statuses of reports that came through proxies, each of which appended an address."""

    def send(chain: str) -> int:
        headers = {"Idempotency-Key": secrets.token_hex(16), "Content-Type": "text/plain"}
        request = urllib.request.Request(
            f"{address.reports}/v1/questions/{WORK.fingerprint}/reports",
            lines(1),
            headers | {"X-Forwarded-For": chain},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as problem:
            with problem:
                return int(problem.code)

    return [send(chain) for chain in chains]


def test_the_address_that_the_proxy_wrote_counts_and_no_other(tmp_path: Path) -> None:
    """A client may write any addresses before it; without --proxy the header is not read at all."""
    own = [f"203.0.113.{k}, 198.51.100.9" for k in range(4)]
    with command(tmp_path, "--rate", "0.01", "--proxy", "127.0.0.0/8") as (address, _):
        assert forwarded(address, *own) == [201, 429, 429, 429]
        assert forwarded(address, "198.51.100.10", "198.51.100.11") == [201, 201]
    with command(tmp_path, "--rate", "0.01") as (address, _):
        assert forwarded(address, *[f"198.51.100.{k}" for k in range(3)]) == [201, 429, 429]


@pytest.mark.parametrize("kind", ["serve", "shuffle", "issue"])
def test_no_address_is_logged(tmp_path: Path, kind: str) -> None:
    """Of good requests, refused ones, broken ones, too many connections and a collector that is away."""
    raise_file_limit()
    (tmp_path / "pair.key").write_bytes(os.urandom(32))
    away = ["--secret", "pair.key", "--collector", "http://127.0.0.1:1"] if kind == "shuffle" else []
    with command(tmp_path, *away, "--rate", "1", kind=kind) as (address, process):
        port = int(address.reports.rpartition(":")[2])
        for path in ("/health", "/ready", "/nothing", "/metrics", f"/v1/questions/{WORK.fingerprint}"):
            assert asked(port, 77, path) > 0
        flood = [each for network in (77, 78, 79, 80, 81) for each in connected(port, network, 520)]
        with suppress(OSError):
            flood[0].sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
            flood[1].sendall(b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n")
        asked(port, 82, "/nothing")
        for each in flood:
            each.close()
        process.send_signal(signal.SIGTERM)
        assert process.stdout is not None
        log = process.stdout.read()
        process.wait(60)
    assert not re.search(r"127\.0\.(7|8)\d", log)
    assert WORK.fingerprint not in log
