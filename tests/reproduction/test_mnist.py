from pathlib import Path

import pytest

from sourdine_reproduction import Result, Settings, Standing, find_experiments
from sourdine_reproduction.mnist.accuracy import _verdicts
from sourdine_reproduction.mnist.runs import NAMES, OURS, PLAIN, PRIVATE, RunsOutcome
from tests.learning.idx_files import write_digits
from tests.reproduction.results import bracket, number, table


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Result:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    data = tmp_path_factory.mktemp("data")
    write_digits(data / "mnist", 600, 100)
    return find_experiments()["mnist"].run(Settings(quick=True, data=data))


def test_without_images_the_accounting_is_there_and_what_is_missing_is_said() -> None:
    result = find_experiments()["mnist"].run(Settings(quick=True))
    assert not result.verdicts
    priced = {row[1]: bracket(row[2]) for row in table(result, "accounting").rows[1:]}
    assert 0.4 < priced["Poisson"].lower <= priced["Poisson"].upper < 0.611  # which 15 epochs cost
    assert priced["shuffled epochs, as in the source"].upper > 10
    said = result.sections[-1].paragraphs[0]
    assert "train-images-idx3-ubyte" in said
    assert "--data" in said


@pytest.mark.slow
def test_a_quick_run_says_that_it_is_one_and_judges_nothing(learnt: Result) -> None:
    assert learnt.sections[0].paragraphs[0].startswith("QUICK: fewer images")
    assert not learnt.verdicts
    rows = {row[0]: row for row in table(learnt, "accuracy").rows}
    assert tuple(rows) == NAMES
    assert rows[PLAIN][2] == "none"
    for epsilon, name in OURS.items():
        assert 0.95 * epsilon < number(rows[name][2]) <= epsilon
        assert "Poisson" in str(rows[name][1])
    assert rows[PRIVATE][3] is None  # nothing to compare with
    assert all(0 <= number(row[4]) <= 100 for row in rows.values())
    assert number(rows[OURS[3]][4]) > 50  # bars are easy


@pytest.mark.slow
def test_the_page_is_written_with_figures_and_tables(learnt: Result, tmp_path: Path) -> None:
    kept = {path.name for path in learnt.write(tmp_path)}
    assert {"mnist.html", "mnist_accuracy.csv", "mnist_accounting.csv", "mnist_figure_2.png"} <= kept
    text = (tmp_path / "mnist.html").read_text(encoding="utf-8")
    assert "Accuracy against the ε spent so far" in text


def outcome(name: str, *accuracies: float) -> RunsOutcome:
    return RunsOutcome(
        name=name, epsilon=1.0, settings="", accuracies=accuracies, seconds=(1.0,), curve=((1, 0.5, 90.0),)
    )


def test_verdicts_follow_from_the_means() -> None:
    found = {PLAIN: outcome(PLAIN, 0.99, 0.992), PRIVATE: outcome(PRIVATE, 0.94, 0.95)}
    found |= {name: outcome(name, 0.982, 0.983) for name in OURS.values()}
    plain, private, lost, spread = _verdicts(found)
    assert plain.standing is Standing.REPRODUCED
    assert plain.finding == "99.10 ± 0.14 %"
    assert private.standing is Standing.OTHERWISE
    assert lost.statement.published == "8 points (8.1 %)"
    assert lost.finding == "4.6 points (4.6 %) with the same settings"
    assert "0.85 points at ε = 1, 0.85 points at ε = 3" in lost.why
    assert spread.finding == "5.00 times, from 2 and 2 runs"
    # two runs each: the 97.5 % point of F(1, 1) is 647.8
    assert "from 0.2 to 1.3e+02 times" in spread.why
    assert spread.standing is Standing.REPRODUCED


def test_the_printed_loss_does_not_follow_from_what_it_is_the_difference_of() -> None:
    most, least = 99.05, 91.15  # what 99.0 and 91.2 may have been rounded from
    assert round(100 * (most - least) / most, 1) < 8.1
