"""What a wheel and a source distribution must hold, and what they must not."""

import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

PACKAGE = "src/sourdine/"
LARGEST = 2**20
MADE = "sourdine/report/charts.js.gz"  # by the build, from what git ignores
NEEDED = ("sourdine/py.typed", "sourdine/__init__.py", MADE)


def wheel_sizes(path: Path) -> dict[str, int]:
    """The files of a wheel, with their sizes in bytes."""
    with zipfile.ZipFile(path) as archive:
        return {each.filename: each.file_size for each in archive.infolist() if not each.is_dir()}


def sdist_sizes(path: Path) -> dict[str, int]:
    """The files of a source distribution, with their sizes in bytes, without the folder they all lie in."""
    with tarfile.open(path) as archive:
        return {each.name.partition("/")[2]: each.size for each in archive if not each.isdir()}


def wheel_faults(files: Mapping[str, int], tracked: Iterable[str]) -> list[str]:
    """What is wrong with a wheel: it holds the package as it is tracked, its metadata, and nothing else.

    >>> wheel_faults({"sourdine/__init__.py": 9, "tests/a.py": 1}, ["src/sourdine/__init__.py"])
    ['sourdine/py.typed is missing', 'sourdine/report/charts.js.gz is missing', 'the licence is missing',
     'tests/a.py does not belong there']
    """
    about = {name for name in files if name.partition("/")[0].endswith(".dist-info")}
    package = {name.removeprefix("src/") for name in tracked if name.startswith(PACKAGE)}
    missing = [f"{name} is missing" for name in sorted({*NEEDED, *package} - set(files))]
    if not any(name.endswith("/licenses/LICENSE") for name in about):
        missing.append("the licence is missing")
    return missing + _strange(set(files) - about - package - {MADE}) + _large(files)


def sdist_faults(files: Mapping[str, int], tracked: Iterable[str]) -> list[str]:
    """What is wrong with a source distribution: it holds all that is tracked, its metadata, and nothing else.

    >>> sdist_faults({"PKG-INFO": 9, "Makefile": 2 * LARGEST}, ["Makefile", "LICENSE"])
    ['LICENSE is missing', 'Makefile has more than a megabyte']
    """
    held = {*tracked, "PKG-INFO"}
    missing = [f"{name} is missing" for name in sorted(held - set(files))]
    return missing + _strange(set(files) - held) + _large(files)


def _strange(names: Iterable[str]) -> list[str]:
    return [f"{name} does not belong there" for name in sorted(names)]


def _large(files: Mapping[str, int]) -> list[str]:
    return [f"{name} has more than a megabyte" for name in sorted(files) if files[name] > LARGEST]
