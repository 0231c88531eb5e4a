"""Devices in processes that may be killed: each sends its number until the collector's own answer comes."""

import json
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import numpy as np

from sourdine.collector.receipt import answer_tag
from sourdine.collector.tokens.blind import BlindMessage, read_public
from sourdine.collector.tokens.token import HEADER, Token, TokenRequest
from sourdine.core.errors import SourdineError
from sourdine.local import GRR, Question
from sourdine.local.lines import written
from tests.campaigns.collect.device import ask

PLAIN = Question(name="numbers", oracle=GRR(epsilon=1, categories=1 << 14))
WITH_TOKENS = Question(name="numbers with tokens", oracle=GRR(epsilon=1, categories=1 << 14))
_TOGETHER = 4  # devices of a process that are at work at once
_PAUSE = 0.4  # seconds until a device tries again


@dataclass(frozen=True)
class Reporters:
    """Devices of one process: which numbers they send, whereto, and how quickly one begins after another.

    What a device draws is in the journal before it is sent, so that a process which was killed goes on with
    the same submission ids and tokens.
    """

    name: str
    numbers: tuple[int, ...]
    codes: Mapping[int, str]
    """The codes of the numbers whose question asks for a token."""
    key: str
    issuer: int
    shuffler: int
    folder: Path
    began: float
    pace: float

    @property
    def place(self) -> Path:
        """The journal."""
        return self.folder / f"{self.name}.journal"

    def states(self) -> dict[int, dict[str, str]]:
        """What the journal has of each number."""
        found: dict[int, dict[str, str]] = {}
        content = self.place.read_text(encoding="ascii") if self.place.exists() else ""
        for line in content.splitlines():
            with suppress(ValueError):  # a line that a kill has cut
                entry = json.loads(line)
                found.setdefault(entry.pop("number"), {}).update(entry)
        return found

    @property
    def is_done(self) -> bool:
        """Whether every number is settled."""
        states = self.states()
        return all("settled" in states.get(number, {}) for number in self.numbers)

    def run(self) -> None:
        """Send what is not settled yet."""
        states = self.states()
        journal = os.open(self.place, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.write(journal, b"\n")
        with ThreadPoolExecutor(_TOGETHER) as crowd:
            for place, number in enumerate(self.numbers):
                state = states.get(number, {})
                if "settled" not in state:
                    crowd.submit(self._deliver, number, state, journal, self.began + place * self.pace)

    def _deliver(self, number: int, state: dict[str, str], journal: int, begins: float) -> None:
        def keep(**more: str) -> None:
            state.update(more)
            os.write(journal, json.dumps({"number": number, **more}).encode() + b"\n")

        time.sleep(max(0.0, begins - time.time()))
        question = WITH_TOKENS if number in self.codes else PLAIN
        if "id" not in state:
            keep(id=token_hex(16))
        if number in self.codes and "token" not in state:
            self._fetch_token(number, state, keep)
        body = written(question.fingerprint, question.oracle.pack(np.array([number])))
        headers = {"Idempotency-Key": state["id"], "Content-Type": "text/plain"}
        if "token" in state:
            headers[HEADER] = state["token"]
        tries = 0
        while True:
            status, answer = ask(
                self.shuffler, f"/v1/questions/{question.fingerprint}/reports", headers, body
            )
            tries += 1
            outcome = settled_as(status, answer, state["id"])
            if outcome:
                keep(settled=outcome, at=repr(time.time()), tries=str(tries))
                return
            time.sleep(_PAUSE)

    def _fetch_token(self, number: int, state: dict[str, str], keep: Callable[..., None]) -> None:
        key = read_public(self.key)
        if "message" not in state:
            drawn = TokenRequest.draw(key)
            keep(
                message=drawn.message.hex(),
                blinded=drawn.blinding.blinded.hex(),
                inverse=f"{drawn.blinding.inverse:x}",
            )
        blinding = BlindMessage(bytes.fromhex(state["blinded"]), int(state["inverse"], 16))
        request = TokenRequest(key, bytes.fromhex(state["message"]), blinding)
        code = {"Authorization": f"Bearer {self.codes[number]}", "Content-Type": "application/octet-stream"}
        path = f"/v1/questions/{WITH_TOKENS.fingerprint}/tokens"
        while True:
            status, answer = ask(self.issuer, path, code, blinding.blinded)
            token: Token | None = None
            with suppress(SourdineError):  # a login page is no signature
                token = request.finish(answer) if status == 200 else None
            if token is not None:
                keep(token=token.to_text())
                return
            time.sleep(_PAUSE)


def settled_as(status: int, answer: bytes, name: str) -> str:
    """Return what a collector's own answer says of a submission, or nothing if it is to be sent again."""
    try:
        content = json.loads(answer)
    except ValueError:
        return ""
    if not isinstance(content, dict) or content.get("answer") != answer_tag(bytes.fromhex(name)):
        return ""
    if status in (200, 201, 202):
        return "acknowledged"
    return "" if status in (408, 425, 429) or status >= 500 else f"refused {status}"
