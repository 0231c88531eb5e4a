import subprocess
import sys

import sourdine


def test_the_package_runs_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sourdine", "--version"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"sourdine {sourdine.__version__}\n"), done.stderr


def test_a_mistake_has_its_exit_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sourdine", "plan", "none.toml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "none.toml does not exist" in done.stderr
