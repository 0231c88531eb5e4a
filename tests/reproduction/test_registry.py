import csv
from pathlib import Path

import pytest

from sourdine.report import Section, TextTable
from sourdine_reproduction import (
    Result,
    Settings,
    Standing,
    compare,
    experiment,
    find_experiments,
    judge,
    registry,
)
from tests.errors import refusal_of


def result() -> Result:
    table = TextTable(name="squares", title="Squares", columns=("x", "y"), rows=((1, 1), (2, 4)))
    verdict = judge("thesis.order", finding="4", standing=Standing.OTHERWISE, why="Count.")
    section = Section(title="Numbers", tables=(table,))
    return Result(name="toy", title="A toy", lead="Small.", verdicts=(verdict,), sections=(section,))


def test_every_experiment_is_found_by_name_and_in_order() -> None:
    known = find_experiments()
    assert list(known) == sorted(known)
    assert {"budget", "meaning"} <= set(known)
    assert all(each.name == name and each.title for name, each in known.items())


def test_a_name_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KNOWN", dict(find_experiments()))

    def mine(settings: Settings) -> Result:
        return result()

    with refusal_of("name", "experiment"):
        experiment("budget", "Another")(mine)
    toy = experiment("toy", "A toy")(mine)
    assert find_experiments()["toy"] is toy
    assert toy.run(Settings()) == result()


def test_the_page_begins_with_the_verdicts_and_tables_are_kept(tmp_path: Path) -> None:
    kept = result().write(tmp_path / "new" / "folder")
    assert [path.name for path in kept] == ["toy.html", "toy_verdicts.csv", "toy_squares.csv"]
    page = kept[0].read_text(encoding="utf-8")
    assert page.index("Verdicts") < page.index("not reproduced") < page.index("Squares")
    with kept[2].open(encoding="utf-8") as file:
        assert list(csv.DictReader(file)) == [{"x": "1", "y": "1"}, {"x": "2", "y": "4"}]


@pytest.mark.parametrize(
    ("published", "found", "standing"),
    [
        ("1.17", 1.1663, Standing.REPRODUCED),
        ("1.17", 1.164, Standing.WRONG),
        ("13", 13.4, Standing.REPRODUCED),
        ("13", 13.6, Standing.WRONG),
        ("5.0", 4.994, Standing.REPRODUCED),
    ],
)
def test_numbers_are_compared_at_their_published_digits(
    published: str, found: float, standing: Standing
) -> None:
    assert compare(published, found) is standing
