"""The script of charts: made once, kept for its owner, and never read from where others can write."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import vl_convert

from sourdine.report.library import chart_library

pytestmark = pytest.mark.skipif(os.name == "nt", reason="rights of files are those of POSIX")


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """How often it was made, in an empty cache."""
    calls: list[str] = []

    def bundle(snippet: str) -> str:
        calls.append(snippet)
        return "window.vegaEmbed = 1;"

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(vl_convert, "javascript_bundle", bundle)
    chart_library.cache_clear()
    yield calls
    chart_library.cache_clear()


def _again() -> str:
    """As a new process asks for it."""
    chart_library.cache_clear()
    return chart_library()


def _kept(cache: Path) -> Path:
    (kept,) = (cache / "sourdine").iterdir()
    return kept


def test_it_is_made_once_and_kept_for_its_owner(made: list[str], tmp_path: Path) -> None:
    assert _again() == _again() == "window.vegaEmbed = 1;"
    assert len(made) == 1
    assert _kept(tmp_path).stat().st_mode & 0o777 == 0o600
    assert _kept(tmp_path).parent.stat().st_mode & 0o777 == 0o700


def test_what_others_may_write_is_not_read(made: list[str], tmp_path: Path) -> None:
    _again()
    kept = _kept(tmp_path)
    kept.write_text("alert(1)")
    kept.chmod(0o666)
    assert _again() == "window.vegaEmbed = 1;"
    kept.parent.chmod(0o777)
    kept.write_text("alert(1)")
    kept.chmod(0o600)
    assert _again() == "window.vegaEmbed = 1;"


def test_a_link_to_elsewhere_is_not_followed(made: list[str], tmp_path: Path) -> None:
    _again()
    kept, other = _kept(tmp_path), tmp_path / "other.js"
    other.write_text("alert(1)")
    kept.unlink()
    kept.symlink_to(other)
    assert _again() == "window.vegaEmbed = 1;"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe broken"])
def test_a_broken_file_is_made_anew(made: list[str], tmp_path: Path, content: bytes) -> None:
    _again()
    _kept(tmp_path).write_bytes(content)
    assert _again() == "window.vegaEmbed = 1;"
    assert _kept(tmp_path).read_text() == "window.vegaEmbed = 1;"


def test_without_a_place_it_is_made_each_time(
    made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert _again() == _again() == "window.vegaEmbed = 1;"
    assert len(made) == 2
