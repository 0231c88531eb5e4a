from sourdine.experiments.registry import ClaimVerdict, Result, Settings, Standing
from sourdine.experiments.summary import ERRORS, Effect, errors, whole
from sourdine.report.pages.page import Section


def result(name: str, *standings: Standing) -> Result:
    return Result(
        name=name,
        title=f"About {name}",
        lead=f"Lead of {name}.",
        verdicts=tuple(
            ClaimVerdict(claim="c", published="1", found="2", standing=each) for each in standings
        ),
        sections=(Section(title=f"Inside {name}"),),
    )


def test_all_results_come_on_one_page_with_contents() -> None:
    results = [errors.run(Settings()), result("zebra", Standing.WRONG, Standing.REPRODUCED)]
    page = whole(results)
    assert [each.chapter for each in page.sections if each.chapter] == ["zebra", "errors"]
    html = page.html()
    assert html.index('href="#zebra"') < html.index('id="zebra"') < html.index('id="errors"')
    assert "Lead of zebra." in html
    assert "2 published statements" in html
    assert "QUICK" not in html
    assert "QUICK" in whole(results, quick=True).html()


def test_verdicts_are_counted() -> None:
    found = whole([result("one", Standing.WRONG, Standing.WRONG), result("two", Standing.LOOSE)])
    table = found.sections[0].tables[0]
    last = dict(zip(table.columns, table.rows[-1], strict=True))
    assert (last["wrong"], last["true, but loose"], last["reproduced"]) == (2, 1, 0)


def test_every_error_says_what_is_right_and_what_follows() -> None:
    assert len({(each.place, each.says) for each in ERRORS}) == len(ERRORS)
    assert all(each.says and each.right for each in ERRORS)
    assert {each.effect for each in ERRORS} == set(Effect)
    told = errors.run(Settings())
    assert str(len(ERRORS)) in told.lead
    assert len(told.sections[0].tables[0].rows) == len(ERRORS)
    assert "Verdicts" not in [section.title for section in told.told()]
