"""A collector asked for words: its page and its estimates tell those that stand out."""

import asyncio
import json
from pathlib import Path

import numpy as np

from sourdine.collector.results import StoreResults
from sourdine.local import Question
from sourdine.local.words import WordTree
from sourdine.testing import SeededBits
from tests.collector.parts import announced, new_store, running, settings_of, submission

SNACK = Question(name="snack", oracle=WordTree(epsilon=6, letters=3))


def test_words_are_shown_and_searched_for_again_only_when_reports_grew(tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "r.db")
    store = new_store(settings.store, announced(SNACK))
    oracle = SNACK.oracle
    rows = oracle.pack(oracle.sample(np.array(["nut"] * 300 + ["pie"] * 200), SeededBits(1)))
    from sourdine.local.lines import written

    store.write([submission(written(SNACK.fingerprint, rows))])

    async def ask() -> tuple[dict[str, object], bytes]:
        async with running(settings) as client:
            answer = await client.ask("GET", f"/v1/questions/{SNACK.fingerprint}/estimates")
            page = await client.ask("GET", f"/questions/{SNACK.fingerprint}")
            return json.loads(answer.body), page.body

    content, page = asyncio.run(ask())
    assert isinstance(content["words"], list)
    assert [each["word"] for each in content["words"]] == ["nut", "pie"]
    assert content["reports"] == 500
    assert b"nut" in page
    results = StoreResults(settings)
    (question,) = results.questions()
    assert isinstance(oracle, WordTree)
    first = results.findings(question, oracle, "2026-11-17")
    assert results.findings(question, oracle, "2026-11-17") is first
    store.write([submission(written(SNACK.fingerprint, rows[:20]))])
    assert results.findings(question, oracle, "2026-11-17").reports == 520
    results.close()
