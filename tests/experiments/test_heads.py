from pathlib import Path

import pytest

from sourdine.experiments import Result, Settings, Standing, find_experiments
from sourdine.experiments.budget.flowers import ROWS
from tests.experiments.results import table, verdict


@pytest.fixture(scope="module")
def result() -> Result:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    from sourdine.experiments.heads import by_epoch, by_epsilon, flowers, setting, table

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


def test_every_published_row_has_a_verdict_and_none_is_a_guarantee(result: Result) -> None:
    for number, published, same in ((1, "6.2", "7.33"), (2, "5.8", "6.81")):
        found = verdict(result, f"row {number}:")
        assert found.published == published
        assert found.found.startswith(same)
        assert found.standing is Standing.UNDERSTATED
        assert "with Poisson batches; as batches were drawn, between" in found.why
    assert verdict(result, "are guarantees").standing is Standing.WRONG
    for row in table(result, "published").rows:
        same, poisson, shuffled = row[7:10]
        assert poisson.upper < same  # the certified one is closer
        assert shuffled.upper > 5 * poisson.upper
        assert row[2] in (10.0, 12.0)


def test_a_table_like_the_published_one_from_made_up_images_says_so(result: Result) -> None:
    (section,) = [each for each in result.sections if "features at hand" in each.title]
    assert section.paragraphs[0].startswith("QUICK: few images")
    assert "MADE-UP images, since MNIST is not at hand" in section.paragraphs[1]
    first, second = table(result, "table").rows
    assert first[:5] == (64, 1.0, 10.0, 0.0008, 6)
    assert second[4] == 5
    assert first[5].upper > second[5].upper > 1
    for row in (first, second):
        assert all(0 <= each <= 100 for each in row[6:])
        assert row[7] > 60  # shapes are easy, and epsilon is large


def test_heads_are_compared_at_the_same_epsilon(result: Result) -> None:
    rows = {row[0]: row[1:] for row in table(result, "by_epsilon").rows}
    assert len(rows) == 3
    assert all(50 < accuracy <= 100 for (accuracy,) in rows.values())


def test_a_page_with_five_figures_and_what_is_left_out(result: Result, tmp_path: Path) -> None:
    kept = {path.name for path in result.write(tmp_path)}
    assert {"learning.html", "learning_published.csv", "learning_table.csv", "learning_figure_5.png"} <= kept
    assert "learning_figure_6.png" not in kept
    text = (tmp_path / "learning.html").read_text(encoding="utf-8")
    assert "end highest, at" in text
    assert "sourdine train memory" in text


def test_made_up_images_are_the_same_each_time() -> None:
    torch = pytest.importorskip("torch")
    from sourdine.experiments.heads.setting import made_up

    first, second = made_up(20, 10), made_up(20, 10)
    assert torch.equal(first.train.inputs, second.train.inputs)
    assert first.train.shape == (1, 28, 28)
    assert float(first.train.inputs.min()) >= 0
    assert float(first.train.inputs.max()) <= 1
    assert first.test is not None
    assert len(first.test) == 10


def test_memory_that_privacy_adds_is_judged_by_its_slope() -> None:
    from sourdine.experiments.heads.memory import _verdict

    assert _verdict({True: 4.0, False: 3.5}).standing is Standing.OVERSTATED
    assert _verdict({True: 4.0, False: 3.5}).found == "0.50 MB"
    assert _verdict({True: 60.0, False: 3.5}).standing is Standing.REPRODUCED
