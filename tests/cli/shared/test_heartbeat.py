import time
from collections.abc import Callable

import pytest

from sourdine.cli.shared import show
from sourdine.cli.shared.heartbeat import HEARTBEAT, Heartbeat, ask_passphrase

SOON = 0.02


def tell(text: str) -> None:
    show.line(text, aside=True)


@pytest.fixture
def hear(capsys: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """All that was said on stderr, once these words were: how long that takes is not asserted."""

    def said(words: str = "") -> str:
        heard = capsys.readouterr().err
        while words not in heard:
            time.sleep(SOON / 4)
            heard += capsys.readouterr().err
        return heard

    return said


def test_silent_work_says_that_it_goes_on(hear: Callable[[str], str]) -> None:
    with Heartbeat(SOON, SOON).working(tell):
        hear("at work, 0 s so far\nat work, 0 s so far\n")


def test_it_says_what_is_under_way(hear: Callable[[str], str]) -> None:
    heart = Heartbeat(SOON, SOON)
    with heart.working(tell):
        heart.doing("reading \x1b[31mthe table: 0 of 1")
        assert "\x1b" not in hear("the table: 0 of 1, 0 s so far")


def test_quick_work_says_nothing(hear: Callable[[str], str]) -> None:
    with Heartbeat(3600.0).working(tell):
        pass
    assert hear("") == ""


def test_it_is_quiet_while_a_bar_moves_or_somebody_is_awaited(hear: Callable[[str], str]) -> None:
    heart = Heartbeat(SOON, SOON)
    with heart.working(tell), heart.quiet():
        time.sleep(4 * SOON)
    assert hear("") == ""


def test_whoever_was_told_just_now_is_not_told_again(hear: Callable[[str], str]) -> None:
    heart = Heartbeat(3600.0)
    heart.spoke()
    with heart.working(tell):
        heart.spoke()
    assert hear("") == ""


def test_progress_keeps_what_is_under_way_for_it() -> None:
    for thing in show.progress("reading", ["one", "two"]):
        assert HEARTBEAT._words(3.2) == f"reading: {'01'[thing == 'two']} of 2, 3 s so far"
    assert HEARTBEAT._words(0.0) == "at work, 0 s so far"


def test_a_passphrase_is_asked_in_quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def prompt(text: str, **how: object) -> str:
        asked.append((HEARTBEAT._silent, how))
        return "word"

    monkeypatch.setattr("typer.prompt", prompt)
    assert ask_passphrase(twice=True) == "word"
    assert asked == [(1, {"hide_input": True, "confirmation_prompt": True})]
