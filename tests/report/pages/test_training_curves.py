import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import pytest
import vl_convert

from sourdine.accounting import Bracket, Training
from sourdine.core.display import Figure
from sourdine.report.pages import training as training_curves

T = TypeVar("T")
RUN = Training(size=60_000, batch_size=64, noise_multiplier=1.0, epochs=15)


@pytest.fixture(scope="module")
def figures() -> tuple[Figure, ...]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_curves, "_SLIDER_SHARES", (1.0,))
        patch.setattr(training_curves, "_NOISE_SHARES", (0.8, 1.0, 2.0))
        return training_curves.curve_figures(RUN, 1e-5)


def rows(figure: Figure) -> list[dict[str, float | str]]:
    assert isinstance(figure.chart["datasets"], dict)
    return figure.chart["datasets"]["rows"]


def curve(figure: Figure, method: str, field: str, at: dict[str, float]) -> list[float]:
    found = [
        row for row in rows(figure) if row["method"] == method and all(row[key] == at[key] for key in at)
    ]
    return [float(row["epsilon"]) for row in sorted(found, key=lambda row: float(row[field]))]


def test_every_figure_is_there_and_compiles(figures: tuple[Figure, ...]) -> None:
    axes = ["Rényi order", "examples in the data", "examples in a batch", "noise, in clipping norms"]
    axes += ["epochs", "δ", "δ, on a logarithmic scale", "noise, in clipping norms"]
    assert len(figures) == len(axes)
    for figure, axis in zip(figures, axes, strict=True):
        assert axis in vl_convert.vegalite_to_svg(json.dumps(figure.chart))
        assert figure.title
        assert figure.note


@pytest.mark.parametrize(
    ("place", "field", "at", "rises"),
    [
        (1, "size", {"noise": 1.0}, False),
        (2, "batch", {"noise": 1.0}, True),
        (3, "noise", {"batch": 64}, False),
        (4, "epochs", {"noise": 1.0}, True),
        (5, "delta", {"noise": 1.0}, False),
        (6, "delta", {"noise": 1.0}, False),
    ],
)
def test_curves_go_the_right_way_and_methods_keep_their_order(
    figures: tuple[Figure, ...], place: int, field: str, at: dict[str, float], rises: bool
) -> None:
    by_method = [curve(figures[place], method, field, at) for method in training_curves._METHODS.names]
    for line in by_method:
        assert len(line) >= 3
        assert all((low < high) is rises for low, high in itertools.pairwise(line))
    for certified, tight, older in zip(*by_method, strict=True):
        assert certified < tight < older


def test_the_run_itself_is_on_every_curve(figures: tuple[Figure, ...]) -> None:
    own = {"size": 60_000, "batch": 64, "noise": 1.0, "epochs": 15, "delta": 1e-5}
    for figure in figures[1:7]:
        here = [row for row in rows(figure) if all(row.get(key, own[key]) == own[key] for key in own)]
        told = {row["method"]: row["epsilon"] for row in here}
        assert told["Rényi, 2017 conversion"] == pytest.approx(1.16632, abs=1e-5)
        assert told["certified bracket"] == pytest.approx(0.6111, abs=6e-3)


def test_the_page_computes_the_source_number_from_divergences(figures: tuple[Figure, ...]) -> None:
    svg = vl_convert.vegalite_to_svg(json.dumps(figures[0].chart))
    assert "ε 1.17 at order 13" in svg
    assert "noise 1 · epochs 15 · δ 1e-5" in svg
    names = [param["bind"]["name"] for param in figures[0].chart["params"]]  # type: ignore[attr-defined]
    assert names == ["noise", "epochs", "δ"]
    told = figures[0].chart["usermeta"]["told"]  # type: ignore[index]
    assert (told["less_delta"][6], told["epochs"][14]) == ("1e-5", "15")


def test_more_noise_or_a_smaller_batch_is_cheaper_on_the_heat_map(figures: tuple[Figure, ...]) -> None:
    cells = {(row["noise"], row["batch"]): float(row["epsilon"]) for row in rows(figures[7])}
    assert cells[0.8, 64] > cells[1.0, 64] > cells[2.0, 64]
    assert cells[1.0, 16] < cells[1.0, 64] < cells[1.0, 2048]


@pytest.mark.slow
def test_other_runs_have_pages_too() -> None:
    """Where neighbours of the run are impossible, they are left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_curves, "_SLIDER_SHARES", (1.0,))
        patch.setattr(training_curves, "_NOISE_SHARES", (1.0,))
        page = training_curves.curves_page(
            Training(size=50, batch_size=40, noise_multiplier=2.5, epochs=1), 0.01
        )
    assert len(page.sections[0].figures) == 8
    assert "batches of 40, noise 2.5, epochs 1, δ = 0.01" in page.lead
    assert len(page.sections[1].points) >= 5


@pytest.mark.slow
def test_long_runs_get_fewer_points_and_hopeless_ones_no_bracket(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def closely(noise: float, rate: float, steps: int, delta: float, width: float) -> Bracket:
        asked.append(steps)
        return Bracket(1.0, 1.1)

    monkeypatch.setattr(training_curves, "dpsgd_epsilon", closely)
    watched: dict[str, int] = {}

    def watch(label: str, things: Sequence[T]) -> Sequence[T]:
        watched[label] = watched.get(label, 0) + len(things)
        return things

    training_curves.curve_figures(RUN, 1e-5, watch)
    usual = sum(watched.values())
    assert len(asked) > 0.9 * usual
    asked.clear()
    watched.clear()
    figures = training_curves.curve_figures(replace(RUN, batch_size=600, epochs=100_000), 1e-5, watch)
    assert sum(watched.values()) < 0.6 * usual
    assert len(asked) < 0.1 * usual
    methods = {row["method"] for row in rows(figures[5]) if row["noise"] == RUN.noise_multiplier}
    assert methods == {"Rényi, tight conversion", "Rényi, 2017 conversion"}
