"""How the published vectors of the browser client are made: by Python's own samplers. No test runs this.

    python -m tests.collector.client.make_vectors

`reports` are those of a device with a secret, as it sends them; `draws` take their words from a stream that
is written down, chosen so that 64 bits do not settle them.
"""

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from sourdine.local import (
    GRR,
    OLH,
    OUE,
    SUE,
    Duchi,
    HadamardResponse,
    Hybrid,
    Memo,
    Oracle,
    Piecewise,
    ProjectiveGeometry,
    Question,
    SquareWave,
    SubsetSelection,
)
from sourdine.local.memoization import KeyedBits
from sourdine.local.rappor import BasicOneTimeRappor, BasicRappor, Device
from sourdine.local.rappor.oracle import RapporOracle
from sourdine.local.thresholds import thresholds
from sourdine.local.words import WordMemo, WordTree
from sourdine.testing import ScriptedBits

FILE = Path(__file__).parents[3] / "src/sourdine/collector/client/vectors.json"
_ONES, _REPORTS, _TAIL = (1 << 64) - 1, 5, 400

ORACLES: list[Oracle] = [
    GRR(epsilon=1, categories=2),
    GRR(epsilon=Fraction(7, 3), categories=7),
    GRR(epsilon=Fraction(1, 2), categories=70_000),
    OLH(epsilon=1, categories=10),
    OLH(epsilon=1, categories=10, trivial=False),
    OLH(epsilon=2, categories=1000, trivial=False),
    OLH(epsilon=Fraction(1, 2), categories=30, groups=9, trivial=False),
    OLH(epsilon=3, categories=50, groups=25, trivial=False),
    HadamardResponse(epsilon=1, categories=10),
    HadamardResponse(epsilon=1, categories=10, trivial=False),
    HadamardResponse(epsilon=1, categories=2, trivial=False),
    HadamardResponse(epsilon=3, categories=100, trivial=False),
    ProjectiveGeometry(epsilon=1, categories=1000),
    ProjectiveGeometry(epsilon=Fraction(1, 3), categories=20, order=9),
    SUE(epsilon=1, categories=6),
    SUE(epsilon=Fraction(3, 7), categories=100),
    OUE(epsilon=1, categories=6),
    OUE(epsilon=512, categories=100),
    SubsetSelection(epsilon=1, categories=2),
    SubsetSelection(epsilon=1, categories=6),
    SubsetSelection(epsilon=1, categories=300),
    Duchi(epsilon=1, lower=-1, upper=1),
    Duchi(epsilon=Fraction(1, 3), lower=Fraction(1, 7), upper=100, cells=1 << 24),
    Piecewise(epsilon=1, lower=0, upper=Fraction(1, 3)),
    SquareWave(epsilon=1, lower=0, upper=1),
    Hybrid(epsilon=1, lower=0, upper=1),
    BasicRappor(categories=8, f=Fraction(1, 2), p=Fraction(1, 2), q=Fraction(3, 4)),
    BasicRappor(categories=100, f=Fraction(1, 3), p=Fraction(1, 5), q=Fraction(2, 3)),
    BasicOneTimeRappor(categories=9, f=Fraction(1, 2)),
    WordTree(epsilon=1),
    WordTree(epsilon=Fraction(5, 2), letters=6),
    WordTree(epsilon=4, alphabet="äößabcдж"),
    WordTree(epsilon=Fraction(1, 3), letters=3, groups=2),
]
WORDS = [
    "tea",
    "Crème brûlée",
    "",
    "o'neill-smith & sons",
    "ÄÖÜ ß ﬁ",
    "Дождь",
    "ΣΑΣ 12",
    "zzzzzzzzzzzzzzz",
    "İstanbul",
]
AHEAD: dict[type[Oracle], int] = {
    GRR: 0,
    HadamardResponse: 0,
    SubsetSelection: 0,
    ProjectiveGeometry: 0,
    OLH: 1,
    Duchi: 1,
    WordTree: 5,
}
"""How many words an oracle draws before it compares one with thresholds."""


def answer(oracle: Oracle, dice: random.Random) -> Any:
    """Any answer; numbers a little beyond the bounds too."""
    if isinstance(oracle, WordTree):
        return dice.choice(WORDS)
    if hasattr(oracle, "categories"):
        return dice.randrange(oracle.categories)
    lower, upper = float(oracle.lower), float(oracle.upper)  # type: ignore[attr-defined]
    return dice.uniform(lower - (upper - lower) / 8, upper + (upper - lower) / 8)


def report(question: Question, dice: random.Random) -> dict[str, Any]:
    """One answer of a device, and what it sends."""
    secret, value = dice.randbytes(dice.choice([16, 32, 100])), answer(question.oracle, dice)
    if isinstance(question.oracle, RapporOracle):
        fresh = dice.randbytes(32)
        device = Device(oracle=question.oracle, secret=secret, purpose=question.identity)
        row = device.report(value, KeyedBits(fresh))
        return {"secret": secret.hex(), "fresh": fresh.hex(), "value": value, "row": row.tobytes().hex()}
    if isinstance(question.oracle, WordTree):
        row = WordMemo(question, secret).row(value)
        return {"secret": secret.hex(), "value": value, "row": row.tobytes().hex()}
    return {"secret": secret.hex(), "value": value, "row": Memo(question, secret).row(value).tobytes().hex()}


def hard(oracle: Oracle, laws: dict[str, list[str]], dice: random.Random) -> Iterator[list[int]]:
    """Words that 64 bits do not settle: on a threshold, beside it, and on it for 128 bits."""
    tail = [dice.getrandbits(64) for _ in range(_TAIL)]
    if isinstance(oracle, SUE | OUE):  # every coin agrees with its probability for 64 digits
        yield [_ONES] * 64 * -(-oracle.width // 8) + [dice.getrandbits(64) for _ in range(400)]
    ahead = AHEAD.get(type(oracle))
    if ahead is None:
        return
    whole = int(dice.choice(laws[next(iter(laws))]), 16)
    for word, more in ((whole >> 192, []), ((whole >> 192) + 1, []), (whole >> 192, [whole >> 128 & _ONES])):
        before = [dice.getrandbits(64) for _ in range(ahead)]
        yield [*before, word >> 48, word << 16 & _ONES, *more, *tail]


def draw(oracle: Oracle, words: list[int], dice: random.Random) -> dict[str, Any]:
    value = answer(oracle, dice)
    bits = ScriptedBits(words)
    row = oracle.pack(oracle.sample(np.array([value]), bits))
    if not bits.left:
        raise ValueError("The stream is too short for this draw: lengthen its tail.")
    used = words[: len(words) - bits.left]
    return {
        "stream": b"".join(w.to_bytes(8, "little") for w in used).hex(),
        "value": value,
        "row": row.tobytes().hex(),
    }


def vectors() -> dict[str, Any]:
    """The whole file."""
    dice = random.Random(1)
    cases = []
    for oracle in ORACLES:
        question = Question(name="Wie kommst du zur Arbeit? – métro €", oracle=oracle)
        laws = thresholds(oracle)
        cases.append(
            {
                "question": question.to_json(),
                "identity": question.identity,
                "thresholds": laws,
                "reports": [report(question, dice) for _ in range(_REPORTS)],
                "draws": [draw(oracle, words, dice) for words in hard(oracle, laws, dice)],
            }
        )
    return {"format": "sourdine vectors 1", "cases": cases}


if __name__ == "__main__":
    FILE.write_text(json.dumps(vectors(), indent=1, ensure_ascii=True) + "\n", encoding="ascii")
