import json

from sourdine.core.display import picture
from sourdine.learning.memory.lines import fits, jumps
from sourdine.learning.memory.table import grid
from sourdine.report.pages.training import memory_page
from tests.learning.memory.test_table import made


def test_the_page_says_what_an_example_takes_and_shows_every_stage() -> None:
    rows = [made(case) for case in grid([8, 64], [4, 8, 15, 16, 17], [1, 2], side=64)]
    fitted = fits(rows)
    page = memory_page(rows, fitted, jumps(fitted))
    assert page.title.startswith("Memory of training: an example more takes 13 B with privacy")
    stages = next(section for section in page.sections if section.title.startswith("Stage"))
    (table,) = stages.tables
    assert len(table.rows) == 8
    assert table.rows[0][3] == "100 HU"
    assert table.rows[-1][5] == "108,500 (2 + BS) HU"
    powers = page.sections[-1]
    assert len(powers.tables[0].rows) == 2 * 4 * 2  # two ways of training, four quantities, two steps
    assert "no jump" in powers.figures[0].title
    for section in page.sections:
        for figure in section.figures:
            assert picture(figure).startswith(b"\x89PNG")
    assert "64 hidden units, images of 64 pixels" in json.dumps(
        [each.tables[0].note for each in page.sections]
    )


def test_a_single_batch_is_shown_without_lines() -> None:
    rows = [made(case) for case in grid([8], [4], [1], side=32)]
    page = memory_page(rows, fits(rows), [])
    assert [section.title for section in page.sections] == ["Stage by stage, beside Gervais (2020)"]


def test_jumps_are_named_in_the_title() -> None:
    rows = [made(case, jump_at=16) for case in grid([8], [4, 8, 15, 16, 17], [1], side=32)]
    fitted = fits(rows)
    assert "jumps of up to" in memory_page(rows, fitted, jumps(fitted)).sections[-1].figures[1].title
