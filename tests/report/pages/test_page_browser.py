"""Pages as people see them: in Chromium, by day and by night, wide, narrow and on paper."""

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from sourdine.core.display import Figure
from sourdine.report import Axis, Section, Series, Slider, draw_lines
from sourdine.report import Page as ReportPage
from sourdine.report.charts.base import Row
from tests.browser import violations
from tests.report.charts.test_heat import heat
from tests.report.pages.examples import COMMON, EXAMPLES

if TYPE_CHECKING:
    from playwright.sync_api import Page

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
# texts and marks of charts, which axe does not look at: the colours they are seen in, and what is behind
# them; without axes, whose lines are faint, and heat maps, where a text lies on its cell
DRAWN = """() => [...document.querySelectorAll(".chart svg :is(text, line, path)")].flatMap((each) => {
  const fill = each.getAttribute("fill") ?? "", text = each.tagName === "text";
  if (each.matches(".background, .role-axis-grid *, .role-axis-tick *, .role-axis-domain *")) return [];
  if (/^(rgb|url)/.test(fill) || (text && ["white", "black"].includes(fill))) return [];
  const style = getComputedStyle(each), clear = "rgba(0, 0, 0, 0)";
  const colour = text || style.stroke === "none" ? style.fill : style.stroke;
  const places = [each.closest("figure"), document.body].map((e) => getComputedStyle(e).backgroundColor);
  return colour.startsWith("rgb(") ? [[text, colour, places.find((on) => on !== clear)]] : [];
})"""


@pytest.fixture(scope="module")
def files() -> dict[str, Path]:
    """Where each page was written, once it was asked for."""
    return {}


def opened(page: "Page", name: str, files: dict[str, Path], folder: Path) -> None:
    if name not in files:
        files[name] = folder / "page.html"
        EXAMPLES[name](folder).write(files[name])
    page.goto(files[name].as_uri())
    charts = page.locator(".chart")
    for place in range(charts.count()):
        charts.nth(place).locator("svg").first.wait_for()


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour.removeprefix("rgb(").removesuffix(")").split(", ")]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def illegible(page: "Page") -> list[tuple[str, str]]:
    """Texts of charts below 4.5 to 1, and marks below 2 to 1: the values of marks are in tables too."""
    drawn = page.evaluate(DRAWN)
    return sorted(
        {(colour, on) for text, colour, on in drawn if contrast(colour, on) < (4.5 if text else 2.0)}
    )


def look(page: "Page", name: str, files: dict[str, Path], folder: Path) -> None:
    opened(page, name, files, folder)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        assert violations(page) == []
        assert illegible(page) == []
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page) == []


@pytest.mark.parametrize("name", COMMON)
def test_common_pages_are_accessible_by_day_and_by_night(
    page: "Page", name: str, files: dict[str, Path], tmp_path: Path
) -> None:
    look(page, name, files, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - set(COMMON)))
def test_all_pages_are_accessible_by_day_and_by_night(
    page: "Page", name: str, files: dict[str, Path], tmp_path: Path
) -> None:
    look(page, name, files, tmp_path)


def test_paper_is_white_and_charts_fit_on_it(page: "Page", files: dict[str, Path], tmp_path: Path) -> None:
    opened(page, "ledger", files, tmp_path)
    page.emulate_media(color_scheme="dark", media="print")
    style = "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    assert page.evaluate(style) == ["rgb(255, 255, 255)", "rgb(29, 39, 51)"]
    assert illegible(page) == []
    page.set_viewport_size({"width": 700, "height": 1000})  # of a sheet, after it was drawn on a wide screen
    assert page.evaluate("document.documentElement.scrollWidth") <= 700


def test_names_are_texts_whatever_they_contain(page: "Page", files: dict[str, Path], tmp_path: Path) -> None:
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    opened(page, "names", files, tmp_path)
    assert page.locator("script:not([type=module])").count() == 0
    assert page.get_by_text("</script><script>alert('ε')</script>").count() > 0


def test_no_chart_needs_to_evaluate_words(page: "Page", files: dict[str, Path], tmp_path: Path) -> None:
    opened(page, "explanation", files, tmp_path)
    slider = page.get_by_role("slider", name="belief before the answer")
    before = page.locator("#chart-0").inner_html()
    slider.fill("20")
    assert page.locator("#told").inner_text().count("20") >= 1
    page.wait_for_function("before => document.querySelector('#chart-0').innerHTML !== before", arg=before)
    assert "unsafe-eval" not in page.content()[:2000]


def test_a_slider_tells_its_value_and_labels_do_not_overlap_on_a_telephone(
    page: "Page", tmp_path: Path
) -> None:
    rows: list[Row] = [
        {"x": x, "y": x / noise, "who": "ours", "noise": noise} for x in (1, 2) for noise in (1, 1.5)
    ]
    lines = draw_lines(
        rows,
        x=Axis(field="x", title="x"),
        y=Axis(field="y", title="y"),
        series=Series(field="who", names=("ours",)),
        slider=Slider(field="noise", title="noise", values=(1.0, 1.5), start=1.5),
    )
    names = ["married", "never married", "divorced", "separated", "widowed", "spouse absent", "other"]
    figures = (Figure(title="a slider", chart=lines), Figure(title="a heat map", chart=heat(names, names)))
    made = ReportPage(
        title="t", lead="l", sections=(Section(title="s", figures=figures),), verify="count again"
    )
    made.write(tmp_path / "page.html")
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto((tmp_path / "page.html").as_uri())
    page.locator("#chart-1 svg").wait_for()
    told = page.locator(".vega-bind output")
    assert told.inner_text() == "1.5"
    page.get_by_role("slider", name="noise").fill("0")
    assert told.inner_text() == "1"
    boxes = "(all) => all.map((each) => each.getBoundingClientRect()).map((box) => [box.left, box.right])"
    for texts in (
        "#chart-1 [aria-label^='X-axis'] .role-axis-label text",
        "#chart-1 .mark-text.role-mark text",
    ):
        spans = page.locator(texts).evaluate_all(boxes)[: len(names)]
        assert len(spans) == len(names)
        assert all(left[1] <= right[0] + 1 for left, right in pairwise(sorted(spans)))
    assert "count again" in page.locator("footer").inner_text()
