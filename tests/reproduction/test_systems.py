"""Each system that the source documents ask for runs, by its command and by its public call."""

import shutil
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import sourdine as sd
from sourdine import mechanisms
from sourdine.cli import app
from sourdine.testing import SeededBits

SYSTEMS = tomllib.loads((Path(__file__).parent / "systems.toml").read_text(encoding="utf-8"))["system"]
SAMPLES = Path(__file__).parents[2] / "docs" / "samples"


def systems(part: str) -> list[Any]:
    slow = pytest.mark.slow
    return [
        pytest.param(
            SimpleNamespace(**each),
            id=each["name"],
            marks=slow if each.get("slow") and part == "command" else (),
        )
        for each in SYSTEMS
        if part in each
    ]


def test_every_system_has_a_command_or_a_call() -> None:
    assert len({each["name"] for each in SYSTEMS}) == len(SYSTEMS) >= 40
    assert all({"command", "python"} & set(each) for each in SYSTEMS)


@pytest.mark.parametrize("system", systems("command"))
def test_the_command_of_a_system_runs(
    system: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(SAMPLES, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, system.command.split())
    assert result.exit_code == 0, result.stderr
    for text in getattr(system, "prints", ()):
        assert text in result.stdout


@pytest.mark.parametrize("system", systems("python"))
def test_the_public_call_of_a_system_runs(system: SimpleNamespace) -> None:
    names = {
        "sd": sd,
        "mechanisms": mechanisms,
        "VALUES": np.linspace(0, 1, 200),
        "LEVELS": np.arange(1, 10) / 10,
        "BITS": SeededBits(1),
    }
    exec(system.python, names)
