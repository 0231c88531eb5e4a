from typing import Any

import altair
import pytest


@pytest.fixture(autouse=True)
def charts_follow_their_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Charts are drawn without a check against the schema of Vega-Lite, for speed: here each is checked."""
    drawn = altair.TopLevelMixin.to_dict

    def checked(chart: Any, validate: bool = True, **options: Any) -> dict[str, Any]:
        inside = (options.get("context") or {}).get("top_level") is False  # of a chart that is checked whole
        return drawn(chart, validate if inside else True, **options)

    monkeypatch.setattr(altair.TopLevelMixin, "to_dict", checked)
