"""The ledger of a device: two processes never both pay for the last answer, and damaged files are refused."""

import json
import os
from fractions import Fraction
from pathlib import Path

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.questionnaire import DeviceLedger
from sourdine.local.questionnaire.payments import Claim, Paid

HALF = Fraction(1, 2)
ONE, OTHER = Claim("q", "one", "01", HALF), Claim("q", "other", "02", HALF)


def test_what_stands_after_each_answer() -> None:
    ledger = DeviceLedger()
    assert ledger.settle([ONE], 1) == [Paid(("one",), "01", HALF)]
    assert ledger.settle([OTHER], 1) == [Paid(("one",), "01", HALF)]
    assert ledger.settle([OTHER], 2) == [Paid(("one", "other"), "02", HALF)]
    assert ledger.settle([ONE], 2) == [Paid(("one", "other"), "01", HALF)]
    assert ledger.settle([Claim("q", "third", "03", HALF), Claim("r", "one", "04", Fraction(2))], 2) == [
        Paid(("one", "other"), "01", HALF),
        Paid(("one",), "04", Fraction(2)),
    ]
    assert ledger.spent == 2 * HALF + 2


def test_a_ledger_that_was_opened_before_another_paid_sees_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    first, second = DeviceLedger.open(path), DeviceLedger.open(path)
    first.settle([ONE], 1)
    assert second.settle([OTHER], 1) == [Paid(("one",), "01", HALF)]
    assert DeviceLedger.open(path).paid == first.paid
    path.unlink()  # what this one still knows is not paid for anew
    assert first.settle([OTHER], 1) == [Paid(("one",), "01", HALF)]


def _pay(path: Path, number: int) -> str:
    return DeviceLedger.open(path).settle([Claim("q", str(number), f"{number:02x}", HALF)], 1)[0].report


def test_processes_at_once_pay_for_one_answer_together(tmp_path: Path) -> None:
    """Each forked process has another answer; all must report the same one."""
    path, places = tmp_path / "ledger.json", range(6)
    go, begin = os.pipe()
    pipes = []
    for number in places:
        back, front = os.pipe()
        if os.fork() == 0:
            os.read(go, 1)
            os.write(front, _pay(path, number).encode())
            os._exit(0)
        os.close(front)
        pipes.append(back)
    os.write(begin, bytes(len(places)))
    told = {os.read(pipe, 9) for pipe in pipes}
    for _ in places:
        os.wait()
    for pipe in (*pipes, go, begin):
        os.close(pipe)
    assert len(told) == 1
    assert len(DeviceLedger.open(path).paid["q"].answers) == 1


@pytest.mark.parametrize(
    "text",
    [
        "[1",
        "{}",
        '{"q": ["one"]}',
        '{"format": "sourdine device ledger 1", "questions": []}',
        '{"format": "sourdine device ledger 1", "questions": {"q": {"answers": [1], "report": "01"}}}',
        '{"format": "sourdine device ledger 1", "questions": {"q": {"answers": ["a"], "report": "0"}}}',
        '{"format": "sourdine device ledger 1", "questions": {"q": {"answers": ["a"], "report": ""}}}',
        *(
            '{"format": "sourdine device ledger 2", "questions": '
            f'{{"q": {{"answers": ["a"], "report": "01", "epsilon": {epsilon}}}}}}}'
            for epsilon in ("1", '"1/0"', '"-1"', '"x"', "[]")
        ),
    ],
)
def test_a_damaged_ledger_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(text)
    with pytest.raises(InvalidParameter, match="cannot be read"):
        DeviceLedger.open(path)
    with pytest.raises(InvalidParameter, match="cannot be read"):
        DeviceLedger(path).settle([ONE], 1)


def test_a_ledger_without_prices_asks_for_them_and_keeps_them(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    old = {"q": {"answers": ["a", "b"], "report": "01"}, "r": {"answers": ["a"], "report": "02"}}
    path.write_text(json.dumps({"format": "sourdine device ledger 1", "questions": old}))
    ledger = DeviceLedger.open(path)
    ledger.price({"q": HALF, "other": Fraction(9)})
    with pytest.raises(InvalidParameter, match="price"):
        _ = ledger.spent
    DeviceLedger.open(path).price({"r": Fraction(1)})
    ledger.settle([Claim("s", "a", "03", Fraction(3))], 1)
    assert DeviceLedger.open(path).spent == ledger.spent == 2 * HALF + 1 + 3
