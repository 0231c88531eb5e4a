import json
from html.parser import HTMLParser
from typing import Any

import pytest

from sourdine.accounting import Training
from sourdine.accounting.explain import explain_guarantee, explain_training
from sourdine.core.display import Spec
from sourdine.report.charts.beliefs import draw_beliefs, draw_family, draw_roc
from sourdine.report.pages.ledger import ExplanationPage, belief_tables, explanation_page

RUN = Training(size=60000, batch_size=64, noise_multiplier=1.0, epochs=15)


class Loaded(HTMLParser):
    """Collects whatever a browser would load, apart from the page itself."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str | None] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attrs if name in {"src", "href", "data"}]


@pytest.fixture(scope="module")
def page() -> ExplanationPage:
    return explanation_page(explain_training(RUN, 1e-5))


@pytest.fixture(scope="module")
def html(page: ExplanationPage) -> str:
    return page.html()


def points(chart: Spec) -> list[dict[str, Any]]:
    """The rows inside a chart."""
    return [row for rows in json.loads(json.dumps(chart))["datasets"].values() for row in rows]


def test_the_sliders_have_ends_in_words(html: str) -> None:
    assert "<span>more privacy</span><span>more accuracy</span>" in html
    assert '<input id="epsilon" type="range"' in html
    assert '<input id="prior" type="range"' in html
    for element in ("#epsilon", "#prior"):
        assert f'"element":"{element}"' in html


def test_titles_say_what_is_found(html: str) -> None:
    html = html.replace("\N{NO-BREAK SPACE}", " ")
    assert "The best attack is right in at most 533 of 1,000 cases" in html
    assert "At 1 % false alarms it finds at most 1.55 % of true cases" in html
    assert "From 50 in 100, this guarantee lets belief move to between 35 and 65 in 100" in html
    assert "In all but 1 of 1,000 cases at most, somebody who gave it BEFORE chances in 100" in html


def test_the_page_loads_nothing_and_says_all(html: str) -> None:
    loaded = Loaded()
    loaded.feed(html)
    assert loaded.addresses == []
    for told in ("Poisson", "δ = 1e-5", "Gertrude", "17.14", "34.9", "one example"):
        assert told in html


def test_a_run_shows_what_one_point_would_say(page: ExplanationPage) -> None:
    told = {row.get("known") for row in points(page.sections[2].figures[0].chart)}
    assert told == {"from the whole curve of losses", "from ε and δ alone", "blind guessing"}
    other = explanation_page(explain_guarantee(1, 1e-5))
    told = {row.get("known") for row in points(other.sections[2].figures[0].chart)}
    assert told == {"this guarantee", "blind guessing"}


@pytest.mark.parametrize(("epsilon", "delta"), [(0, 0), (1e-9, 1e-6), (10_000, 0), (10_000, 1e-6)])
def test_any_guarantee_has_a_page(epsilon: float, delta: float) -> None:
    page = explanation_page(explain_guarantee(epsilon, delta))
    assert page.lowest <= page.start <= page.highest
    assert f"<h1>{page.title}</h1>" in page.html()


def test_the_tables_hold_both_bounds_of_the_source() -> None:
    for table, told in zip(belief_tables(), ("73.11", "26.89"), strict=True):
        cells = {row[0]: row[1:] for row in table.shown()}
        assert cells["50"][5] == told
        assert len(cells) == 11
        assert len(table.columns) == 9


def test_the_curve_of_an_attack_lies_above_the_diagonal() -> None:
    rows = points(draw_roc({"this": explain_guarantee(1).curve}))
    found = {row["false"]: row["true"] for row in rows if row.get("known") == "this"}
    blind = {row["false"]: row["true"] for row in rows if row.get("known") == "blind guessing"}
    assert found[0.25] == pytest.approx(0.25 * 2.71828, rel=1e-5)
    assert len(found) == len(blind) == 101
    assert all(rate == true for rate, true in blind.items())
    assert all(float(found[rate]) >= float(true) for rate, true in blind.items())


def test_the_logarithmic_curve_starts_low_and_marks_a_rate() -> None:
    rows = points(draw_roc({"this": explain_guarantee(1).curve}, log=True, mark=0.01))
    assert {"false": 0.01} in rows
    assert min(float(row["false"]) for row in rows) == 1e-4


def test_a_family_of_curves() -> None:
    rows = points(draw_family((0.1, 3.0)))
    tops = [row["after"] for row in rows if row.get("epsilon") == "ε = 3" and row["before"] == 0.5]
    assert sorted(tops) == [pytest.approx(0.047426), pytest.approx(0.952574)]


def test_the_chart_of_beliefs_follows_the_sliders() -> None:
    chart = json.loads(json.dumps(draw_beliefs(1.0, 0.5)))
    bound = {param["name"]: param["bind"] for param in chart["params"]}
    assert bound == {"place": {"element": "#epsilon"}, "per_cent": {"element": "#prior"}}


def test_the_slider_says_what_it_stands_for(page: ExplanationPage, html: str) -> None:
    assert page.measure == "ε for beliefs"
    assert "This guarantee: ε = 0.61" in page.own
    assert "moves beliefs no further than ε = 0.58" in page.own
    assert page.other.startswith("Another ε. All else on this page stays about ε = 0.61")
    assert f"<span>{page.measure}</span>" in html
    assert f'data-other="{page.other}"' in html
    pure = explanation_page(explain_guarantee(1.17))
    assert (pure.measure, pure.own) == ("ε", "This guarantee: ε = 1.17.")
