import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from sourdine.cli import app


def run(*args: str) -> str:
    result = CliRunner().invoke(app, ["demo", *args])
    assert result.exit_code == 0, result.output
    return result.output


def test_says_count_error_guarantee_and_what_next() -> None:
    shown = run()
    noisy = int(re.search(r"Noisy count +([\d,]+)", shown)[1].replace(",", ""))  # type: ignore[index]
    assert abs(noisy - 1234) < 60  # beyond it once in 10^26
    assert "at most 3 people, 95 % of the time" in shown
    assert "epsilon = 1 for each person, added or removed" in shown
    assert "e^epsilon = 2.72" in shown
    assert "sourdine audit --mutants" in shown


def test_json_has_the_guarantee_and_not_the_count() -> None:
    found = json.loads(run("--json", "--epsilon", "1/10", "--count", "123456789"))
    assert found["epsilon"] == "1/10"
    assert found["unit"] == "person"
    assert found["neighbours"] == "add-remove"
    assert found["mechanism"] == {
        "mechanism": "mechanisms.Geometric",
        "scale": "10",
        "lower": 0,
        "upper": None,
    }
    assert found["error"] == {"confidence": 0.95, "people": 30}
    assert "count" not in found


def test_noise_has_the_scale_asked_for() -> None:
    drawn = (
        np.array([json.loads(run("--json", "--epsilon", "0.01"))["noisy_count"] for _ in range(60)]) - 1234
    )
    assert len(set(drawn.tolist())) > 10
    assert 30 < np.mean(np.abs(drawn)) < 300  # its mean is 100, give or take 13


@pytest.mark.parametrize("epsilon", ["0.001", "100", "1/3", "1e-2"])
def test_every_allowed_epsilon_works(epsilon: str) -> None:
    assert "Guarantee" in run("--epsilon", epsilon)


@pytest.mark.parametrize(
    "args",
    [
        ("--epsilon", "-1"),
        ("--epsilon", "0"),
        ("--epsilon", "nan"),
        ("--epsilon", "inf"),
        ("--epsilon", "much"),
        ("--epsilon", ""),
        ("--epsilon", "1e999"),
        ("--epsilon", "1e-999"),
        ("--epsilon", "1e99999999999"),
        ("--count", "-5"),
        ("--count", "1.5"),
        ("--count", "nan"),
        ("--count", "many"),
        ("--count", "1" + "0" * 30),
        ("--count", "9" * 5000),
        ("--nonsense",),
        ("extra",),
    ],
)
@pytest.mark.parametrize("json_too", [(), ("--json",)])
def test_bad_input_ends_in_one_sentence_and_code_2(args: tuple[str, ...], json_too: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, ["demo", *args, *json_too])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) == 1
    assert "Traceback" not in result.stderr
    name = args[0].removeprefix("--")
    assert name in result.stderr
