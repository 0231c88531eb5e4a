from pathlib import Path

import pytest

from sourdine.cli import show
from sourdine.core.errors import InvalidParameter


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


def test_cells_are_not_taken_for_markup(capsys: pytest.CaptureFixture[str]) -> None:
    show.table(("name",), [("[/wrong] [bold]x[/bold]",)])
    assert "[/wrong] [bold]x[/bold]" in capsys.readouterr().out


def test_one_line_keeps_letters_and_drops_commands() -> None:
    assert show.one_line("é ε\n\t\x1b[31m\u202e") == "é ε   [31m "
