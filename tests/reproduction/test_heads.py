from pathlib import Path

import pytest

from sourdine.report.view import Cell
from sourdine_reproduction import Result, Settings, Standing, find_experiments
from sourdine_reproduction.budget.flowers import ROWS
from tests.reproduction.results import bracket, number, table, verdict


@pytest.fixture(scope="module")
def result() -> Result:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    from sourdine_reproduction.heads import by_epoch, by_epsilon, flowers, setting, table

    patch = pytest.MonkeyPatch()
    patch.setattr(setting, "_QUICK", (300, 100))
    patch.setattr(flowers, "ROWS", ROWS[3:5])  # the two that are understated
    patch.setattr(table, "_rows", lambda settings: ROWS[:2])
    patch.setattr(by_epsilon, "_FEW", (8.0,))
    patch.setattr(by_epoch, "RATES", (0.0, 0.1, 0.5))
    patch.setattr(by_epoch, "BATCHES", (0, 64))
    try:
        return find_experiments()["learning"].run(Settings(quick=True))
    finally:
        patch.undo()


@pytest.mark.slow
def test_flowers_are_not_tested_on_other_images_and_no_row_is_a_guarantee(result: Result) -> None:
    for name in ("plain", "reach", "accuracy"):
        assert verdict(result, f"thesis.flowers.{name}").standing is Standing.UNTESTED
    assert [row[-1] for row in table(result, "published").rows] == ["wrong", "wrong"]
    for row in table(result, "published").rows:
        same, poisson, shuffled = row[7:10]
        assert bracket(poisson).upper < number(same)  # the certified one is closer
        assert bracket(shuffled).upper > 5 * bracket(poisson).upper
        assert row[2] in (10.0, 12.0)


def test_flowers_are_judged_where_they_are_at_hand() -> None:
    from sourdine_reproduction.heads.table import _judged

    rows: list[tuple[Cell, ...]] = [(0, 0, 0, 0, 0, 0, row.accuracy + 1.5, 58.0, 50.0) for row in ROWS]
    plain, reach, accuracy = _judged(rows)
    assert plain.standing is Standing.UNTESTED
    assert (reach.standing, accuracy.standing) == (Standing.REPRODUCED, Standing.REPRODUCED)
    assert accuracy.finding == "45.1 to 58.5 %, off by 1.5 points at most"
    _, reach, accuracy = _judged([(*row[:6], 30.0, 70.0, 50.0) for row in rows])
    assert (reach.standing, accuracy.standing) == (Standing.OTHERWISE, Standing.OTHERWISE)


@pytest.mark.slow
def test_a_table_like_the_published_one_from_made_up_images_says_so(result: Result) -> None:
    (section,) = [each for each in result.sections if "features at hand" in each.title]
    assert section.paragraphs[0].startswith("QUICK: few images")
    assert "MADE-UP images, since MNIST is not at hand" in section.paragraphs[1]
    first, second = table(result, "table").rows
    assert first[:5] == (64, 1.0, 10.0, 0.0008, 6)
    assert second[4] == 5
    assert bracket(first[5]).upper > bracket(second[5]).upper > 1
    for row in (first, second):
        assert all(0 <= number(each) <= 100 for each in row[6:])
        assert number(row[7]) > 60  # shapes are easy, and epsilon is large


@pytest.mark.slow
def test_heads_are_compared_at_the_same_epsilon(result: Result) -> None:
    rows = {row[0]: row[1:] for row in table(result, "by_epsilon").rows}
    assert len(rows) == 3
    assert all(50 < number(accuracy) <= 100 for (accuracy,) in rows.values())


@pytest.mark.slow
def test_a_page_with_five_figures_and_what_is_left_out(result: Result, tmp_path: Path) -> None:
    kept = {path.name for path in result.write(tmp_path)}
    assert {"learning.html", "learning_published.csv", "learning_table.csv", "learning_figure_5.png"} <= kept
    assert "learning_figure_6.png" not in kept
    text = (tmp_path / "learning.html").read_text(encoding="utf-8")
    assert "end highest, at" in text
    assert "sourdine train memory" in text


def test_made_up_images_are_the_same_each_time() -> None:
    torch = pytest.importorskip("torch")
    from sourdine_reproduction.heads.setting import made_up

    first, second = made_up(20, 10), made_up(20, 10)
    assert torch.equal(first.train.inputs, second.train.inputs)
    assert first.train.shape == (1, 28, 28)
    assert float(first.train.inputs.min()) >= 0
    assert float(first.train.inputs.max()) <= 1
    assert first.test is not None
    assert len(first.test) == 10


def test_memory_of_another_program_is_not_tested() -> None:
    from sourdine_reproduction.heads.memory import _verdicts

    added, images = _verdicts(0.5)
    assert added.standing is Standing.UNTESTED
    assert "0.50 MB" in added.finding
    assert images.standing is Standing.WRONG
    assert (
        "9,633,792 bytes" in images.finding
    )  # four bytes for each of 224 x 224 x 3 values, 64 images, a quarter
