from pathlib import Path

import pytest

from sourdine.cli.anonymity.options import bar
from sourdine.cli.shared import show
from sourdine.cli.train.progress import training_bar
from sourdine.core.errors import InvalidParameter
from sourdine.learning import Progress


def test_a_place_is_refused_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    show.check_place(None)
    show.check_place(tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidParameter, match="is a folder"):
        show.check_place(tmp_path)
    with pytest.raises(InvalidParameter, match="does not exist"):
        show.check_place(tmp_path / "none" / "page.html")
    monkeypatch.setattr("os.access", lambda path, mode: False)
    for refused in (show.check_place, show.check_folder):
        with pytest.raises(InvalidParameter, match="You have no right to write"):
            refused(tmp_path / "page")


def test_a_page_goes_over_pages_only(tmp_path: Path) -> None:
    show.check_page(None)
    for name in ("page.html", "page.HTM"):
        (tmp_path / name).write_text("a page", encoding="utf-8")
        show.check_page(tmp_path / name)
    for name in ("people.csv", "people.ledger", "page"):
        with pytest.raises(InvalidParameter, match=r"Name a file that ends in \.html\."):
            show.check_page(tmp_path / name)
    with pytest.raises(InvalidParameter, match="is a folder"):
        show.check_page(tmp_path)


def test_cells_are_not_taken_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show.table(("name",), [("[/wrong] [bold]x[/bold]",)])
    assert "[/wrong] [bold]x[/bold]" in capsys.readouterr().out


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(show, "time", made)
    return made


def test_long_work_is_told_in_plain_lines_where_there_is_no_terminal(
    clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = []
    for thing in show.progress("reading", range(30)):  # a second each
        taken.append(thing)
        clock.now += 1
    assert taken == list(range(30))
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == "reading: 10 of 30\nreading: 20 of 30\n"


def test_short_work_is_not_told(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in show.progress("reading", range(1000)):
        clock.now += 0.0099
    assert capsys.readouterr().err == ""


def test_a_step_that_takes_long_is_told_once(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in show.progress("reading", range(3)):
        clock.now += 60
    assert capsys.readouterr().err == "reading: 1 of 3\nreading: 2 of 3\n"


def test_training_is_told_in_plain_lines(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with training_bar("training") as watch:
        watch(Progress(step=1, steps=9, epoch=0, epsilon=0.5, accuracy=0.25))
        clock.now += 10
        watch(Progress(step=2, steps=9, epoch=0, epsilon=0.6))
        watch(Progress(step=3, steps=9, epoch=0, epsilon=0.7))
    assert capsys.readouterr().err == "training: step 2 of 9, epsilon 0.6 so far, accuracy 25.00 %\n"


def test_a_share_done_is_told_in_plain_lines(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with bar("searching") as tell:
        tell(0.1)
        clock.now += 10
        tell(0.5)
    assert capsys.readouterr().err == "searching: 50 %\n"


def test_one_line_keeps_letters_and_drops_commands() -> None:
    assert show.one_line("é ε\n\t\x1b[31m\u202e") == r"é ε\n\t\x1b[31m\u202e"
