"""Tables, plans, releases and answers as they show themselves; what they show is escaped and was released."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest

from sourdine import Ledger, Query, Table
from sourdine.core.display import Viewable, picture
from sourdine.core.errors import InvalidParameter
from sourdine.tables import Count, Mean, Quantiles, TableRelease, Top, rehearse

EVIL = "<script>alert('ε')</script>"
SECRET = 31337


class Tags(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)


def table() -> Table:
    return Table(
        pa.table({"pay": [SECRET, 2000, 3000] * 40, EVIL: ["f", "m", "undeclared"] * 40}),
        unit="person",
        size=120,
        columns={
            "pay": {"type": "integer", "lower": 0, "upper": 50_000},
            EVIL: {"type": "category", "keys": ["f", "m", f"x{EVIL}"]},
        },
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[TableRelease, Ledger]:
    people = table()
    ledger = Ledger.create(tmp_path_factory.mktemp("ledger") / "people.ledger", epsilon=30)
    asked = Query(EVIL, [Count(), Mean("pay")], by=EVIL)
    plan = people.plan(asked, Query("all", [Count()]), epsilon=10)
    return people.release(plan, ledger, purpose=EVIL), ledger


def shown(made: tuple[TableRelease, Ledger]) -> list[Viewable]:
    release, ledger = made
    assert release.quality is not None
    assert release.receipt is not None
    return [
        table(),
        release.plan,
        release,
        release.values,
        release["all"],
        release[EVIL, "count"],
        release.quality,
        release.receipt,
        release.certificate(ledger),
        ledger,
        ledger.status(),
    ]


def test_nothing_that_is_shown_becomes_a_tag(made: tuple[TableRelease, Ledger]) -> None:
    for thing in shown(made):
        page = thing._repr_html_()
        assert page.startswith('<div class="sourdine">')
        assert page.count("<div") == page.count("</div>")
        assert "script" not in Tags(page).found
        assert not re.search(r"(src|href)=", page)
    assert "&lt;script&gt;alert(&#39;ε&#39;)" in made[0]._repr_html_()


def test_what_is_printed_says_the_same_in_lines(made: tuple[TableRelease, Ledger]) -> None:
    for thing in shown(made):
        assert len(str(thing).splitlines()) > 0
        assert "\n" not in repr(thing)
        assert len(repr(thing)) < 400
    release, _ = made
    value, lower, upper = release["all"].at()
    line = rf"{value:,g} +{lower:,g} +{upper:,g}"
    assert re.search(line, str(release["all"]))
    assert f"{value:,g} ({lower:,g} to {upper:,g})" in repr(release["all"])
    assert "± " in str(release.plan)


def test_control_characters_reach_no_terminal() -> None:
    column = {"a\x1b[2J": {"type": "category", "keys": ["\x1b[31mred", "b"]}}
    people = Table(pa.table({"a\x1b[2J": ["b"]}), unit="person", columns=column)
    plan = people.plan(Query("q", [Count()], by="a\x1b[2J"), epsilon=1)
    for thing in (people, plan, rehearse(plan), rehearse(plan)["q"]):
        assert "\x1b" not in str(thing) + repr(thing)


def test_a_table_and_a_ledger_show_nothing_that_was_read(made: tuple[TableRelease, Ledger]) -> None:
    for thing in (table(), made[0].plan, made[1], made[1].status()):
        for told in (thing._repr_html_(), str(thing), repr(thing)):
            assert str(SECRET) not in told
            assert f"{SECRET:,}" not in told
            assert "undeclared" not in told


def test_a_query_draws_all_its_statistics_below_each_other(made: tuple[TableRelease, Ledger]) -> None:
    release, _ = made
    both = release.chart(EVIL)
    assert len(both.chart["vconcat"]) == 2  # type: ignore[arg-type]
    assert set(both.chart["datasets"]) == {"rows-0", "rows-1"}  # type: ignore[call-overload]
    alone = release.chart(EVIL, "count")
    assert alone == release[EVIL, "count"].chart() == release.values.chart(EVIL, "count")
    assert len(alone.chart["datasets"]["rows"]) == 3  # type: ignore[index]
    assert release.chart("all").title.startswith("People: ")  # one number is drawn too
    with pytest.raises(InvalidParameter, match=r"Which query is to be drawn\? Name one of"):
        release.chart()
    with pytest.raises(InvalidParameter, match="There is no query 'pay' to draw"):
        release.chart("pay")


def test_where_there_is_one_query_it_need_not_be_named() -> None:
    people = table()
    plan = people.plan(Query("pay", [Mean("pay"), Quantiles("pay", [0.5])], by=EVIL), epsilon=1)
    assert plan.chart().title == "pay: errors by epsilon"
    assert [each.statistic for each in plan.forecast()] == ["mean of pay", "quantiles of pay"]
    assert rehearse(plan).chart(statistic="mean of pay").title.startswith("The mean of pay")


def test_an_order_has_nothing_to_draw() -> None:
    people = Table(
        pa.table({"w": ["a", "b"]}), unit="person", columns={"w": {"type": "category", "keys": ["a", "b"]}}
    )
    release = rehearse(people.plan(Query("most", [Top("w", 1)]), epsilon=1))
    with pytest.raises(InvalidParameter, match="only an order was published, without counts"):
        release.chart()
    assert "Query" not in str(release["most"])


def test_one_answer_becomes_a_frame_of_any_library(made: tuple[TableRelease, Ledger]) -> None:
    answer = made[0]["all"]
    frame, polars, arrow = answer.to_pandas(), answer.to_polars(), answer.to_arrow()
    assert list(frame.columns) == polars.columns == arrow.column_names
    assert (frame["value"][0], frame["lower"][0], frame["upper"][0]) == answer.at()
    assert polars["value"].to_list() == arrow["value"].to_pylist() == frame["value"].to_list()


def test_figures_are_kept(made: tuple[TableRelease, Ledger], tmp_path: Path) -> None:
    figure = made[0].chart("all")
    assert '"datasets"' in figure.save(str(tmp_path / "all.json")).read_text(encoding="utf-8")
    with pytest.raises(InvalidParameter, match=r"not written as '\.pdf'\. Use \.png or \.svg or \.json"):
        figure.save(tmp_path / "all.pdf")


@pytest.mark.slow
def test_figures_become_pictures_and_charts_of_altair(
    made: tuple[TableRelease, Ledger], tmp_path: Path
) -> None:
    figure = made[0].chart("all")
    assert figure.save(tmp_path / "all.svg").read_text(encoding="utf-8").startswith("<svg")
    assert picture(made[0].chart(EVIL)).startswith(b"\x89PNG")
    assert type(figure.altair()).__name__ == "LayerChart"
    assert type(made[0].chart(EVIL).altair()).__name__ == "VConcatChart"


def test_long_tables_are_cut_and_say_how_many_rows_there_are() -> None:
    keys = [f"place {number}" for number in range(30)]
    people = Table(pa.table({"p": keys}), unit="person", columns={"p": {"type": "category", "keys": keys}})
    count = Query("one", [Count()], by="p")
    alone = rehearse(people.plan(count, epsilon=1))
    assert "10 more rows are in to_pandas()." in alone._repr_html_()
    several = [Query(name, [Count()], by="p") for name in ("two", "three", "four")]
    together = rehearse(people.plan(count, *several, epsilon=1))
    assert together._repr_html_().count("22 more rows are in to_pandas().") == 4
    assert together._repr_html_().count("<tr") < 60
