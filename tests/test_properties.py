"""How properties are run."""

from pathlib import Path

from hypothesis import settings

HERE = Path(__file__)


def test_no_property_has_a_deadline() -> None:
    """On a loaded machine a deadline fails what is right; the profile has none, and no test sets its own."""
    assert settings().deadline is None
    own = [path for path in HERE.parent.rglob("*.py") if path != HERE and path.name != "conftest.py"]
    assert not [path.name for path in own if "deadline" in path.read_text(encoding="utf-8")]
