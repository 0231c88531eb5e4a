"""The browser client: what it refuses, and the laws that its reports follow."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sourdine.local import (
    GRR,
    OLH,
    OUE,
    SUE,
    Duchi,
    HadamardResponse,
    Hybrid,
    Oracle,
    Piecewise,
    ProjectiveGeometry,
    Question,
    SquareWave,
    SubsetSelection,
)
from sourdine.local.rappor import BasicRappor
from sourdine.local.thresholds import thresholds
from sourdine.local.words import ALPHABET, WordTree
from sourdine.local.words.spelling import read, spell
from tests.collector.client import node
from tests.collector.parts import announced
from tests.laws import law_of
from tests.statistics import ALARM, fit

HISTOGRAMS = """
const { subtle } = globalThis.crypto;
async function stream(seed, number) {
  const key = await subtle.importKey('raw', new Uint8Array(32).fill(seed), 'AES-CTR', false, ['encrypt']);
  const counter = new Uint8Array(16);
  new DataView(counter.buffer).setUint32(4, number);
  const algorithm = { name: 'AES-CTR', counter, length: 64 };
  return new Uint8Array(await subtle.encrypt(algorithm, key, new Uint8Array(1 << 22)));
}
const out = [];
for (const { question, thresholds, value, count, seed } of given) {
  const { oracle } = await client.Question.read(question, { thresholds });
  const found = new Map(), margin = 1 << 16;
  let part = 0, bytes = await stream(seed, part), words = new client.Words(bytes);
  for (let i = 0; i < count; i += 1) {
    if (words.at + margin > bytes.length) {
      const left = bytes.slice(words.at), more = await stream(seed, part += 1);
      bytes = new Uint8Array(left.length + more.length);
      bytes.set(left);
      bytes.set(more, left.length);
      words = new client.Words(bytes);
    }
    const code = oracle.sample(value, words).reduce((sum, byte) => 256 * sum + byte, 0);
    found.set(code, (found.get(code) ?? 0) + 1);
  }
  out.push([...found]);
}
console.log(JSON.stringify(out));
"""
CASES: list[tuple[Oracle, float]] = [
    (GRR(epsilon=1, categories=5), 3),
    (GRR(epsilon=Fraction(7, 3), categories=300), 0),
    (OLH(epsilon=1, categories=7, trivial=False), 4),
    (OLH(epsilon=2, categories=9, groups=8), 8),
    (HadamardResponse(epsilon=1, categories=6, trivial=False), 5),
    (HadamardResponse(epsilon=3, categories=12, blocks=4), 7),
    (ProjectiveGeometry(epsilon=1, categories=12, order=3), 11),
    (SUE(epsilon=1, categories=6), 2),
    (OUE(epsilon=2, categories=7), 0),
    (SubsetSelection(epsilon=1, categories=7), 3),
    (Duchi(epsilon=1, lower=0, upper=10, cells=40), 0.0),
    (Piecewise(epsilon=1, lower=0, upper=1, cells=16), 0.3),
    (SquareWave(epsilon=2, lower=0, upper=1, cells=16), 0.9),
    (Hybrid(epsilon=3, lower=0, upper=1, cells=20), 0.37),
]


def histograms(count: int) -> list[np.ndarray]:
    """What the client draws for every case, as samples in any order."""
    given = [
        {
            "question": Question(name="law", oracle=oracle).to_json(),
            "thresholds": thresholds(oracle),
            "value": value,
            "count": count,
            "seed": place,
        }
        for place, (oracle, value) in enumerate(CASES)
    ]
    return [np.repeat(*np.array(found).T) for found in node.run(HISTOGRAMS, given, timeout=3600)]


@pytest.mark.parametrize("count", [3000, pytest.param(720_000, marks=pytest.mark.slow)])
def test_every_report_follows_its_law(count: int) -> None:
    """Ten million draws in the slow case, 14 times 720,000; a law of 5 % more epsilon is then rejected."""
    for (oracle, value), samples in zip(CASES, histograms(count), strict=True):
        assert len(samples) == count
        assert fit(samples, law_of(oracle, value)) > ALARM / len(CASES)
        more = Fraction(105, 100) if count > 10_000 else Fraction(3)
        wrong: Any = replace(oracle, epsilon=oracle.epsilon * more)  # type: ignore[type-var, attr-defined]
        assert fit(samples, law_of(wrong, value)) < ALARM, oracle


QUESTION = Question(name="way to work", oracle=GRR(epsilon=1, categories=3), labels=("foot", "bus", "métro"))
REFUSED = """
const told = [];
for (const { question, beside } of given) {
  try {
    await client.Question.read(question, beside);
    told.push('taken');
  } catch (problem) {
    told.push(problem instanceof client.SourdineError ? problem.code : String(problem));
  }
}
console.log(JSON.stringify(told));
"""


def told(*cases: Mapping[str, Any]) -> list[str]:
    """What the client says of questions."""
    given = [
        {
            "question": {**QUESTION.to_json(), **case.get("question", {})},
            "beside": {"thresholds": thresholds(QUESTION.oracle), **case.get("beside", {})},
        }
        for case in cases
    ]
    found: list[str] = node.run(REFUSED, given)
    return found


def test_what_was_changed_on_the_way_is_refused() -> None:
    """A collector that lies about epsilon, or sends probabilities of another, gets no answer."""
    other = thresholds(GRR(epsilon=8, categories=3))
    longer = {"truth": thresholds(QUESTION.oracle)["truth"] * 2}
    assert told(
        {},
        {"beside": {"thresholds": {}}},
        {"beside": {"thresholds": other}},
        {"beside": {"thresholds": longer}},
        {"beside": {"identity": "0" * 64}},
        {"beside": {"identity": QUESTION.identity}},
        {"question": {"oracle": {**QUESTION.oracle.to_json(), "epsilon": "8"}}},
        {"question": {"fingerprint": "0" * 16}},
        {"question": {"question": "way home"}},
        {"question": {"oracle": {**QUESTION.oracle.to_json(), "mechanism": "warner/1"}}},
        {"question": {"format": "sourdine local 3"}},
        {"question": {"more": 1}},
    ) == ["taken", "taken", *["changed"] * 3, "taken", *["changed"] * 3, "oracle", "refused", "refused"]


@pytest.mark.parametrize(
    "oracle",
    [
        {"mechanism": "grr/1", "epsilon": "0", "categories": 3},
        {"mechanism": "grr/1", "epsilon": "513", "categories": 3},
        {"mechanism": "grr/1", "epsilon": "1e3", "categories": 3},
        {"mechanism": "grr/1", "epsilon": "1/0", "categories": 3},
        {"mechanism": "grr/1", "epsilon": 1, "categories": 3},
        {"mechanism": "grr/1", "epsilon": "1", "categories": 1},
        {"mechanism": "grr/1", "epsilon": "1", "categories": "3"},
        {"mechanism": "olh/1", "epsilon": "1", "categories": 30, "groups": 6},
        {"mechanism": "hadamard/1", "epsilon": "1", "categories": 3, "blocks": 4},
        {"mechanism": "subset-selection/1", "epsilon": "1", "categories": 6, "size": 2},
        {"mechanism": "piecewise/1", "epsilon": "1", "lower": "1", "upper": "0", "cells": 8, "window": 3},
        {
            "mechanism": "piecewise/1",
            "epsilon": "1",
            "lower": "0",
            "upper": f"1/{10**310}",
            "cells": 8,
            "window": 3,
        },
        {"mechanism": "duchi/1", "epsilon": "1", "lower": "0", "upper": f"{10**320}", "cells": 8},
        {"mechanism": "basic-rappor/1", "categories": 3, "f": "1/2", "p": "3/4", "q": "1/2"},
    ],
    ids=str,
)
def test_parameters_that_no_oracle_has_are_refused(oracle: dict[str, Any]) -> None:
    """Even by a specification that fits its own fingerprint; subset selection lacks the plan of its sets."""
    script = """
    const { createHash } = await import('node:crypto');
    const sorted = (data) => data && typeof data === 'object' && !Array.isArray(data)
      ? Object.fromEntries(Object.keys(data).sort().map((key) => [key, sorted(data[key])])) : data;
    const body = sorted({ format: 'sourdine local 2', question: 'x', labels: [], oracle: given });
    const fingerprint = createHash('sha256').update(JSON.stringify(body)).digest('hex').slice(0, 16);
    try { await client.Question.read({ ...body, fingerprint }); console.log('"taken"'); }
    catch (problem) { console.log(JSON.stringify(problem.code ?? String(problem))); }
    """
    assert node.run(script, oracle) == "refused"


def test_answers_outside_the_domain_are_refused() -> None:
    script = """
    const question = await client.Question.read(given);
    const reporter = await client.Reporter.create();
    const told = [];
    for (const answer of ['foot', 'FOOT', 0, null, undefined]) {
      try { told.push(question.value(answer)); } catch (problem) { told.push(problem.code); }
    }
    for (const value of [0, 2, 3, -1, 1.5, '1', NaN]) {
      try { told.push((await reporter.row(question, value)).length); }
      catch (problem) { told.push(problem.code); }
    }
    console.log(JSON.stringify(told));
    """
    given = QUESTION.to_json()
    assert node.run(script, given) == [0, *["refused"] * 4, 1, 1, *["refused"] * 5]


def test_a_secret_cannot_be_read() -> None:
    script = """
    const { secret } = await client.Reporter.create();
    const found = [secret.extractable];
    for (const format of ['raw', 'jwk']) {
      try { await crypto.subtle.exportKey(format, secret); found.push('read'); } catch { found.push('kept'); }
    }
    try { await client.Reporter.from(new Uint8Array(15)); found.push('taken'); }
    catch { found.push('refused'); }
    console.log(JSON.stringify(found));
    """
    assert node.run(script) == [False, "kept", "kept", "refused"]


def test_the_same_answer_has_the_same_report_and_another_question_another() -> None:
    oracle = OUE(epsilon=1, categories=200)
    pair = [Question(name=name, oracle=oracle).to_json() for name in ("one", "other")]
    script = """
    const reporter = await client.Reporter.create(), rows = [];
    for (const file of [given[0], given[0], given[1]]) {
      rows.push(Buffer.from(await reporter.row(await client.Question.read(file), 7)).toString('hex'));
    }
    console.log(JSON.stringify(rows));
    """
    first, again, other = node.run(script, pair)
    assert first == again != other


def test_probabilities_are_certified_at_any_precision() -> None:
    """The client's own numbers against Python's at 256 bits, from the least epsilon to the largest."""
    epsilons = [Fraction(1, 1 << 20), Fraction(1, 3), Fraction(355, 113), Fraction(100), Fraction(512)]
    oracles: list[Oracle] = [kind(epsilon=e, categories=5) for kind in (GRR, SUE, OUE, OLH) for e in epsilons]
    given = [
        {"question": Question(name="p", oracle=each).to_json(), "beside": {"thresholds": thresholds(each)}}
        for each in oracles
    ]
    assert node.run(REFUSED, json.loads(json.dumps(given))) == ["taken"] * len(oracles)


OPENED = """
const told = [];
for (const [change, mostEpsilon] of given.cases) {
  const announcement = JSON.stringify({ ...JSON.parse(given.file.announcement), ...change });
  try { await client.openAnnouncement({ ...given.file, announcement }, { mostEpsilon }); told.push('taken'); }
  catch (problem) { told.push(problem.code ?? String(problem)); }
}
console.log(JSON.stringify(told));
"""


def test_the_price_is_reckoned_on_the_device() -> None:
    """What a collector says of it is not believed, nor are limits that are no numbers."""
    cases: list[tuple[dict[str, Any], float | None]] = [
        ({}, None),
        ({}, 1.0),
        ({}, 0.5),
        ({"price": {"report": "1", "device": "0.1"}}, 0.5),
        ({"price": {"report": "1", "device": ""}}, 0.5),
        ({"price": {"report": "1", "device": None}}, 0.5),
        ({"price": {"report": "1", "device": []}}, 0.5),
        ({"price": {"report": "1", "device": "-1"}}, 0.5),
        ({"price": {"report": "1", "device": "0.1"}}, None),
        ({"answers": 2}, 2.0),
        ({"secret_days": 8}, None),
        ({"answers": "many"}, None),
        ({"answers": None}, None),
        ({"answers": 0}, None),
        ({"answers": 1.5}, None),
        ({"secret_days": 0.001}, None),
        ({"period": "second"}, None),
        ({"closes": "9"}, None),
    ]
    file = json.loads(announced(QUESTION).to_text())
    assert node.run(OPENED, {"file": file, "cases": cases}) == [
        *["taken"] * 2,
        *["price"] * 9,
        *["refused"] * 7,
    ]


@pytest.mark.parametrize(
    "oracle",
    [
        GRR(epsilon=Fraction(1, 3), categories=5),
        SUE(epsilon=1, categories=4),
        OLH(epsilon=2, categories=9),
        HadamardResponse(epsilon=1, categories=6),
        SubsetSelection(epsilon=1, categories=7),
        ProjectiveGeometry(epsilon=1, categories=9),
        Duchi(epsilon=Fraction(7, 5), lower=-3, upper=5),
        Piecewise(epsilon=1, lower=0, upper=10),
        Hybrid(epsilon=2, lower=0, upper=1),
        BasicRappor(categories=5, f=Fraction(1, 3), p=Fraction(1, 4), q=Fraction(3, 4)),
    ],
    ids=str,
)
def test_the_price_that_is_announced_is_the_one_reckoned(oracle: Oracle) -> None:
    signed = announced(Question(name="x", oracle=oracle), secret_days=10, answers=3)
    price = signed.announcement.device_epsilon
    cases: list[Any] = [({}, None), ({}, price * 1.0001), ({"price": {"device": str(price * 0.9999)}}, None)]
    told = node.run(OPENED, {"file": json.loads(signed.to_text()), "cases": cases})
    assert told == ["taken", "taken", "price"]


def test_days_before_a_question_opens_do_not_age_a_secret() -> None:
    """Else a device that saw it early would have one secret more than its price counts."""
    script = """
    const terms = { opens: '2026-11-10', secret_days: 30 };
    const at = (day) => Date.parse(day);
    console.log(JSON.stringify([
      client.isOld('2026-10-15', terms, at('2026-11-20')),
      client.isOld('2026-10-15', terms, at('2026-12-10')),
      client.isOld('2026-11-12', terms, at('2026-12-11')),
      client.isOld('2026-11-12', terms, at('2026-12-12')),
      client.isOld('2026-10-15', { ...terms, secret_days: 0 }, at('2036-12-10')),
    ]));
    """
    assert node.run(script) == [False, True, False, True, False]


TEXTS = [
    *(
        "",
        "ß",
        "ẞ",
        "İSTANBUL",
        "ΟΔΟΣ",
        "ΟΔΟΣ ΟΔΟΣ.",
        "Σ",
        "e\u0301",
        "\u00e9",
        "ﬁsh",
        "Å",
        "\u212b",
        "😀",
        "a😀b",
    ),
    *(
        "👨\u200d👩\u200d👧",
        "ǅ",
        "ΐ",
        "a" * 40,
        "ﷺ" * 3,
        "가",
        "①Ⅷ",
        "\0",
        "a\u200bb",
        "\u0345Σ",
        "\ud83d",
        "\ude00x",
    ),
    *("a\ud800b", "ΑΣ\u0301Α", "ΑΣ\u0301", "Zoë!", "o'Neill-Smith"),
]


def test_python_and_the_browser_make_the_same_words_of_any_text() -> None:
    """Composed or not, of letters that grow when they are made small, of pairs and halves of surrogates."""
    alphabets = [ALPHABET, "abcdefghijklmnopqrstuvwxyzßäöü", "αβγδεζηθικλμνξοπρσςτυφχψω"]
    oracles = [WordTree(epsilon=1, alphabet=each) for each in alphabets]
    script = """
    const read = (file) => client.Question.read(file);
    const questions = await Promise.all(given.questions.map(read));
    console.log(JSON.stringify(questions.map(({ oracle }) => given.texts.map((text) => oracle.known(text)))));
    """
    questions = [Question(name="u", oracle=each).to_json() for each in oracles]
    texts = [*TEXTS, *(chr(code) for code in [*range(1, 0x600), *range(0x1E00, 0x2200)])]
    told = node.run(script, {"questions": questions, "texts": texts})
    for oracle, words in zip(oracles, told, strict=True):
        own = spell(texts, oracle.alphabet, 12)
        assert words == [read(parts, oracle.alphabet) for parts in own]


USE = """
import { Client, Question, Reporter, SourdineError, Words, openAnnouncement, isOld } from "./sourdine.js";
import type { QuestionFile, WaitingSubmission } from "./sourdine.js";
const client: Client = await Client.open({ collector: "https://a.example", pins: ["3f"], mostEpsilon: 2 });
const question: Question = await client.question("c88f4840a05fe0d0");
const stop: () => void = client.keepSending();
const { body, sent, row } = await client.answer(question, "bicycle");
const { stored, kept, dropped } = await sent;
const count: number = stored + kept + dropped.length + body.length + row.length;
const waiting: readonly WaitingSubmission[] = await client.waiting();
const reporter = await Reporter.from(new Uint8Array(16));
const line: string = question.line(await reporter.row(question, question.value(3)));
const bytes: Uint8Array = question.oracle.sample(question.oracle.known(1), new Words(new Uint8Array(64)));
const old: boolean = isOld("2026-11-17", { opens: "2026-11-17", secret_days: 3 }, Date.now());
try {
  const file = { format: "sourdine announcement 1", announcement: "", signatures: [] } as const;
  await openAnnouncement(file, { pins: [] });
} catch (problem) {
  if (problem instanceof SourdineError && problem.code === "waiting") stop();
}
// @ts-expect-error: an answer is needed
await client.answer(question);
// @ts-expect-error: a name is no number
const wrong: number = question.name;
// @ts-expect-error: there is no such code
const code: SourdineError["code"] = "nonsense";
export { count, waiting, line, bytes, old, wrong, code };
export type { QuestionFile };
"""


def test_the_types_name_what_the_module_has() -> None:
    text = (node.CLIENT / "sourdine.d.ts").read_text(encoding="utf-8")
    declared = set(re.findall(r"^export (?:class|function|const) (\w+)", text, re.MULTILINE))
    there = set(node.run("console.log(JSON.stringify(Object.keys(client)));", []))
    assert declared <= there


@pytest.mark.slow
def test_the_types_compile(tmp_path: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not here")
    (tmp_path / "package.json").write_text(json.dumps({"type": "module"}))
    made = subprocess.run(
        [npm, "install", "--no-audit", "--no-fund", "typescript"], cwd=tmp_path, check=False
    )
    if made.returncode:
        pytest.skip("npm has no typescript here")
    shutil.copy(node.CLIENT / "sourdine.d.ts", tmp_path)
    (tmp_path / "use.ts").write_text(USE, encoding="utf-8")
    options = "--noEmit --strict --target es2022 --module esnext --moduleResolution bundler --lib es2022,dom"
    command = [str(tmp_path / "node_modules/.bin/tsc"), *options.split(), "use.ts"]
    compiled = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert (compiled.returncode, compiled.stdout) == (0, "")
