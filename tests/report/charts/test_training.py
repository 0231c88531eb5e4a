"""Charts of sweeps: axes that do not exaggerate."""

from typing import Any

import pytest

from sourdine.report.charts.training import accuracy_axis, draw_curves, draw_points


def rows(*accuracies: float, spread: float = 0.01) -> list[dict[str, Any]]:
    return [
        {
            "series": "all runs",
            "place": place,
            "accuracy": each,
            "lower": each - spread,
            "upper": each + spread,
        }
        for place, each in enumerate(accuracies, 1)
    ]


@pytest.mark.parametrize("values", [(91.02, 91.07), (99.97, 100.0), (0.0, 0.04)])
def test_hundredths_do_not_look_like_a_cliff(values: tuple[float, float]) -> None:
    low, high = accuracy_axis(rows(*values, spread=0.0)).ends or (0, 0)
    assert high - low == 10
    assert 0 <= low <= min(values) <= max(values) <= high <= 100


def test_all_layers_have_the_same_axis() -> None:
    made = rows(91.02, 91.07)
    for spec in (
        draw_points(made, across="learning rate", names=("all runs",)),
        draw_curves(made, across="epochs", names=("all runs",), legend="learning rate"),
    ):
        layers: Any = spec["layer"]
        assert {tuple(layer["encoding"]["y"]["scale"]["domain"]) for layer in layers} == {(86.0, 96.0)}
