import pytest

from sourdine.cli.shared.app import TRACE


@pytest.fixture(autouse=True)
def traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash is never taken for bad input by these tests: it is raised."""
    monkeypatch.setenv(TRACE, "1")


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables are as wide everywhere."""
    monkeypatch.setenv("COLUMNS", "160")
