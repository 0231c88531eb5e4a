"""A browser with a token, in Chromium, against an issuer and a collector that run."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives import serialization

from sourdine.collector.blocks import recount
from sourdine.collector.issuer import CodeStore
from sourdine.collector.period import KeptPeriod
from sourdine.collector.settings import open_store
from sourdine.collector.tokens.blind import new_key, public_text
from tests.collector.client.serving import WAY
from tests.collector.client.test_vectors import folder
from tests.collector.parts import announced

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["folder"]
CODES = ["0" * 31 + "1", "0" * 31 + "2"]
ANSWER = """async ([collector, issuer, fingerprint, code, label]) => {
  const { Client } = await import(new URL("sourdine.js", location));
  const client = await Client.open({ collector });
  const question = await client.question(fingerprint);
  const refused = await client.answer(question, label).catch((problem) => problem.code);
  const nowhere = { issuer: "http://127.0.0.1:1", code };
  const lost = await client.fetchToken(question, nowhere).catch((problem) => problem.name);
  await client.fetchToken(question, { issuer, code });
  const { sent } = await client.answer(question, label);
  return [refused, lost, await sent];
}"""


@contextmanager
def process(folder: Path, *words: object) -> Iterator[str]:
    """A part of the chain, and where it listens."""
    command = [sys.executable, "-m", "sourdine", "collect", *map(str, words), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=folder, env=os.environ.copy()) as made:
        assert made.stdout is not None
        try:
            yield next(line for line in made.stdout if b" on http" in line).split()[-1].decode()
        finally:
            made.terminate()


@pytest.mark.slow
def test_a_page_gets_a_token_and_spends_it(page: "Page", folder: str, tmp_path: Path) -> None:
    key = new_key()
    form = serialization.PrivateFormat.PKCS8
    text = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (tmp_path / "key.pem").write_bytes(text)
    (tmp_path / "codes.txt").write_text("\n".join(CODES) + "\n")
    signed = announced(WAY, period=KeptPeriod.WHOLE, tokens=public_text(key.public_key()))
    (tmp_path / "q.json").write_text(signed.to_text(), encoding="utf-8")
    issue = ("issue", "q.json", "--key", "key.pem", "--codes", "codes.txt", "--origin", folder)
    with (
        process(tmp_path, *issue) as issuer,
        process(tmp_path, "serve", "q.json", "--public-results", "--origin", folder) as collector,
    ):
        page.goto(f"{folder}/vectors.json")
        answer = page.evaluate(ANSWER, [collector, issuer, WAY.fingerprint, CODES[0], WAY.labels[1]])
        assert answer == ["token", "TypeError", {"stored": 1, "received": 0, "kept": 0, "dropped": []}]
    store, codes = open_store(str(tmp_path / "reports.db")), CodeStore(tmp_path / "codes.db")
    assert recount(store, 1, WAY).reports == 1
    assert codes.used == 1
