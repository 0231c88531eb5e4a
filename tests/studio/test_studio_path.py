"""Studio in a browser: from a file to a release, with mistakes, reloads, two tabs and no mouse."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from benchmarks.studio.path import Hand, column, declare, publish, write_people
from benchmarks.studio.running import RunningStudio, running, settled
from sourdine.accounting.certificate import verify_release
from sourdine.accounting.ledger import Ledger
from sourdine.cli.release import publish as publish_release
from sourdine.core.errors import SourdineError
from sourdine.tables import Specification
from sourdine.tables.release import Scan
from tests.browser import violations

if TYPE_CHECKING:
    from playwright.sync_api import Page

STEPS = ("table", "people", "columns", "questions", "budget", "check", "release", "result", "synthetic")
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WHOLE = """
[table]
source = "people.csv"
[privacy]
unit = "person"
epsilon = 1
ledger = "people.ledger"
[columns]
age = { type = "integer", lower = 0, upper = 120 }
sex = { type = "category", keys = ["f", "m"] }
pay = { type = "real", lower = 0.0, upper = 100000.0 }
[[queries]]
name = "pay"
ask = ["count", { mean = "pay" }]
by = ["sex"]
"""


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[RunningStudio]:
    write_people(tmp_path)
    with running(tmp_path) as started:
        yield started


@pytest.fixture
def ready(studio: RunningStudio, tmp_path: Path, page: "Page") -> "Page":
    """A page with a whole specification, and a ledger to pay from."""
    (tmp_path / "people.toml").write_text(WHOLE, encoding="utf-8")
    Ledger.create(tmp_path / "people.ledger", epsilon=3, unit="person").close()
    studio.enter(page)
    return page


def opened(page: "Page", studio: RunningStudio, step: str) -> None:
    page.goto(f"{studio.base}/spec/people.toml#{step}")
    page.locator(f"#{step}-title").wait_for()


def charges(folder: Path) -> int:
    with Ledger.open(folder / "people.ledger") as ledger:
        return len(ledger.history())


def confirm(page: "Page") -> None:
    page.get_by_label("I know that this spends").check()


def released(page: "Page") -> None:
    page.get_by_text("Released into").wait_for(timeout=60_000)


def test_a_newcomer_comes_from_a_file_to_a_verified_release(
    studio: RunningStudio, page: "Page", tmp_path: Path
) -> None:
    studio.enter(page)
    hand = publish(page)
    verification = verify_release(tmp_path / "people-release", ledger=tmp_path / "people.ledger")
    assert verification.discrepancies == ()
    assert verification.certificate.epsilon == 1
    assert charges(tmp_path) == 1
    assert hand.fields <= 12  # the table of docs/how_to says how many, and the command line asks for 32
    page.get_by_role("link", name="Open the report").wait_for()
    report = page.frame_locator("iframe.report").first
    report.locator("h1").wait_for()


def test_a_double_click_pays_once(ready: "Page", studio: RunningStudio, tmp_path: Path) -> None:
    opened(ready, studio, "release")
    confirm(ready)
    ready.get_by_role("button", name="Pay and release").dblclick()
    released(ready)
    assert charges(tmp_path) == 1


@pytest.mark.slow
def test_two_tabs_pay_once_and_never_write_over_each_other(
    ready: "Page", studio: RunningStudio, tmp_path: Path
) -> None:
    other = ready.context.new_page()
    for tab in (ready, other):
        opened(tab, studio, "release")
        confirm(tab)
    for tab in (ready, other):
        tab.get_by_role("button", name="Pay and release").click(no_wait_after=True)
    released(ready)
    assert charges(tmp_path) == 1
    for tab in (ready, other):
        opened(tab, studio, "people")
    field = "One of them is called a"
    ready.get_by_label(field).fill("patient")
    ready.get_by_label(field).blur()
    settled(ready)
    other.get_by_label(field).fill("household")
    other.get_by_label(field).blur()
    other.get_by_text("was changed meanwhile").wait_for()
    assert 'unit = "patient"' in (tmp_path / "people.toml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_reload_in_the_middle_loses_nothing(studio: RunningStudio, page: "Page", tmp_path: Path) -> None:
    studio.enter(page)
    declare(Hand(page))
    page.goto(f"{studio.base}/spec/people.toml#columns")
    column(page, "pay").get_by_label("To", exact=True).fill("9000")
    column(page, "pay").get_by_label("To", exact=True).blur()
    settled(page)
    page.reload()
    assert column(page, "pay").get_by_label("To", exact=True).input_value() == "9000"
    assert column(page, "sex").get_by_label("Keys, one on each line").input_value() == "f\nm"
    page.context.close()  # the whole browser
    assert "upper = 9000" in (tmp_path / "people.toml").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("step", "label", "typed", "said"),
    [
        ("table", "About how many records there are", "many", "whole number"),
        ("people", "One of them is called a", "", ""),
        ("columns", "From", "200", "below upper"),
        ("columns", "To", "a few", ""),
        ("columns", "Keys, one on each line", "f\nf", ""),
        ("questions", "Weight", "-1", ""),
        ("questions", "Name", "", ""),
        ("budget", "Epsilon", "-1", "above 0"),
        ("budget", "Epsilon", "lots", ""),
        ("budget", "Delta, if any", "2", ""),
        ("budget", "Confidence of intervals", "95", ""),
    ],
)
def test_a_mistake_is_told_where_it_is_made(
    ready: "Page", studio: RunningStudio, tmp_path: Path, step: str, label: str, typed: str, said: str
) -> None:
    opened(ready, studio, step)
    field = ready.locator(f"#{step}").get_by_label(label, exact=True).first
    before = field.get_attribute("id")
    field.fill(typed)
    field.blur()
    settled(ready)
    wrong = ready.locator(f'[id="{before}"]')
    assert (
        wrong.get_attribute("aria-invalid") == "true"
        or ready.locator(f"#{step} .message:not(:empty)").count()
    )
    words = ready.locator(f"#{step} .message:not(:empty)").all_inner_texts()
    assert any(said in each for each in words), words
    assert violations(ready) == []
    opened(ready, studio, "release")
    assert ready.get_by_role("button", name="Pay and release").count() == 0
    assert charges(tmp_path) == 0


@pytest.mark.slow
def test_a_wrong_price_of_private_counts_is_told_and_pays_nothing(
    ready: "Page", studio: RunningStudio, tmp_path: Path
) -> None:
    opened(ready, studio, "check")
    field = ready.get_by_label("Epsilon to pay for it")
    for typed, said in (("lots", "must be a number above 0"), ("-1", "above 0"), ("2000", "above 0")):
        field.fill(typed)
        ready.get_by_role("button", name="Pay and count privately").click()
        settled(ready)
        assert said in ready.locator("#said").inner_text()
        assert field.input_value() == typed  # to be mended, not written anew
    field.fill("5")  # the ledger has 3
    ready.get_by_role("button", name="Pay and count privately").click()
    ready.locator("#told .message:not(:empty)").wait_for()
    assert "budget" in ready.locator("#told .message").inner_text()
    assert violations(ready) == []
    assert charges(tmp_path) == 0


@pytest.mark.slow
def test_a_result_that_is_broken_or_lost_is_told_and_shown_as_far_as_it_goes(
    ready: "Page", studio: RunningStudio, tmp_path: Path
) -> None:
    opened(ready, studio, "release")
    confirm(ready)
    ready.get_by_role("button", name="Pay and release").click()
    released(ready)
    place = tmp_path / "people-release"
    opened(ready, studio, "result")
    assert "Nothing wrong was found" in ready.locator("#result .verdict").inner_text()
    (place / "answers.csv").write_text("nothing", encoding="utf-8")
    (place / "report.html").unlink()
    ready.reload()
    assert ready.locator("#result .verdict.red").count() == 1
    assert ready.get_by_role("link", name="Open the report").count() == 0
    (place / "certificate.json").write_text("{", encoding="utf-8")
    ready.reload()
    ready.locator("#result-title").wait_for()
    assert "certificate" in ready.locator("#result .hint").first.inner_text()
    answer = ready.goto(f"{studio.base}/file/people-release/answers.csv")
    assert answer is not None
    assert answer.status == 404
    answer = ready.goto(f"{studio.base}/verdict/nowhere")
    assert answer is not None
    assert answer.status == 404
    assert "There is no release nowhere" in ready.locator("main").inner_text()
    assert violations(ready) == []


@pytest.mark.slow
def test_a_release_that_was_cut_off_is_told_and_confirmed_before_it_is_paid_again(
    ready: "Page", studio: RunningStudio, tmp_path: Path
) -> None:
    specification = Specification.load(tmp_path / "people.toml")
    with pytest.raises(SourdineError):
        publish_release(specification, tmp_path / "people-release", watch=_cut_off)
    opened(ready, studio, "release")
    assert "Line 1 of the ledger paid epsilon 1" in ready.locator("#release .warning").inner_text()
    confirm(ready)
    ready.get_by_role("button", name="Pay and release").click()  # the browser asks for the other box
    settled(ready)
    assert charges(tmp_path) == 1
    assert violations(ready) == []
    ready.get_by_label("I want to pay once more").check()
    ready.get_by_role("button", name="Pay and release").click()
    released(ready)
    assert charges(tmp_path) == 2


def _cut_off(scans: Sequence[Scan]) -> Sequence[Scan]:
    raise RuntimeError


@pytest.mark.slow
def test_questions_are_edited_as_text(ready: "Page", studio: RunningStudio, tmp_path: Path) -> None:
    opened(ready, studio, "questions")
    ready.get_by_text("Edit as text").first.click()
    text = ready.get_by_label("This question in the words of the specification")
    text.fill('ask = [{ mean = { add = ["age", 1] } }]\nby = ["sex"]')
    text.blur()
    settled(ready)
    kept = tomllib.loads((tmp_path / "people.toml").read_text(encoding="utf-8"))["queries"]
    assert kept == [{"name": "pay", "ask": [{"mean": {"add": ["age", 1]}}], "by": ["sex"]}]
    assert "says more than fields can show" in ready.locator("#questions").inner_text()
    text.fill('ask = [{ mean = { add = ["nothing", 1] } }]')
    text.blur()
    settled(ready)
    assert "nothing" in ready.locator("#questions .message:not(:empty)").first.inner_text()
    text.fill("ask = [")
    text.blur()
    settled(ready)
    assert "not valid TOML" in ready.locator("#said").inner_text()
    assert violations(ready) == []


@pytest.mark.slow
def test_the_noise_moves_with_the_slider(ready: "Page", studio: RunningStudio) -> None:
    opened(ready, studio, "budget")
    first = ready.locator("#noise svg.bar .interval").first
    first.wait_for()
    widths = []
    for position in (200, 300):
        ready.evaluate(
            "p => { const s = document.querySelector('[data-slider]'); s.value = p;"
            " s.dispatchEvent(new Event('input', { bubbles: true })); }",
            position,
        )
        settled(ready)
        lower, upper = re.findall(r"M([0-9.]+) 10H([0-9.]+)", first.get_attribute("d") or "")[0]
        widths.append(float(upper) - float(lower))
    assert widths[0] > 3 * widths[1]


@pytest.mark.slow
def test_a_ledger_outside_of_the_folder_is_refused_and_not_shown_as_kept(
    ready: "Page", studio: RunningStudio, tmp_path: Path
) -> None:
    opened(ready, studio, "release")
    field = ready.get_by_label("Ledger, a file of this folder")
    field.fill("../other.ledger")
    field.blur()
    settled(ready)
    assert "must be a file beside" in ready.locator("#said").inner_text()
    assert field.input_value() == "people.ledger"
    assert not (tmp_path.parent / "other.ledger").exists()


@pytest.mark.slow
def test_every_step_is_accessible_by_day_by_night_and_on_a_telephone(
    ready: "Page", studio: RunningStudio
) -> None:
    found: dict[str, list[str]] = {}
    for step in STEPS:
        opened(ready, studio, step)
        for scheme in SCHEMES:
            ready.emulate_media(color_scheme=scheme)
            found[f"{step} {scheme}"] = violations(ready)
        ready.set_viewport_size({"width": 390, "height": 844})
        assert ready.evaluate("document.documentElement.scrollWidth") <= 390, step
        found[f"{step} narrow"] = violations(ready)
        ready.set_viewport_size({"width": 1280, "height": 900})
    assert {place: each for place, each in found.items() if each} == {}


@pytest.mark.slow
def test_no_mouse_is_needed(ready: "Page", studio: RunningStudio, tmp_path: Path) -> None:
    def tab_to(selector: str) -> None:
        for _ in range(150):
            ready.keyboard.press("Tab")
            if ready.evaluate("s => document.activeElement.matches(s)", selector):
                return
        raise AssertionError(f"{selector} is not reached by the key Tab")

    tab_to("a[href$='people.toml']")
    ready.keyboard.press("Enter")
    ready.locator("#table-title").wait_for()
    for step in STEPS[1:5]:
        tab_to(f".onward a[data-go='{step}']")
        ready.keyboard.press("Enter")
        ready.locator(f"#{step}-title").wait_for()
        assert ready.evaluate("document.activeElement.id") == f"{step}-title"
    tab_to("#epsilon-slider")
    ready.keyboard.press("ArrowRight")
    settled(ready)
    assert "epsilon = 1\n" not in (tmp_path / "people.toml").read_text(encoding="utf-8")
    for step in STEPS[5:7]:
        tab_to(f".onward a[data-go='{step}']")
        ready.keyboard.press("Enter")
    tab_to("input[name=sure]")
    ready.keyboard.press("Space")
    tab_to("form.confirm button")
    ready.keyboard.press("Enter")
    released(ready)
    assert charges(tmp_path) == 1


@pytest.fixture
def drawing(studio: RunningStudio, tmp_path: Path, page: "Page") -> "Page":
    """A page at the step of a synthetic table, with a ledger that pays for one."""
    text = WHOLE.replace("epsilon = 1\n", "epsilon = 1\ndelta = 1e-6\n")
    (tmp_path / "people.toml").write_text(text, encoding="utf-8")
    Ledger.create(tmp_path / "people.ledger", epsilon=3, delta=1e-6, unit="person").close()
    studio.enter(page)
    opened(page, studio, "synthetic")
    return page


@pytest.mark.slow  # two seconds of processor time
def test_a_synthetic_table_is_drawn_once_by_keys_and_found_after_a_reload(
    drawing: "Page", studio: RunningStudio, tmp_path: Path
) -> None:
    target = drawing.get_by_label("What people will predict with it")
    target.focus()
    drawing.keyboard.press("ArrowDown")
    settled(drawing)
    assert 'target = "sex"' in (tmp_path / "people.toml").read_text(encoding="utf-8")
    drawing.get_by_label("I know that this takes").focus()
    drawing.keyboard.press("Space")
    drawing.keyboard.press("Tab")
    assert drawing.evaluate("document.activeElement.textContent") == "Pay and draw"
    with drawing.expect_request(lambda request: request.method == "POST"):  # or a reload takes it back
        drawing.keyboard.press("Enter")
    drawing.keyboard.press("Enter")  # as a double click
    drawing.reload()
    drawing.get_by_text("Written:").wait_for(timeout=60_000)
    assert charges(tmp_path) == 1
    drawing.get_by_role("link", name="What was measured").wait_for()
    assert (tmp_path / "people-synthetic" / "synthetic.csv").is_file()


@pytest.mark.slow
def test_the_step_of_a_synthetic_table_is_accessible_before_and_after(
    drawing: "Page", studio: RunningStudio
) -> None:
    found: dict[str, list[str]] = {}
    for when in ("before", "after"):
        for scheme in SCHEMES:
            drawing.emulate_media(color_scheme=scheme)
            found[f"{when} {scheme}"] = violations(drawing)
        drawing.set_viewport_size({"width": 390, "height": 844})
        assert drawing.evaluate("document.documentElement.scrollWidth") <= 390
        found[f"{when} narrow"] = violations(drawing)
        drawing.set_viewport_size({"width": 1280, "height": 900})
        if when == "before":
            drawing.get_by_label("I know that this takes").check()
            drawing.get_by_role("button", name="Pay and draw").click()
            drawing.get_by_text("Written:").wait_for(timeout=60_000)
    assert {place: each for place, each in found.items() if each} == {}
