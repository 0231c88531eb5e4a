"""Tests stand where the code stands that they test: tests/core/test_grid.py tests core/grid.py.

Words may follow the name of the module (test_grid_interval.py), and a file with the name of its folder is
about the whole package. What is about several modules is a theme, and listed: a list that only gets shorter.
"""

from pathlib import Path

import pytest

import sourdine

TESTS, CODE = Path(__file__).parent, Path(sourdine.__file__).parent
OTHER = {"benchmarks", "distribution", "golden", "mutation"}  # folders about something else than the package
THEMES = {
    "accounting/ledger": "changed selection_delta simulator",
    "accounting": "brackets delta",
    "audit/attacks": "classes models",
    "cli/local": "planning",
    "cli/shared": "terminal",
    "cli": "main report",
    "cli/train": "data",
    "collector": "attacks",
    "core/randomness": "ones",
    "estimators": "audit checks sensitivity",
    "frames": "identity names stability",
    "frames/expressions": "derived engines",
    "learning": "card group_norm",
    "local/rappor": "exponential solving",
    "mechanisms": "noise",
    "report": "no_interval",
    "tables/comparison": "chains",
    "tables/consistent": "intervals structures",
    "tables/quantiles": "audit chain draws figures privacy theorems",
    "tables/sql": "nothing_ignored",
    "tables/statistics": "contract plans",
    "tables": "adult engine_statistics private_keys quantile_methods review sizes spark top",
}


def packages() -> list[str]:
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    return sorted(str(each) for each in folders if each.parts and each.parts[0] not in OTHER)


def unlike_any_module(package: str) -> list[str]:
    code = CODE / package
    assert code.is_dir(), f"tests/{package} mirrors no package"
    known = {path.stem.lstrip("_") for path in code.iterdir()} | {code.name}
    found = sorted(path.stem.removeprefix("test_") for path in (TESTS / package).glob("test_*.py"))
    return [name for name in found if not any(f"{name}_".startswith(f"{module}_") for module in known)]


@pytest.mark.parametrize("package", packages())
def test_each_file_mirrors_a_module(package: str) -> None:
    assert unlike_any_module(package) == THEMES.get(package, "").split()


def test_themes_are_in_folders_that_are_there() -> None:
    assert set(THEMES) <= set(packages())
