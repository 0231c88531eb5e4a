"""Settings: origins as browsers write them, and numbers within bounds."""

from typing import Any

import pytest

from sourdine.collector.settings import CollectorSettings
from sourdine.core.errors import InvalidParameter


def test_origins() -> None:
    settings = CollectorSettings(store="x", origins=("https://Survey.example/", "http://localhost:8000"))
    assert settings.origins == ("https://survey.example", "http://localhost:8000")


@pytest.mark.parametrize(
    "origin",
    ["*", "survey.example", "https://a.example/path", "ftp://a.example", "null", "https://u@a.example"],
)
def test_what_is_no_origin(origin: str) -> None:
    with pytest.raises(InvalidParameter, match="An origin is"):
        CollectorSettings(store="x", origins=(origin,))


@pytest.mark.parametrize(
    "more", [{"most_body": 0}, {"most_waiting": 0}, {"results_port": 70000}, {"rate": -1}, {"body_time": 0}]
)
def test_numbers_out_of_bounds(more: dict[str, Any]) -> None:
    with pytest.raises(InvalidParameter):
        CollectorSettings(store="x", **more)
