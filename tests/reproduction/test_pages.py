from pathlib import Path

from sourdine.report import Section
from sourdine_reproduction import Result, Settings, Standing, answer, judge
from sourdine_reproduction.errors import ERRORS, Effect, errors
from sourdine_reproduction.pages import by_source, contents, source_page, write_pages

VERDICTS = (
    judge("slides.staircase", finding="1.332", standing=Standing.WRONG, why="It is more."),
    answer("slides.biased", finding="no"),
    judge("thesis.steps", finding="14070", standing=Standing.REPRODUCED),
)


def result(name: str, *verdicts: int) -> Result:
    return Result(
        name=name,
        title=f"About {name}",
        lead=f"Lead of {name}.",
        verdicts=tuple(VERDICTS[each] for each in verdicts),
        sections=(Section(title=f"Inside {name}"),),
    )


def test_contents_lead_to_every_page_and_errors_come_last() -> None:
    results = [errors.run(Settings()), result("zebra", 0, 1), result("yak", 2)]
    page = contents(results)
    assert [file for section in page.sections for _, file in section.links] == [
        "thesis_learning.html",
        "slides.html",
        "zebra.html",
        "yak.html",
        "errors.html",
    ]
    html = page.html()
    assert "2 statements of the source documents" in html
    assert "1 questions that they leave open" in html
    assert '<a href="slides.html">' in html
    assert "QUICK" not in html
    assert "QUICK" in contents(results, quick=True).html()


def test_verdicts_are_counted_once_and_questions_apart() -> None:
    table = contents([result("one", 0, 1), result("two", 2)]).sections[0].tables[0]
    last = dict(zip(table.columns, table.rows[-1], strict=True))
    assert (last["wrong"], last["reproduced"], last["true, but loose"]) == (1, 1, 0)
    assert (last["statements"], last["questions answered"]) == (2, 1)


def test_a_source_has_its_statements_in_its_own_order_and_words(tmp_path: Path) -> None:
    (source, held) = list(by_source(VERDICTS).items())[1]
    page = source_page(source, held)
    first, second = page.sections
    assert first.title.startswith("1. Two coins")
    assert "« L'estimateur est-il biaisé ? On peut espérer que non ! »" in first.paragraphs[0]
    assert first.paragraphs[2].startswith("Left open, answered here.")
    assert second.paragraphs[1:] == ("Published: ε. Here: 1.332.", "Wrong. It is more.")
    assert "Couchot" in page.lead
    assert write_pages([result("zebra", 0)], tmp_path).name == "all.html"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.html", "slides.html"]


def test_every_error_says_what_is_right_and_what_follows() -> None:
    assert len({(each.place, each.says) for each in ERRORS}) == len(ERRORS)
    assert all(each.says and each.right for each in ERRORS)
    assert {each.effect for each in ERRORS} == set(Effect)
    told = errors.run(Settings())
    assert str(len(ERRORS)) in told.lead
    assert len(told.sections[0].tables[0].rows) == len(ERRORS)
    assert "Verdicts" not in [section.title for section in told.all_sections()]
