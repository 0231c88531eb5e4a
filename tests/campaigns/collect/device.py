"""A device as a process of its own, which keeps what it has in a file and goes on from there when killed."""

import http.client
import json
import os
import random
import secrets
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sourdine.collector.tokens.blind import BlindMessage, read_public
from sourdine.collector.tokens.token import HEADER, Token, TokenRequest
from sourdine.local import GRR, Question
from sourdine.local.lines import written

QUESTION = Question(name="numbers", oracle=GRR(epsilon=1, categories=1 << 16))
_TIME = 15.0  # seconds that an answer may take
_CHEATS = 10  # one of so many devices tries to spend its token for another number, too


@dataclass(frozen=True)
class Device:
    """A device with a number of its own, which is its report, and the places of issuer and shuffler."""

    number: int
    code: str
    key: str
    issuer: int
    shuffler: int
    folder: Path

    @property
    def place(self) -> Path:
        """The file of what it has."""
        return self.folder / f"{self.number}.json"

    def state(self) -> dict[str, str]:
        """What it has: a blinded number, a token, an acknowledgement, and what became of its fraud."""
        try:
            found: dict[str, str] = json.loads(self.place.read_text(encoding="ascii"))
        except FileNotFoundError:
            return {}
        return found

    @property
    def is_done(self) -> bool:
        """Whether there is nothing left to do."""
        state = self.state()
        return "acknowledged" in state and (self.number % _CHEATS > 0 or "fraud" in state)

    def run(self) -> None:
        """Get a token, send the report until it is acknowledged, and perhaps another one under that token."""
        state = self.state()
        key = read_public(self.key)
        if "message" not in state:
            drawn = TokenRequest.draw(key)
            state |= {
                "message": drawn.message.hex(),
                "blinded": drawn.blinding.blinded.hex(),
                "inverse": f"{drawn.blinding.inverse:x}",
                "name": secrets.token_hex(16),
                "other": secrets.token_hex(16),
            }
            self._keep(state)
        if "token" not in state:
            blinding = BlindMessage(bytes.fromhex(state["blinded"]), int(state["inverse"], 16))
            request = TokenRequest(key, bytes.fromhex(state["message"]), blinding)
            while (answer := self._token(blinding.blinded))[0] != 200:
                self._wait(state)
            state["token"] = request.finish(answer[1]).to_text()
            self._keep(state)
        token = Token.from_text(state["token"])
        assert token is not None
        if "acknowledged" not in state:
            while self._report(token, self.number, state["name"]) not in (200, 201):
                self._wait(state)
            state["acknowledged"] = "yes"
            self._keep(state)
        if self.number % _CHEATS == 0 and "fraud" not in state:
            other = (1 << 15) + self.number
            while (status := self._report(token, other, state["other"])) not in (200, 201, 409):
                self._wait(state)
            state["fraud"] = str(status)
            self._keep(state)

    def _wait(self, state: dict[str, str]) -> None:
        """About a second until it tries again; how often it did is kept."""
        state["again"] = str(int(state.get("again", 0)) + 1)
        self._keep(state)
        time.sleep(0.5 + random.random())  # a pause, and no noise

    def _keep(self, state: dict[str, str]) -> None:
        new = self.place.with_suffix(f".{os.getpid()}")
        new.write_text(json.dumps(state), encoding="ascii")
        new.replace(self.place)

    def _token(self, blinded: bytes) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {self.code}", "Content-Type": "application/octet-stream"}
        return ask(self.issuer, f"/v1/questions/{QUESTION.fingerprint}/tokens", headers, blinded)

    def _report(self, token: Token, number: int, name: str) -> int:
        line = written(QUESTION.fingerprint, QUESTION.oracle.pack(np.array([number])))
        headers = {"Idempotency-Key": name, "Content-Type": "text/plain", HEADER: token.to_text()}
        return ask(self.shuffler, f"/v1/questions/{QUESTION.fingerprint}/reports", headers, line)[0]


def ask(port: int, path: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
    """Status and body of one request; (0, nothing) without an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIME)
    try:
        connection.request("POST", path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()
