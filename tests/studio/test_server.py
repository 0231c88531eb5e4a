"""Studio as a server: it ends when it is told to, and cuts off nothing that was begun."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("uvicorn")
from sourdine.studio.desk import Desk, JobState
from sourdine.studio.folder import Folder
from sourdine.studio.server import serve


@pytest.mark.skipif(os.name != "posix", reason="Windows sends no such signals")
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_waits_for_what_was_begun(tmp_path: Path, name: str) -> None:
    number, late, told = getattr(signal, name), list[int](), list[str]()
    go_on = threading.Event()

    def tell(words: str) -> None:
        told.append(words)
        if len(told) == 1:
            threading.Thread(target=_send, args=(number,)).start()
        else:
            go_on.set()

    desk = Desk(Folder.of(tmp_path), lambda spec, place, watch: None)
    before = signal.signal(number, lambda each, frame: late.append(each))  # else it would end the tests
    try:
        job = desk.jobs.begin("a", "b", lambda job: _wait(go_on))
        serve(desk, browser=False, tell=tell)
    finally:
        go_on.set()
        signal.signal(number, before)
    assert job.state is JobState.DONE
    assert "under way" in told[1]
    assert late == []  # nothing was sent on, which would have ended the program


def _send(number: int) -> None:
    time.sleep(0.3)
    os.kill(os.getpid(), number)


def _wait(go_on: threading.Event) -> None:
    assert go_on.wait(60)
