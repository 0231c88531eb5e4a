import csv
import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine_reproduction import SOURCES, STATEMENTS, Standing, answer, judge
from sourdine_reproduction.registry import ANSWERED
from sourdine_reproduction.statements import MEANING

DOCS = Path(__file__).parents[2] / "docs"
VERDICTS = DOCS / "reproduced" / "verdicts.csv"


def read_rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def chapter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of the sources, as they are made from the verdicts that are kept."""
    folder = tmp_path_factory.mktemp("chapter")
    script = importlib.util.spec_from_file_location("reproduced", DOCS / "generate" / "reproduced.py")
    assert script is not None
    assert script.loader is not None
    made = importlib.util.module_from_spec(script)
    script.loader.exec_module(made)
    (folder / VERDICTS.name).write_bytes(VERDICTS.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "CHAPTER", folder)
        patch.setattr(sys, "argv", ["reproduced.py", str(folder / "no results")])
        made.main()
    return folder


def test_every_statement_has_a_place_and_words_in_both_languages() -> None:
    assert len(SOURCES) == 6
    for each in STATEMENTS.values():
        assert all((each.place, each.sentence, each.english, each.claim, each.published)), each.name
        assert len(each.sentence) < 260, each.name  # a short quotation
    assert len({each.claim for each in STATEMENTS.values()}) == len(STATEMENTS)
    assert set(MEANING) == set(Standing)


def test_the_chapter_judges_every_statement_once_and_answers_every_question() -> None:
    rows = read_rows(VERDICTS)
    assert Counter(row["statement"] for row in rows) == Counter(list(STATEMENTS))
    for row in rows:
        said = STATEMENTS[row["statement"]]
        assert row["verdict"] in ({ANSWERED} if said.question else set(map(str, Standing)))
        assert (row["sentence"], row["published"]) == (said.sentence, said.published)


def test_its_pages_quote_what_the_statements_hold(chapter: Path) -> None:
    for source in SOURCES:
        page = (chapter / f"{source.name}.md").read_text(encoding="utf-8").replace("\\", "")
        for each in STATEMENTS.values():
            assert (f"« {each.sentence} »" in page) is (each.source is source), each.name


def test_whatever_was_judged_before_has_become_of_something_or_has_a_reason(chapter: Path) -> None:
    rows = read_rows(chapter / "all_changes.csv")
    assert all(row["before"] == row["after"] for row in rows if not row["why it changed"])
    assert {"understated", "overstated"} & {row["after"] for row in rows} == set()
    numbers = [word for row in rows for word in row["why it changed"].split() if word == "Counted"]
    assert len(numbers) == 14  # thirteen rows of a table, and one more


def test_a_question_has_no_verdict_and_a_statement_has_one() -> None:
    assert answer("slides.total", finding="9").word == ANSWERED
    with pytest.raises(InvalidParameter, match="be none for a question"):
        judge("slides.total", finding="9", standing=Standing.WRONG)
    with pytest.raises(InvalidParameter, match="be none for a question"):
        answer("thesis.steps", finding="14070")
    with pytest.raises(KeyError):
        judge("thesis.gossip", finding="", standing=Standing.WRONG)
