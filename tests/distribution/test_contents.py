import io
import json
import re
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

from distribution.contents import LARGEST, sdist_faults, sdist_sizes, wheel_faults, wheel_sizes

ROOT = Path(__file__).parents[2]
TRACKED = [
    "LICENSE",
    "src/sourdine/__init__.py",
    "src/sourdine/py.typed",
    "src/sourdine/report/templates/page.html",
]
WHEEL = {
    "sourdine/__init__.py": 10,
    "sourdine/py.typed": 0,
    "sourdine/report/charts.js.gz": 900,
    "sourdine/report/templates/page.html": 100,
    "sourdine-0.2.0.dist-info/METADATA": 10,
    "sourdine-0.2.0.dist-info/licenses/LICENSE": 10,
}
SDIST = dict.fromkeys([*TRACKED, "PKG-INFO"], 10)


def test_a_whole_wheel_has_no_fault() -> None:
    assert wheel_faults(WHEEL, TRACKED) == []


def test_every_missing_file_of_the_package_is_named() -> None:
    for name in [*TRACKED[1:], "src/sourdine-0.2.0.dist-info/licenses/LICENSE"]:
        kept = {each: size for each, size in WHEEL.items() if each != name.removeprefix("src/")}
        assert len(wheel_faults(kept, TRACKED)) == 1, name


def test_tests_caches_and_large_files_are_faults() -> None:
    for name in ["tests/test_a.py", "sourdine/__pycache__/a.pyc", "sourdine/notes.txt"]:
        assert wheel_faults({**WHEEL, name: 1}, TRACKED) == [f"{name} does not belong there"]
    assert wheel_faults({**WHEEL, "sourdine/py.typed": LARGEST + 1}, TRACKED) == [
        "sourdine/py.typed has more than a megabyte"
    ]


def test_a_source_distribution_holds_what_is_tracked() -> None:
    assert sdist_faults(SDIST, TRACKED) == []
    assert sdist_faults({**SDIST, "secret.ledger": 1}, TRACKED) == ["secret.ledger does not belong there"]
    assert sdist_faults({"PKG-INFO": 1}, ["LICENSE"]) == ["LICENSE is missing"]


def test_files_are_listed_with_their_sizes(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.whl", "w") as wheel:
        wheel.writestr("sourdine/a.py", b"12345")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as sdist:
        entry = tarfile.TarInfo("sourdine-0.2.0/src/a.py")
        entry.size = 3
        sdist.addfile(entry, io.BytesIO(b"123"))
    assert wheel_sizes(tmp_path / "a.whl") == {"sourdine/a.py": 5}
    assert sdist_sizes(tmp_path / "a.tar.gz") == {"src/a.py": 3}


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return found


def test_one_version_is_told_everywhere() -> None:
    assert f"\nversion: {project()['version']}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_extras_that_messages_advise_are_declared() -> None:
    """A message that sends people to an extra gives the command, by a name that there is."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py")]
    commands = [found for text in texts for found in re.findall(r"(pip install\s+')?sourdine\[(\w+)\]", text)]
    assert {extra for _, extra in commands} <= project()["optional-dependencies"].keys()
    assert all(command for command, _ in commands)


def test_every_python_that_is_claimed_is_tried() -> None:
    claimed = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["classifiers"]))
    matrix = re.search(r"python: (\[.*\])", (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))
    assert matrix is not None
    assert json.loads(matrix[1]) == claimed
    assert project()["requires-python"] == f">={claimed[0]}"
