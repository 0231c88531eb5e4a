import pytest

from sourdine.cli.group import TRACE


@pytest.fixture(autouse=True)
def traces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash is never taken for bad input by these tests: it is raised."""
    monkeypatch.setenv(TRACE, "1")
