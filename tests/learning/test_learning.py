import subprocess
import sys

import pytest

from sourdine import learning


def test_everything_named_is_there_and_in_order() -> None:
    assert learning.__all__ == sorted(learning.__all__)
    assert dir(learning) == learning.__all__
    for name in learning.__all__:
        assert getattr(getattr(learning, name), "__name__", name) == name


def test_nothing_else_is_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'train_badly'"):
        learning.train_badly  # noqa: B018


def test_planning_needs_no_torch() -> None:
    program = (
        "import sys, sourdine as sd\n"
        "plan = sd.learning.TrainingPlan(noise_multiplier=2, delta=1e-4, epochs=1, batch_size=10)\n"
        "sd.learning.plan(plan, size=1000).words()\n"
        "print('torch' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"
