"""The ledger of a device: two processes never both pay for the last answer, and damaged files are refused."""

import os
from pathlib import Path

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.questionnaire.payments import Claim, DeviceLedger, Paid

ONE, OTHER = Claim("q", "one", "01"), Claim("q", "other", "02")


def test_what_stands_after_each_answer() -> None:
    ledger = DeviceLedger()
    assert ledger.settle([ONE], 1) == [Paid(("one",), "01")]
    assert ledger.settle([OTHER], 1) == [Paid(("one",), "01")]
    assert ledger.settle([OTHER], 2) == [Paid(("one", "other"), "02")]
    assert ledger.settle([ONE], 2) == [Paid(("one", "other"), "01")]
    assert ledger.settle([Claim("q", "third", "03"), Claim("r", "one", "04")], 2) == [
        Paid(("one", "other"), "01"),
        Paid(("one",), "04"),
    ]
    assert (ledger.answers(["q"]), ledger.answers(["q", "r", "none"])) == (2, 3)


def test_a_ledger_that_was_opened_before_another_paid_sees_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    first, second = DeviceLedger.open(path), DeviceLedger.open(path)
    first.settle([ONE], 1)
    assert second.settle([OTHER], 1) == [Paid(("one",), "01")]
    assert DeviceLedger.open(path).paid == first.paid
    path.unlink()  # what this one still knows is not paid for anew
    assert first.settle([OTHER], 1) == [Paid(("one",), "01")]


def _pay(path: Path, number: int) -> str:
    return DeviceLedger.open(path).settle([Claim("q", str(number), f"{number:02x}")], 1)[0].report


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
    ],
)
def test_a_damaged_ledger_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "ledger.json"
    path.write_text(text)
    with pytest.raises(InvalidParameter, match="cannot be read"):
        DeviceLedger.open(path)
    with pytest.raises(InvalidParameter, match="cannot be read"):
        DeviceLedger(path).settle([ONE], 1)
