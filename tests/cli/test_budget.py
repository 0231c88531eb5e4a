import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sourdine.accounting import Training
from sourdine.cli import app
from sourdine.report import Figure, Page, Section

SEED = ("-s", "60000", "-b", "64", "-e", "15")


def run(*args: str) -> Result:
    return CliRunner().invoke(app, ["budget", *args])


def found(*args: str) -> dict[str, object]:
    result = run(*args, "--json")
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return json.loads(result.stdout)


def test_the_printed_run() -> None:
    result = run("dpsgd", *SEED, "-n", "1.0")
    assert result.exit_code == 0
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert "Steps      14,070, at a sampling rate of 0.1067 %" in lines
    assert any(
        line.startswith("epsilon    0.61") and "at delta 1e-5 (certified: between" in line for line in lines
    )
    assert any(line.startswith("Renyi      0.86") for line in lines)
    assert any(line.startswith("Source     1.17 at order 13 ") for line in lines)
    for word in ("Poisson", "add-remove", "clipped", "delta is 1e-5"):
        assert word in result.stdout


def test_noise_against_an_attack() -> None:
    laplace = found("calibrate", "--advantage", "0.1", "--mechanism", "laplace")
    assert laplace["epsilon"]["upper"] == pytest.approx(0.2007, abs=1e-4)  # type: ignore[index]
    assert 0.0999 < laplace["advantage"] <= 0.1  # type: ignore[operator]
    rates = ("--true-positives", "0.05", "--false-positives", "0.01")
    answer = found("calibrate", *rates, "-s", "1000", "-b", "1000", "-e", "1")
    assert answer["noise_multiplier"] == pytest.approx(1.4674, rel=2e-4)  # 1/(Phi^-1(0.05) - Phi^-1(0.01))
    shown = run("calibrate", *rates, "-s", "1000", "-b", "1000", "-e", "1").stdout
    assert "Attacks    5\N{NO-BREAK SPACE}% true positives at most, at 1 % false ones" in shown


def test_the_printed_run_as_json() -> None:
    cost = found("dpsgd", *SEED, "-n", "1.0")
    assert (cost["steps"], cost["delta"], cost["sampler"], cost["unit"]) == (
        14070,
        1e-5,
        "poisson",
        "example",
    )
    assert cost["sampling_rate"] == 64 / 60000
    epsilon, renyi, source = cost["epsilon"], cost["renyi"], cost["source"]
    assert isinstance(epsilon, dict)
    assert epsilon["lower"] < 0.61115
    assert epsilon["upper"] > 0.61105
    assert epsilon["upper"] - epsilon["lower"] < 1e-3
    assert isinstance(renyi, dict)
    assert 0.86 < renyi["epsilon"] < 0.8725
    assert isinstance(source, dict)
    assert (round(source["epsilon"], 2), source["order"]) == (1.17, 13)
    assert isinstance(cost["assumptions"], list)
    assert len(cost["assumptions"]) == 6
    assert cost["why"] is None


def test_by_rate_and_steps_it_is_the_same() -> None:
    one = found("dpsgd", *SEED, "-n", "1.0")
    other = found("dpsgd", "--sampling-rate", "64/60000", "--steps", "14070", "-n", "1.0")
    assert one["epsilon"] == other["epsilon"]
    assert one["source"] == other["source"]


def test_orders_can_be_chosen() -> None:
    cost = found("dpsgd", *SEED, "-n", "1.0", "-a", "2, 8.5 4")
    assert cost["renyi"]["order"] == cost["source"]["order"] == 8.5  # type: ignore[index]


@pytest.mark.parametrize(
    ("options", "lower", "upper", "relation"),
    [
        (("--sampler", "truncated"), 0.6105, 0.6125, "zero-out"),
        (
            ("--sampler", "truncated", "--max-batch-size", "112", "--neighbours", "add-remove"),
            0.6105,
            0.6117,
            "add-remove",
        ),
        (("--sampler", "allocation"), 0.5975, 0.5992, "add-remove"),
        (("--neighbours", "replace"), 1.0245, 1.0260, "replace"),
        (("--neighbours", "zero-out"), 0.6105, 0.6117, "zero-out"),
        (("--group", "2"), 1.3075, 1.3085, "add-remove"),
    ],
)
def test_how_batches_are_drawn_and_whom_it_protects(
    options: tuple[str, ...], lower: float, upper: float, relation: str
) -> None:
    cost = found("dpsgd", *SEED, "-n", "1.0", *options)
    epsilon = cost["epsilon"]
    assert isinstance(epsilon, dict)
    assert lower < epsilon["lower"] < epsilon["upper"] < upper
    assert cost["neighbours"] == relation
    assert cost["group"] == (2 if "--group" in options else 1)


@pytest.mark.parametrize(
    ("sampler", "least", "reason"), [("shuffle", 23, "once an epoch"), ("fixed", 6, "2C")]
)
def test_other_batches_cost_more_and_why_is_told(sampler: str, least: float, reason: str) -> None:
    result = run("dpsgd", *SEED, "-n", "1.0", "--sampler", sampler)
    assert reason in " ".join(result.stdout.split())
    assert "NO guarantee here" in result.stdout
    upper = float(result.stdout.split("epsilon    ")[1].split()[0])
    assert least < upper < least + 1


def test_noise_for_a_budget() -> None:
    answer = found("calibrate", "--epsilon", "3", *SEED)
    assert answer["noise_multiplier"] == pytest.approx(0.59333, abs=2e-5)
    assert answer["epsilon"]["upper"] == pytest.approx(3, abs=1e-3)  # type: ignore[index]
    assert answer["steps"] == 14070
    again = found("calibrate", "--epsilon", "3", "--sampling-rate", "64/60000", "--steps", "14070")
    assert again["noise_multiplier"] == answer["noise_multiplier"]
    shown = run("calibrate", "--epsilon", "3", "--sampling-rate", "1/10", "--steps", "10").stdout
    assert shown.startswith("Noise      ")


def test_noise_for_shuffled_epochs() -> None:
    answer = found("calibrate", "--epsilon", "3", *SEED, "--sampler", "shuffle")
    assert answer["noise_multiplier"] == pytest.approx(
        5.3862, abs=2e-3
    )  # sqrt(15) over the distance that fits


def test_epochs_and_steps_within_a_budget() -> None:
    answer = found("calibrate", "--epsilon", "0.6112", "-s", "60000", "-b", "64", "--noise-multiplier", "1")
    assert (answer["epochs"], answer["steps"]) in {(15, 14070), (14, 13132)}
    small = ("calibrate", "--epsilon", "1", "--noise-multiplier", "3")
    steps = found(*small, "--sampling-rate", "1/10")["steps"]
    assert isinstance(steps, int)
    assert 0 <= steps - found(*small, "-s", "600", "-b", "60")["steps"] < 10  # type: ignore[operator]
    none = found("calibrate", "--epsilon", "0.1", "-s", "10", "-b", "10", "--noise-multiplier", "1")
    assert (none["epochs"], none["epsilon"]) == (0, None)
    assert (
        "not even one fits"
        in run("calibrate", "--epsilon", "0.1", "--sampling-rate", "1", "--noise-multiplier", "1").stdout
    )


def test_noise_for_plain_releases() -> None:
    laplace = found(
        "calibrate", "--epsilon", "1", "--mechanism", "laplace", "--sensitivity", "2", "--count", "10"
    )
    assert laplace["mechanism"] == {"mechanism": "laplace/1", "scale": "20", "granularity": None}
    assert laplace["epsilon"]["upper"] == 1  # type: ignore[index]
    assert laplace["error"] == {"confidence": 0.95, "each": 60.0}
    gaussian = found("calibrate", "--epsilon", "1", "--mechanism", "gaussian", "--count", "9")
    sigma = gaussian["mechanism"]["sigma"]  # type: ignore[index]
    top, _, bottom = str(sigma).partition("/")
    assert int(top) / int(bottom or 1) == pytest.approx(
        3 * 3.7307, rel=2e-3
    )  # nine are one, three times as far
    grid = run(
        "calibrate",
        "--epsilon",
        "1",
        "--mechanism",
        "laplace",
        "--sensitivity",
        "0.5",
        "--granularity",
        "1/1024",
    )
    assert grid.stdout.startswith("Noise      Laplace, scale 0.500977, granularity 0.000976562")


def test_curves_are_kept_on_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def page(training: Training, delta: float, watch: object) -> Page:
        asked.append((training, delta))
        figure = Figure(title="ε falls", chart={"mark": "point"})
        return Page(title="Curves", lead="Short.", sections=(Section(title="All", figures=(figure,)),))

    monkeypatch.setattr("sourdine.report.pages.training.curves_page", page)
    place = tmp_path / "budget.html"
    result = run("curves", "--html", str(place))
    assert result.exit_code == 0
    assert "- ε falls" in result.stdout
    assert "<h1>Curves</h1>" in place.read_text(encoding="utf-8")
    assert found("curves", "--html", str(place), "-n", "2")["figures"] == ["ε falls"]
    assert [(one.noise_multiplier, one.size, delta) for one, delta in asked] == [
        (1, 60000, 1e-5),
        (2, 60000, 1e-5),
    ]


@pytest.mark.slow
def test_the_real_curves_load_nothing(tmp_path: Path) -> None:
    place = tmp_path / "budget.html"
    assert run("curves", "--html", str(place)).exit_code == 0
    page = place.read_text(encoding="utf-8")
    assert page.count("<figure>") == 8
    assert 'src="http' not in page
    assert "<link" not in page


def test_without_a_verb_it_lists_them() -> None:
    result = run()
    assert result.exit_code == 0
    assert all(verb in result.stdout for verb in ("dpsgd", "calibrate", "curves", "explain"))


@pytest.mark.parametrize("verb", ["dpsgd", "calibrate", "curves"])
def test_every_verb_has_help_with_an_example(verb: str) -> None:
    result = run(verb, "--help")
    assert result.exit_code == 0
    assert f"sourdine budget {verb} " in result.stdout.split("Usage")[1].split("\n", 1)[1]
    assert "--json" in result.stdout


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("dpsgd",), "Missing option '--noise-multiplier'"),
        (("dpsgd", "-n", "1"), "also needs --size and --batch-size and --epochs"),
        (("dpsgd", "-s", "100", "-n", "1", "-e", "1"), "also needs --batch"),
        (("dpsgd", *SEED, "-n", "0"), "The 'noise-multiplier' of dpsgd"),
        (("dpsgd", *SEED, "-n", "nan"), "The 'noise-multiplier' of dpsgd"),
        (("dpsgd", *SEED, "-n", "1", "-d", "0"), "The 'delta' of dpsgd"),
        (("dpsgd", *SEED, "-n", "1", "-d", "1"), "The 'delta' of dpsgd"),
        (("dpsgd", *SEED, "-n", "1", "-a", "0.5"), "The 'orders' of dpsgd"),
        (("dpsgd", *SEED, "-n", "1", "-a", ","), "--orders needs at least one order"),
        (("dpsgd", *SEED, "-n", "1", "--sampler", "random"), "must be one of poisson, fixed, shuffle"),
        (("dpsgd", *SEED, "-n", "1", "--sampling-rate", "0.1"), "Both were given"),
        (("dpsgd", *SEED, "-n", "1", "--steps", "5"), "--steps goes with --sampling-rate"),
        (("dpsgd", "--sampling-rate", "1.5", "--steps", "5", "-n", "1"), "The 'sampling-rate' of dpsgd"),
        (("dpsgd", "--sampling-rate", "0.1", "-n", "1"), "also needs --steps"),
        (("dpsgd", "--sampling-rate", "0.1", "--steps", "0", "-n", "1"), "The 'steps' of dpsgd"),
        (
            ("dpsgd", "--sampling-rate", "0.1", "--steps", "5", "-n", "1", "--sampler", "shuffle"),
            "be poisson with a sampling rate",
        ),
        (
            ("dpsgd", "-s", "10", "-b", "11", "-n", "1", "-e", "1"),
            "The 'batch-size' of dpsgd must be at most the size of the data, 10. Got 11.",
        ),
        (("dpsgd", "-s", "-1", "-b", "1", "-n", "1", "-e", "1"), "The 'size' of dpsgd"),
        (("dpsgd", "-s", "9" * 30, "-b", "1", "-n", "1", "-e", "1"), "The 'size' of dpsgd"),
        (("dpsgd", "-s", "10", "-b", "0", "-n", "1", "-e", "1"), "The 'batch-size' of dpsgd"),
        (("dpsgd", "-s", "10", "-b", "1", "-n", "1", "-e", "0"), "The 'epochs' of dpsgd"),
        (("dpsgd", "-s", "ten", "-b", "1", "-n", "1", "-e", "1"), "'--size' / '-s' must be a whole number"),
        (("dpsgd", "--sampling-rate", "1", "--steps", "10000001", "-n", "1"), "lie between 1 and 10,000,000"),
        (("dpsgd", *SEED, "-n", "1", "-e", "100000000"), "The 'epochs' of dpsgd"),
        (("dpsgd", *SEED, "-n", "1", "-e", "1000000"), "The 'steps' of dpsgd"),
        (("calibrate",), "Give one budget"),
        (("calibrate", "--epsilon", "1", "--advantage", "0.1", *SEED), "Give one budget"),
        (
            ("calibrate", "--advantage", "0.1", "--true-positives", "1/2", "--false-positives", "1/4"),
            "not both",
        ),
        (("calibrate", "--true-positives", "0.1", *SEED), "go together"),
        (
            ("calibrate", "--advantage", "0.1", "--noise-multiplier", "1", "-s", "10", "-b", "1"),
            "sets the noise",
        ),
        (("calibrate", "--advantage", "2", *SEED), "The 'advantage' of calibrate"),
        (
            ("calibrate", "--true-positives", "0.1", "--false-positives", "0.2", *SEED),
            "above false_positives",
        ),
        (("calibrate", "--epsilon", "1"), "Say what to calibrate"),
        (("calibrate", "--epsilon", "0", *SEED), "The 'epsilon' of calibrate"),
        (("calibrate", "--epsilon", "1", "-s", "10", "-b", "1"), "Give --epochs to find the noise"),
        (("calibrate", "--epsilon", "1", *SEED, "-n", "1"), "or --noise-multiplier to find the epochs"),
        (("calibrate", "--epsilon", "1", "--steps", "10"), "Say what to calibrate"),
        (("calibrate", "--epsilon", "1", *SEED, "--mechanism", "laplace"), "A mechanism and a training run"),
        (("calibrate", "--epsilon", "1", "--mechanism", "cauchy"), "must be one of laplace, gaussian"),
        (("calibrate", "--epsilon", "1", "--mechanism", "gaussian", "-d", "0"), "The 'delta' of calibrate"),
        (
            ("calibrate", "--epsilon", "1", "--mechanism", "laplace", "--count", "0"),
            "The 'count' of calibrate",
        ),
        (("calibrate", "--epsilon", "1", "--mechanism", "laplace", "--sensitivity", "0.5"), "--granularity"),
        (("calibrate", "--epsilon", "1", "--mechanism", "laplace", "--granularity", "0.3"), "power of two"),
        (("curves", "-n", "-1"), "The 'noise-multiplier' of curves"),
        (("curves", "--html", "/"), "is a folder"),
        (("curves", "--html", "/no/such/folder/page.html"), "does not exist"),
        (("nonsense",), "No such command"),
    ],
)
def test_bad_input_ends_in_one_sentence_and_code_2(args: tuple[str, ...], told: str) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert told in result.stderr


def test_options_of_0_1_are_read_and_told() -> None:
    old = run("dpsgd", "--rate=0.1", "--steps", "5", "--noise", "1", "--json")
    new = run("dpsgd", "--sampling-rate=0.1", "--steps", "5", "--noise-multiplier", "1", "--json")
    assert old.stdout == new.stdout
    told = " ".join(old.stderr.split())
    assert "'--rate' is called '--sampling-rate' now" in told
    assert "'--noise' is called '--noise-multiplier' now" in told
    assert not new.stderr
