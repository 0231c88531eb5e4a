import csv
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import typer
from typer.testing import CliRunner, Result

from sourdine.accounting.ledger import Ledger, RenyiBudget, Terms
from sourdine.cli import train
from sourdine.cli.shared import show
from sourdine.cli.shared.app import OneSentence
from sourdine.cli.train.lists import Lists
from sourdine.cli.train.model import ModelOptions
from sourdine.cli.train.progress import sweep_bar
from sourdine.cli.train.sweep_report import cost_words
from sourdine.core.distance import Neighbours
from sourdine.learning import Progress
from sourdine.learning.sweep.run import Swept
from sourdine.learning.sweep.settings import Sweep, product
from tests.learning.idx_files import write_digits

app = typer.Typer(cls=OneSentence)
app.add_typer(train.app, name="train")
app.callback()(lambda: None)
SMALL = ("-m", "linear", "-b", "50,100", "-e", "2", "-n", "2", "--delta", "1e-3", "--lr", "0.1,0.5")


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("data") / "digits", 200, 50)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: object, code: int = 0) -> Result:
    torch.set_num_threads(1)
    result = CliRunner().invoke(app, ["train", "sweep", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_sweep_writes_means_curves_and_a_page_and_says_what_it_cost(digits: Path, here: Path) -> None:
    said = " ".join(run(digits, *SMALL, "--repeats", 2).stdout.split())
    assert "8 runs: 4 settings, 2 of each." in said
    assert "Nothing was paid from a ledger: these results are not protected" in said
    assert "Papernot and Steinke 2022, theorem 2" in said
    rows = rows_of(here / "sweep.csv")
    assert list(rows[0])[:5] == ["learning_rate", "batch_size", "n_epochs", "accuracy", "n_times_for_avg"]
    assert {(row["learning_rate"], row["batch_size"]) for row in rows} == {
        (rate, batch) for rate in ("0.1", "0.5") for batch in ("50", "100")
    }
    curves = rows_of(here / "sweep.epochs.csv")
    assert len(curves) == 4 * 2 * 2
    last = [float(row["accuracy"]) for row in curves if row["epoch"] == "2" and row["batch_size"] == "50"]
    means = [float(row["accuracy"]) for row in rows if row["batch_size"] == "50"]
    assert sum(last) / 4 == pytest.approx(sum(means) / 2)
    assert "What it cost" in (here / "sweep.html").read_text(encoding="utf-8")
    again = run(digits, *SMALL, "--repeats", 2)
    assert "8 of 8 runs had been made before" in again.stdout
    other = run(digits, *SMALL, "--repeats", 3, code=2)
    assert "is of a sweep with another 'repeats'" in other.stderr
    other = run(digits, *SMALL, "--repeats", 2, "--lr", "0.1", code=2)
    assert "is of a sweep with another 'learning_rate'" in other.stderr


PAID = ("--repeats", "2", "--output", "killed.csv", "--ledger", "paid.ledger")


def open_ledger(here: Path) -> None:
    terms = Terms(
        budget=RenyiBudget(limit=10**4, order=4), unit="example", neighbours=Neighbours.ADD_REMOVE, delta=1e-3
    )
    Ledger.create(here / "paid.ledger", terms).close()


def check_it_goes_on(here: Path, words: list[str]) -> None:
    """From a journal that ends half way: no run is repeated, and nothing is paid again."""
    journal = here / "killed.journal"
    before = journal.read_text().splitlines()[1:]
    assert 2 <= len(before) < 8
    found = json.loads(run(*words, "--json").stdout)
    assert found["resumed"] == len(before)
    lines = journal.read_text().splitlines()[1:]
    assert lines[: len(before)] == before
    done = [(line["setting"], line["repeat"]) for line in map(json.loads, lines)]
    assert len(done) == len(set(done)) == 8
    with Ledger.open(here / "paid.ledger") as ledger:
        assert len(ledger.history()) == 1
    assert found["line"] == 1


@pytest.mark.slow
def test_cut_half_way_it_goes_on_without_repeating_a_run(digits: Path, here: Path) -> None:
    """As if it had ended after three runs, when nothing but the journal was there yet."""
    words = [str(digits), *SMALL, *PAID]
    open_ledger(here)
    run(*words)
    for name in ("killed.csv", "killed.epochs.csv", "killed.html"):
        (here / name).unlink()
    journal = here / "killed.journal"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:4]))
    check_it_goes_on(here, words)


@pytest.mark.slow
def test_killed_half_way_it_goes_on_without_repeating_a_run(digits: Path, here: Path) -> None:
    """The whole process group is killed as soon as some runs are finished, and others are not."""
    words = [str(digits), *SMALL, *PAID]
    open_ledger(here)
    journal = here / "killed.journal"
    begun = subprocess.Popen(
        [sys.executable, "-c", "from sourdine.cli import main; main()", "train", "sweep", *words],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    try:
        while begun.poll() is None and (not journal.exists() or len(journal.read_bytes().splitlines()) < 3):
            time.sleep(0.005)
    finally:
        os.killpg(begun.pid, signal.SIGKILL)
    assert begun.wait() == -signal.SIGKILL
    check_it_goes_on(here, words)


@pytest.mark.slow
def test_some_settings_at_random_are_the_same_when_it_goes_on(digits: Path, here: Path) -> None:
    first = json.loads(run(digits, *SMALL, "--random", 2, "--json").stdout)
    assert len(first["settings"]) == 2
    again = json.loads(run(digits, *SMALL, "--random", 2, "--json").stdout)
    assert again["settings"] == first["settings"]
    assert again["resumed"] == 2
    assert "another" in run(digits, *SMALL, "--random", 3, code=2).stderr


@pytest.mark.slow
def test_hidden_units_and_budgets(digits: Path, here: Path) -> None:
    words = ("-m", "mlp", "--hidden", "4,8", "-b", 50, "-e", 1, "--epsilon", "2,8", "--delta", "1e-3")
    found = json.loads(run(digits, *words, "--json").stdout)
    assert {(row["hidden_units"], row["epsilon_asked"]) for row in found["settings"]} == {
        (4, 2.0),
        (4, 8.0),
        (8, 2.0),
        (8, 8.0),
    }
    assert all(row["epsilon"] <= row["epsilon_asked"] for row in found["settings"])
    assert found["epsilon_of_all"]["upper"] > 8


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("-n", "1", "--epsilon", "1"),
            "'epsilon' of train sweep must be listed, or else 'noise-multiplier'",
        ),
        ((), "'epsilon' of train sweep must be listed, or else 'noise-multiplier'"),
        (("-n", "1", "--lr", "0.1,0.1"), "'learning-rate' of train sweep must list each value once"),
        (("-n", "1", "--lr", "0.1,x"), "'learning-rate' of train sweep must be a finite number"),
        (("-n", "1", "-b", "2.5"), "'batch-size' of train sweep must list whole numbers"),
        (("-n", "1"), "'batch-size' of train sweep must be listed for this model"),
        (("-n", "1", "--hidden", "3"), "'hidden' of train sweep must be left out for the model linear"),
        (("-n", "1", "-b", "5", "--random", "2"), "'random' of train sweep must lie between 1 and 1"),
        (("-n", "1", "-b", "5", "--sampler", "x"), "'sampler' of train sweep must be one of poisson"),
        (("-n", "1", "-b", "5", "--output", "x.txt"), "'output' of train sweep must end in .csv"),
        (("-n", "1", "-b", "5", "-m", "least-squares"), "'model' of train sweep must be trained in steps"),
    ],
)
def test_what_makes_no_sense_is_refused(digits: Path, here: Path, words: tuple[str, ...], told: str) -> None:
    model = () if "-m" in words else ("-m", "linear")
    shown = run(digits, *model, *words, code=2)
    assert told in " ".join(shown.stderr.split())
    assert not list(here.iterdir())


def test_results_of_others_are_not_written_over_and_a_table_needs_a_test(digits: Path, here: Path) -> None:
    (here / "sweep.csv").write_text("mine")
    assert "which is not written over" in run(digits, *SMALL, code=2).stderr
    (here / "people.csv").write_text("age,ill\n30,yes\n")
    (here / "people.toml").write_text(
        '[columns.age]\ntype = "integer"\nlower = 0\nupper = 100\n\n[columns.ill]\ntype = "flag"\n'
    )
    words = ("people.csv", "--target", "ill", *SMALL, "--output", "other.csv")
    assert "Name some with --test." in run(*words, code=2).stderr


def _of(count: int) -> Sweep:
    rates = [0.1 * (place + 1) for place in range(count)]
    settings = product(learning_rate=rates, batch_size=[50], epochs=[2], clip=[1.0], noise_multiplier=[2.0])
    return Sweep(settings=settings, repeats=1, size=200, delta=1e-3)


def _cost(sweep: Sweep) -> str:
    return " ".join(cost_words(Swept(sweep=sweep, runs=(), line=None, before=0)))


def test_the_smaller_of_two_prices_is_told() -> None:
    few, many = _of(2), _of(40)
    assert few.epsilon_of_best > few.epsilon.upper
    assert many.epsilon_of_best < many.epsilon.upper
    assert "That all runs are added up is the smaller price here" in _cost(few)
    assert f"{few.epsilon_of_best:.4g}" not in _cost(few)
    assert f"It would be epsilon {many.epsilon_of_best:.4g} if" in _cost(many)
    assert "Papernot" not in _cost(_of(1))
    assert "runs" not in _cost(_of(1))


def test_what_is_usual_follows_each_budget(digits: Path, here: Path) -> None:
    chosen = ModelOptions().choose("sweep")
    read = partial(Lists.read, chosen, batches=None, noises=None, clips=None, hidden=None)
    found = read(rates=None, epochs=None, epsilons="1,2,3").settings(800)
    assert [(each.epsilon, each.epochs, each.learning_rate, each.batch_size) for each in found] == [
        (1.0, 25, 0.25, 100),
        (2.0, 40, 0.5, 100),
        (3.0, 40, 0.5, 100),
    ]
    stated = read(rates="0.1", epochs="5", epsilons="1,3").settings(800)
    assert [(each.epsilon, each.epochs, each.learning_rate) for each in stated] == [(1, 5, 0.1), (3, 5, 0.1)]


def test_long_sweeps_are_told_in_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([0.0, 1.0, 12.0, 13.0])
    monkeypatch.setattr(show, "time", SimpleNamespace(monotonic=lambda: next(times)))
    made = _of(3)
    with sweep_bar(made) as bar:
        bar.begins(made.settings[1], 1)
        bar.moved(Progress(step=3, steps=8, epoch=0, epsilon=1.0))
        bar.moved(Progress(step=4, steps=8, epoch=1, epsilon=1.0, accuracy=0.5))
    assert capsys.readouterr().err == "run 2 of 3 (rate 0.2): 11 of 24 steps\n"
