import json
from html.parser import HTMLParser
from pathlib import Path

from sourdine.report import Axis, Figure, Page, Section, Series, TextTable, draw_lines
from sourdine.report.charts.base import Row

EVIL = "</script><script>alert('ε')</script>"
ROWS: list[Row] = [{"x": x, "y": x * x, "name": EVIL} for x in (1, 2, 3)]


class Tags(HTMLParser):
    """Every tag with its attributes, and the text of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1][0] == "script":
            self.scripts.append(data)
        else:
            self.text += data


def page() -> Page:
    chart = draw_lines(
        ROWS,
        x=Axis(field="x", title="x"),
        y=Axis(field="y", title="y"),
        series=Series(field="name", names=(EVIL,)),
    )
    table = TextTable(name="t", title="Squares", columns=("x", EVIL), rows=((1, "one"), (2, EVIL)), note=EVIL)
    section = Section(
        title=f"Section {EVIL}",
        paragraphs=("First.", EVIL),
        points=(EVIL,),
        tables=(table,),
        figures=(Figure(title=f"It grows {EVIL}", chart=chart, note="Quickly."),),
    )
    return Page(title=f"Page {EVIL}", lead=EVIL, sections=(section,))


def test_it_loads_nothing_and_forbids_to() -> None:
    tags = Tags(page().html()).found
    assert not any("src" in attributes or "href" in attributes for _, attributes in tags)
    assert {tag for tag, _ in tags}.isdisjoint({"link", "img", "iframe", "object", "embed"})
    policies = [a["content"] for tag, a in tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert len(policies) == 1
    assert str(policies[0]).startswith("default-src 'none'")
    assert "http" not in str(policies[0])


def test_nothing_in_it_can_become_a_tag() -> None:
    tags = Tags(page().html())
    assert [tag for tag, _ in tags.found].count("script") == 2
    assert "alert('ε')" in tags.text
    drawn = next(script for script in tags.scripts if "const charts" in script)
    start, end = drawn.index("[") + 1, drawn.rindex("];")
    assert json.loads(drawn[start:end].strip().rstrip(","))["datasets"]["rows"][0]["name"] == EVIL


def test_tables_and_figures_are_there() -> None:
    tags = Tags(page().html())
    ids = [attributes["id"] for _, attributes in tags.found if "id" in attributes]
    assert ids == ["chart-0"]
    for told in ("First.", "Squares", "one", "It grows", "Quickly."):
        assert told in tags.text
    assert ("viewport", "width=device-width, initial-scale=1") in [
        (a.get("name"), a.get("content")) for tag, a in tags.found if tag == "meta"
    ]


def test_tables_scroll_in_their_own_box_or_show_their_rows_as_lists() -> None:
    def tables(*rows: tuple[str | int, ...]) -> list[tuple[str, dict[str, str | None]]]:
        table = TextTable(name="t", title="Costs", columns=("what", "cost"), rows=rows)
        return Tags(Page(title="P", lead="", sections=(Section(title="S", tables=(table,)),)).html()).found

    short, long = tables(("count", 1)), tables(("a count of all the people who said yes", 1))
    for found in (short, long):
        boxes = [attributes for tag, attributes in found if attributes.get("class") == "scroll"]
        assert [(box["tabindex"], box["aria-label"]) for box in boxes] == [("0", "Costs")]
        cells = [attributes["data-column"] for tag, attributes in found if tag == "td"]
        assert cells == ["what", "cost"]
    assert [attributes.get("class") for tag, attributes in short if tag == "table"] == [None]
    assert [attributes.get("class") for tag, attributes in long if tag == "table"] == ["wordy"]


def test_a_page_without_figures_has_no_script(tmp_path: Path) -> None:
    plain = Page(title="Words", lead="Only words.", sections=(Section(title="One"),))
    plain.write(tmp_path / "words.html")
    written = (tmp_path / "words.html").read_text(encoding="utf-8")
    assert "<script" not in written
    assert len(written) < 9000
