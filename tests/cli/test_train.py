import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner, Result

from sourdine.accounting.certificate import Certificate, verify_release
from sourdine.accounting.ledger import Ledger, RenyiBudget, Terms
from sourdine.cli import train
from sourdine.cli.shared.app import OneSentence
from sourdine.cli.train.model import ModelOptions
from sourdine.cli.train.progress import say_progress, training_bar
from sourdine.core.distance import Neighbours
from sourdine.learning import Progress, TrainingPlan, plan
from sourdine.learning.models import linear
from tests.learning.idx_files import write_digits

app = typer.Typer(cls=OneSentence)
app.add_typer(train.app, name="train")
app.callback()(lambda: None)
BUDGET = ("--epsilon", "8", "--delta", "1e-3", "--batch-size", "50", "--epochs", "3")
PEOPLE = """\
[columns.age]
type = "integer"
lower = 0
upper = 100

[columns.ill]
type = "flag"
"""


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_digits(tmp_path_factory.mktemp("data") / "digits", 200, 50)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: object, code: int = 0) -> Result:
    torch.set_num_threads(1)
    result = CliRunner().invoke(app, ["train", *map(str, words)])
    assert result.exit_code == code, result.output
    return result


def accuracy_in(said: str) -> float:
    found = re.search(r"Accuracy +([\d.]+) %", said)
    assert found is not None
    return float(found[1])


def ledger_at(path: Path, limit: int = 1000) -> Path:
    budget = RenyiBudget(limit=limit, order=4)
    terms = Terms(budget=budget, unit="example", neighbours=Neighbours.ADD_REMOVE, delta=1e-3)
    Ledger.create(path, terms).close()
    return path


def test_help_and_what_there_is() -> None:
    assert {"plan", "fit"} <= set(re.findall(r"\w+", run().stdout))


def test_a_plan_from_numbers_alone() -> None:
    found = json.loads(run("plan", "-s", 60000, "-m", "cnn", "-n", 1, "-e", 15, "-b", 64, "--json").stdout)
    assert found["steps"] == 14070
    assert found["epsilon"]["lower"] <= 0.6111 <= found["epsilon"]["upper"]  # known from the accounting
    assert found["parameters"] == 26010
    assert found["memory"] > 0
    assert found["seconds"] > 0


def test_options_of_0_1_are_read_and_told() -> None:
    sizes = ("plan", "-s", 1000, "-m", "linear", "-e", 1, "--delta", "1e-4")
    old = run(*sizes, "--noise", 1, "--batch=50", "--json")
    assert json.loads(old.stdout)["batch_size"] == 50
    told = " ".join(old.stderr.split())
    assert "'--noise' is called '--noise-multiplier' now" in told
    assert "'--batch' is called '--batch-size' now" in told


def test_a_plan_for_data_chooses_noise_and_batch(digits: Path) -> None:
    said = run("plan", digits, "--epsilon", 3, "--delta", "1e-3", "--memory", 64).stdout
    assert re.search(r"Units +200\n", said)
    assert re.search(r"Epsilon +(3|2\.99\d*) at delta 0\.001, add-remove neighbours", said)
    assert re.search(r"Parameters +39,700", said)
    assert "It holds if:" in said


@pytest.mark.slow
def test_a_model_is_paid_and_handed_over_with_its_certificate(digits: Path, here: Path) -> None:
    ledger = ledger_at(here / "digits.ledger")
    loud = ("--epsilon", 80, "--delta", "1e-3", "-b", 50, "-e", 5)  # hardly any noise: it must learn
    words = ("fit", digits, *loud, "--ledger", ledger, "--cache", here / "kept", "-o", "made")
    said = run(*words).stdout
    assert "Paid from the ledger, line 1." in said
    accuracy = accuracy_in(said)
    assert accuracy > 80
    state = torch.load(here / "made/model.pt", weights_only=True)
    model = linear((3969,), 10)
    model.load_state_dict(state)
    kept = sorted((here / "kept").iterdir())
    assert len(kept) == 2
    card = (here / "made/card.md").read_text()
    assert "| model | scattering |" in card
    assert "computed image by image" in card
    certificate = Certificate.from_json((here / "made/certificate.json").read_text())
    with Ledger.open(ledger) as opened:
        certificate.verify(opened)
        assert len(opened.history()) == 1
    assert set(certificate.digests) == {"model.pt", "card.md", "runs.json"}
    assert verify_release(here / "made", ledger=ledger).good
    assert json.loads((here / "made/runs.json").read_text())["mean"] == pytest.approx(accuracy / 100)
    again = run(*words, code=2)
    assert again.stderr.strip().endswith("which is not written over. Name another folder with -o.")
    with Ledger.open(ledger) as opened:
        assert len(opened.history()) == 1


def test_a_head_on_kept_features_of_reduced_images(digits: Path, here: Path) -> None:
    words = ("--features", "random", "--reduce", 2, "--patches", 2, "--cache", here / "kept", "--single")
    head = ("--model", "mlp", "--hidden", 8, "--extra-layer", 6, "-o", "made", "--json")
    found = json.loads(run("fit", digits, *BUDGET, *words, *head).stdout)
    assert found["epsilon"]["upper"] <= 8
    state = torch.load(here / "made/model.pt", weights_only=True)
    shapes = [tuple(value.shape) for value in state.values()]
    assert shapes == [(8, 256), (8,), (6, 8), (6,), (10, 6), (10,)]  # 2 x 32 filters over 2 x 2 patches
    card = (here / "made/card.md").read_text()
    assert "| model | mlp on random features |" in card
    assert "reduced to 1/2 of their height and width" in card
    kept = list((here / "kept").iterdir())
    assert len(kept) == 2
    assert all(path.stat().st_mode & 0o077 == 0 for path in kept)
    assert {str(np.load(path).dtype) for path in kept} == {"float32"}


def test_least_squares_is_one_release(digits: Path, here: Path) -> None:
    ledger = ledger_at(here / "digits.ledger")
    words = ("fit", digits, "--features", "random", "--model", "least-squares", "--epsilon", 50)
    said = run(*words, "--delta", "1e-3", "--ledger", ledger, "-o", "made").stdout
    assert re.search(r"Equations +1,024 features and a constant, 10 classes", said)
    assert re.search(r"Epsilon +50 at delta 0\.001, add-remove neighbours|Epsilon +49\.\d+ at", said)
    assert accuracy_in(said) > 60
    assert "Paid from the ledger, line 1." in said
    certificate = Certificate.from_json((here / "made/certificate.json").read_text())
    with Ledger.open(ledger) as opened:
        certificate.verify(opened)
    card = (here / "made/card.md").read_text()
    assert "| model | least-squares on random features |" in card
    told = json.loads((here / "made/runs.json").read_text())
    assert told["private"] is True
    assert told["plan"] is None
    assert told["runs"][0]["line"] == 1


@pytest.mark.slow
def test_repeats_have_a_mean_and_a_deviation_and_cost_more_together(digits: Path, here: Path) -> None:
    words = ("-m", "linear", "--lr", 0.1, "--clip", 2, "--momentum", 0, "--averaging", 0)
    found = json.loads(run("fit", digits, *BUDGET, *words, "--repeats", 2, "--json").stdout)
    accuracies = [each["accuracy"] for each in found["runs"]]
    assert found["mean"] == pytest.approx(sum(accuracies) / 2)
    assert found["deviation"] == pytest.approx(abs(accuracies[0] - accuracies[1]) / 2**0.5)
    assert found["epsilon"]["upper"] <= 8 < found["epsilon_of_all"]["upper"]
    assert len(found["runs"][0]["history"]) == 3
    made = here / "digits-model"
    first, second = (torch.load(made / f"run-{i}/model.pt", weights_only=True) for i in (1, 2))
    assert not torch.equal(first["1.weight"], second["1.weight"])
    assert "| clipping | Flat(norm=2.0) |" in (made / "run-2/card.md").read_text()
    assert not list(made.rglob("certificate.json"))


def test_a_finished_run_is_taken_up_from_its_checkpoint_and_paid_once(digits: Path, here: Path) -> None:
    ledger = ledger_at(here / "digits.ledger")
    words = ("fit", digits, *BUDGET, "-m", "mlp", "--ledger", ledger, "--checkpoint", here / "digits.run")
    run(*words, "-o", "first")
    said = run(*words, "-o", "second").stdout
    assert "Went on from a checkpoint: paid once, with the same epsilon." in said
    states = [torch.load(here / name / "model.pt", weights_only=True) for name in ("first", "second")]
    assert all(torch.equal(states[0][name], value) for name, value in states[1].items())
    with Ledger.open(ledger) as opened:
        assert len(opened.history()) == 1


def test_training_without_privacy_says_so(digits: Path, here: Path) -> None:
    said = run("fit", digits, "--without-privacy", "-m", "cnn", "-e", 1, "-o", "open").stdout
    assert "TRAINED WITHOUT PRIVACY" in said
    assert "Accuracy" in said
    assert "WITHOUT privacy" in (here / "open/card.md").read_text()
    held = json.loads((here / "open/runs.json").read_text())
    assert held["private"] is False
    assert held["epsilon"] is None


def test_a_table_is_learnt_by_its_declarations(here: Path) -> None:
    rows = "".join(f"{age},{str(age > 50).lower()}\n" for age in range(1, 100)) * 5
    for name in ("people.csv", "public.csv"):
        (here / name).write_text("age,ill\n" + rows)
    (here / "people.toml").write_text(PEOPLE)
    words = ("-m", "linear", "--target", "ill", "--test", "public.csv", "--size", 500, *BUDGET, "--json")
    found = json.loads(run("fit", "people.csv", *words).stdout)
    assert found["mean"] > 0.9
    assert found["plan"]["size"] == 500


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("fit", "none", "--epsilon", 1), "There is nothing at none. Check the path."),
        (
            ("fit", "none"),
            "The 'epsilon' of train fit must be given, or else 'noise-multiplier'. Got None.",
        ),
        (
            ("fit", "none", "-m", "oracle", "--epsilon", 1),
            "The 'model' of train fit must be one of cnn, mlp, linear, scattering, vgg13, vgg16, "
            "least-squares. Got 'oracle'.",
        ),
        (
            ("fit", "none", "--epsilon", 1, "--lr", 0),
            "The 'learning-rate' of train fit must lie between 1e-9 and 1,000,000. Got '0'.",
        ),
        (
            ("fit", "none", "--without-privacy", "--epsilon", 1),
            "Training without privacy takes no --epsilon. Leave it out, or leave out --without-privacy.",
        ),
        (
            ("fit", "none", "--epsilon", 1, "--repeats", 0),
            "The 'repeats' of train fit must lie between 1 and 1,000. Got 0.",
        ),
        (
            ("fit", "none", "--model", "least-squares", "--epsilon", 1, "--epochs", 3),
            "Least squares is solved in one release and takes no --epochs. Leave it out, or take "
            "--model linear.",
        ),
        (
            ("fit", "none", "--features", "vgg19", "--epsilon", 1),
            "The 'features' of train fit must be one of scattering, random, vgg13, vgg16. Got 'vgg19'.",
        ),
        (
            ("fit", "none", "--features", "random", "--model", "cnn", "--epsilon", 1),
            "The 'model' of train fit must be linear, mlp or least-squares where features are named. "
            "Got 'cnn'.",
        ),
        (
            ("fit", "none", "--features", "random", "--weights", "w.pth", "--epsilon", 1),
            "The 'weights' of train fit must come with VGG, as features or as the model. Got 'w.pth'.",
        ),
        (
            ("fit", "none", "--reduce", 3, "--epsilon", 1),
            "The 'reduce' of train fit must be one of 1, 2, 4. Got 3.",
        ),
        (
            ("fit", "none", "--hidden", 3, "--epsilon", 1),
            "The 'hidden' of train fit must be left out for the model scattering. Got 3.",
        ),
        (
            ("fit", "none", "-m", "mlp", "--extra-layer", 3, "--epsilon", 1),
            "The 'extra-layer' of train fit must come with 'hidden'. Got 3.",
        ),
        (
            ("fit", "none", "-m", "mlp", "--patches", 3, "--epsilon", 1),
            "The 'patches' of train fit must come with features. Got 3.",
        ),
        (("plan", "--epsilon", 1), "Name the data, or say how many examples there are with --size."),
        (
            ("plan", "--epsilon", 1, "-s", 10, "--shape", "3x"),
            "The 'shape' of train plan must be whole numbers with x between them. Got '3x'. Write 3x32x32.",
        ),
        (
            ("plan", "--epsilon", 1, "-s", 10, "-b", 64),
            "The 'batch_size' of TrainingPlan must not be larger than the data, 10. Got 64. "
            "Batches are parts of the data.",
        ),
        (
            ("plan", "--epsilon", 1, "-s", 100, "--sampler", "luck", "-b", 4),
            "The 'sampler' of TrainingPlan must be one of poisson, fixed, shuffle, truncated, "
            "allocation, cyclic. Got 'luck'.",
        ),
        (
            ("plan", "--epsilon", 1, "-s", 100, "-m", "cnn", "--shape", "12"),
            "This model is for images, with colours, height and width. The examples are of 12. "
            "Take the model mlp or linear.",
        ),
    ],
)
@pytest.mark.usefixtures("here")
def test_bad_input_ends_in_one_sentence(words: tuple[object, ...], sentence: str) -> None:
    result = run(*words, code=2)
    assert result.stderr == sentence + "\n"
    assert result.stdout == ""


def test_a_budget_that_is_spent_trains_nothing(digits: Path, here: Path) -> None:
    ledger = ledger_at(here / "small.ledger", limit=1)
    words = ("fit", digits, "-m", "linear", "--noise-multiplier", 0.5, "-b", 50, "-e", 1, "--ledger", ledger)
    result = run(*words, code=2)
    assert len(result.stderr.strip().splitlines()) == 1
    assert "left" in result.stderr
    assert not list(here.rglob("model.pt"))


def test_torch_is_named_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "sourdine.cli.train.options.find_spec", lambda name: None if name == "torch" else found(name)
    )
    result = run("plan", "-s", 100, "--epsilon", 1, code=2)
    assert result.stderr.startswith("Training needs torch, which is not installed.")


def test_the_bar_tells_epsilon_so_far_and_the_last_accuracy(capsys: pytest.CaptureFixture[str]) -> None:
    now = Progress(step=3, steps=9, epoch=1, epsilon=0.5678)
    assert say_progress(now, []) == "epsilon 0.568 so far"
    assert say_progress(now, [0.5, 0.75]) == "epsilon 0.568 so far, accuracy 75.00 %"
    assert say_progress(Progress(step=1, steps=2, epoch=0, epsilon=float("inf")), []) == "NOT private"
    with training_bar("training") as tell:
        tell(now)
    assert capsys.readouterr().out == ""


def test_a_delta_that_is_too_large_is_told_before_training(digits: Path, here: Path) -> None:
    large = ("-m", "linear", "--epsilon", 8, "--delta", 0.1, "--batch-size", 50, "--epochs", 1)
    told = "WARNING: The delta of 0.1 is above 1 divided by the 200"
    assert run("fit", digits, *large, "-o", "one").stdout.startswith(told)
    assert told in run("plan", digits, *large).stdout
    found = json.loads(run("fit", digits, *large, "-o", "two", "--json").stdout)
    assert found["warning"].startswith("The delta of 0.1")
    assert json.loads((here / "two/runs.json").read_text())["warning"] == found["warning"]
    usual = json.loads(run("plan", digits, "--epsilon", 3, "--delta", "1e-3", "--json").stdout)
    assert usual["warning"] is None


def test_weights_that_are_not_there_are_told_before_torch_is_loaded(here: Path) -> None:
    """In a process of its own, which says what it has loaded."""
    words = ["train", "fit", "none", "--features", "vgg16", "--weights", "w.pth", "--epsilon", "1"]
    program = (
        "import atexit, sys; from sourdine.cli import main; "
        f"sys.argv[1:] = {words!r}; atexit.register(lambda: print('torch' in sys.modules)); main()"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "False\n")
    assert done.stderr.startswith("The file w.pth with weights of VGG is not there. Check the path.")
    (here / "w.pth").mkdir()
    assert (
        "is a folder"
        in run("fit", "none", "-m", "vgg16", "--weights", "w.pth", "--epsilon", 1, code=2).stderr
    )


def test_random_weights_are_told_at_once() -> None:
    result = run("fit", "none", "--features", "vgg16", "--epsilon", 1, code=2)
    assert result.stderr.startswith("WARNING: No --weights are named, so those of VGG are random.")
    assert "WARNING" not in run("fit", "none", "--features", "random", "--epsilon", 1, code=2).stderr


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "epochs"), [("1.9", 25), pytest.param("2", 40, marks=pytest.mark.slow)])
def test_an_ample_budget_is_used_for_longer_training(epsilon: str, epochs: int) -> None:
    words = ("plan", "-s", 2000, "--delta", "1e-4", "--epsilon", epsilon, "--json")
    assert json.loads(run(*words).stdout)["epochs"] == pytest.approx(epochs, abs=0.5)
    other = json.loads(run(*words, "--epochs", 3).stdout)
    assert other["epochs"] == pytest.approx(3, abs=0.5)


@pytest.mark.parametrize(
    ("features", "model", "epsilon", "expected"),
    [
        (None, None, 2.0, (40, 0.5)),
        (None, "scattering", 1.0, (25, 0.25)),
        ("scattering", "linear", 2.0, (40, 0.5)),
        ("random", "linear", 2.0, (25, 0.25)),
        ("scattering", "linear", None, (25, 0.25)),
        (None, "linear", 2.0, (15, 0.5)),
    ],
)
def test_what_is_usual_depends_on_features_and_budget(
    features: str | None, model: str | None, epsilon: float | None, expected: tuple[int, float]
) -> None:
    chosen = ModelOptions(model=model, features=features).choose("fit")
    found = chosen.recipe(epsilon)
    assert (found.epochs, found.learning_rate) == expected


def test_optimizers_and_augmented_images_cost_nothing_more(digits: Path, here: Path) -> None:
    small = ("--noise-multiplier", 2, "--delta", "1e-3", "-b", 50, "--steps", 2, "--model", "linear")
    changed = ("--optimizer", "adam", "--augment", "flip, shift=2,rotate=10,crop=0.5,blur=0.5", "--copies", 2)
    found = json.loads(run("fit", digits, *small, *changed, "-o", "made", "--json").stdout)
    wanted = TrainingPlan(noise_multiplier=2, delta=1e-3, batch_size=50, steps=2)
    assert found["epsilon"]["upper"] == plan(wanted, size=200).epsilon.upper


def test_a_run_computes_where_it_is_told_and_is_logged(digits: Path, here: Path) -> None:
    small = ("--noise-multiplier", 2, "--delta", "1e-3", "-b", 50, "--epochs", 2, "--model", "linear")
    how = ("--device", "cpu", "--dtype", "bfloat16", "--physical-batch-size", 64, "--log", "run.csv")
    run("fit", digits, *small, *how, "-o", "made")
    header, *rows = Path("run.csv").read_text(encoding="utf-8").splitlines()
    assert header == "step,steps,epoch,epsilon,loss,accuracy"
    assert [row.split(",")[0] for row in rows] == ["4", "8"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--device", "nowhere"), "must be a device of torch"),
        (("--dtype", "float16"), "take bfloat16"),
        (("--log", "none/run.csv"), "none"),
        (("--dtype", "float64", "--without-privacy"), "takes no"),
        (("--log", "run.csv", "--model", "least-squares", "--features", "random"), "takes no --log"),
        (("--optimizer", "lbfgs"), "sgd, adam, adamw, rmsprop, adagrad"),
        (("--optimizer", "adam", "--momentum", 0.5), "takes no --momentum"),
        (("--augment", "flip=1"), "flip, shift=4, rotate=15, crop=0.5 and blur=1"),
        (("--augment", "swirl"), "flip, shift=4, rotate=15, crop=0.5 and blur=1"),
        (("--copies", 3), "Copies of what?"),
        (("--augment", "flip", "--model", "least-squares", "--features", "random"), "takes no --augment"),
    ],
)
def test_other_optimizers_and_changes_are_refused(
    digits: Path, here: Path, words: tuple[object, ...], told: str
) -> None:
    assert told in run("fit", digits, "--epsilon", 8, "--model", "linear", *words, code=2).stderr
