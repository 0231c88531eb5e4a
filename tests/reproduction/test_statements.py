import csv
from collections import Counter
from pathlib import Path

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine_reproduction import SOURCES, STATEMENTS, Standing, answer, judge
from sourdine_reproduction.registry import ANSWERED
from sourdine_reproduction.statements import MEANING

CHAPTER = Path(__file__).parents[2] / "docs" / "reproduced"


def kept(name: str) -> list[dict[str, str]]:
    with (CHAPTER / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_statement_has_a_place_and_words_in_both_languages() -> None:
    assert len(SOURCES) == 6
    for each in STATEMENTS.values():
        assert all((each.place, each.sentence, each.english, each.claim, each.published)), each.name
        assert len(each.sentence) < 260, each.name  # a short quotation
    assert len({each.claim for each in STATEMENTS.values()}) == len(STATEMENTS)
    assert set(MEANING) == set(Standing)


def test_the_chapter_judges_every_statement_once_and_answers_every_question() -> None:
    rows = kept("verdicts.csv")
    assert Counter(row["statement"] for row in rows) == Counter(list(STATEMENTS))
    for row in rows:
        said = STATEMENTS[row["statement"]]
        assert row["verdict"] in ({ANSWERED} if said.question else set(map(str, Standing)))
        assert (row["sentence"], row["published"]) == (said.sentence, said.published)


def test_its_pages_quote_what_the_statements_hold() -> None:
    for source in SOURCES:
        page = (CHAPTER / f"{source.name}.md").read_text(encoding="utf-8").replace("\\", "")
        for each in STATEMENTS.values():
            assert (f"« {each.sentence} »" in page) is (each.source is source), each.name


def test_whatever_was_judged_before_has_become_of_something_or_has_a_reason() -> None:
    rows = kept("all_changes.csv")
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
