"""The lock says what pyproject.toml and constraints.txt say. No index is asked."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from distribution.lock import EXTRAS, LOCK, LockedDistribution, plain_name, read_lock

ROOT = Path(__file__).parents[2]
TEXT = LOCK.read_text(encoding="utf-8")
LOCKED = read_lock(TEXT)


def declared() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    return [Requirement(line) for line in project["dependencies"] + extras]


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("==") for line in lines if "==" in line]
    return {plain_name(name): version for name, version in pairs}


def test_all_that_is_declared_is_locked_in_a_version_that_is_allowed() -> None:
    for requirement in declared():
        assert requirement.specifier.contains(LOCKED[plain_name(requirement.name)].version), requirement


def test_versions_are_those_of_the_constraints() -> None:
    assert {name: each.version for name, each in LOCKED.items()} == {
        name: version for name, version in pins().items() if name in LOCKED
    }


def test_what_dependencies_need_is_locked_too() -> None:
    """By what the installed ones say of themselves, as far as they are installed here."""
    todo, seen = [(each, each.extras) for each in declared()], set()
    while todo:
        requirement, extras = todo.pop()
        name = plain_name(requirement.name)
        assert name in LOCKED
        try:
            lines = [] if (name, *extras) in seen else requires(name) or []
        except PackageNotFoundError:
            continue
        seen.add((name, *extras))
        for needed in map(Requirement, lines):
            asked = [{"extra": extra} for extra in extras] or [{"extra": ""}]
            if needed.marker is None or any(needed.marker.evaluate(each) for each in asked):
                todo.append((needed, needed.extras))


def test_every_file_has_a_digest_and_no_index_is_named() -> None:
    assert all(each.digests for each in LOCKED.values())
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for each in LOCKED.values() for digest in each.digests)
    assert "://" not in TEXT
    assert not re.search(r"^--", TEXT, flags=re.MULTILINE)
    assert len(TEXT) < 2**20


@pytest.mark.parametrize("name", ["torch", "pyspark", "sourdine"])
def test_what_differs_from_machine_to_machine_is_left_out(name: str) -> None:
    assert name not in LOCKED


def test_a_line_is_read_with_its_marker() -> None:
    line = "A_b.c[d]==1.0 ; sys_platform == 'win32' \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n"
    assert read_lock(line)["a-b-c"] == LockedDistribution(
        name="a-b-c", version="1.0", marker="sys_platform == 'win32'", digests=("00", "11")
    )
