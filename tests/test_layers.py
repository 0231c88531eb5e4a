"""Packages import only what is below them, by statement or by a name in a string; no import makes a cycle.

`make check` looks at import statements (lint-imports). Some modules are imported by name, so that a process
loads them only when it needs them; this test reads those names too.
"""

import re
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import sourdine
from sourdine.core import serialization as registry

ROOT = Path(sourdine.__file__).parent
LAYERS = (
    {"cli"},
    {"studio", "collector"},
    {"report"},
    {"audit"},
    {"tables", "local", "learning", "anonymity", "estimators"},
    {"accounting"},
    {"mechanisms", "frames"},
    {"core"},
)
HEIGHT = {package: -layer for layer, packages in enumerate(LAYERS) for package in packages}

# Every place that imports a module by a name in a string, with what those names may be. Those that may reach
# upward are lookups of classes that a file or a caller names; no import statement could stand in their place.
BY_NAME = {
    "__init__.py": "any package, when it is first used",
    "audit/outcomes.py": "packages below, whose mechanisms are examined",
    "cli/verbs.py": "modules of cli",
    "core/lazy.py": "modules of the package that asks",
    "core/serialization.py": "classes that files name: upward",
    "core/display.py": "what shows an object: upward, to report",
    "estimators/storage.py": "modules of estimators",
    "frames/times.py": "tzdata",
    "learning/__init__.py": "modules of learning and of packages below",
    "learning/data/pictures.py": "PIL",
}
FROM = re.compile(r"^( *)from (sourdine[\w.]*) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
IMPORT = re.compile(r"^( *)import (sourdine[\w.]*)", re.MULTILINE)
STRING = re.compile(r'"(sourdine(?:\.\w+)+)(?::\w+)?"')  # a module, or module:attribute


@cache
def texts() -> dict[str, str]:
    files = sorted(ROOT.rglob("*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}


def package_of(name: str) -> str | None:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in HEIGHT else None


def imports(text: str, known: set[str], only_at_top: bool = False) -> set[str]:
    """The modules that statements import; `from package import module` needs that module alone."""
    found = {name for indent, name in IMPORT.findall(text) if not (only_at_top and indent)}
    for indent, package, names in FROM.findall(text):
        if not (only_at_top and indent):
            for each in re.findall(r"(\w+)(?: as \w+)?", names.partition("#")[0]):
                submodule = f"{package}.{each}"
                found.add(submodule if submodule in known else package)
    return found


def modules() -> dict[str, str]:
    names = {name: name.removesuffix(".py").removesuffix("/__init__") for name in texts()}
    return {"sourdine." + dotted.replace("/", "."): texts()[name] for name, dotted in names.items()}


def test_every_import_by_name_is_declared() -> None:
    called = re.compile(r"(?<!def )\bimport_module\(")
    assert {name for name, text in texts().items() if called.search(text)} == set(BY_NAME)


def test_a_package_imports_only_packages_below_it() -> None:
    upward = []
    for name, text in texts().items():
        home = name.partition("/")[0]
        if home not in HEIGHT:
            continue
        declared = STRING.findall(text) if "upward" not in BY_NAME.get(name, "") else []
        for module in imports(text, set()) | set(declared):
            other = package_of(module)
            if other is not None and other != home and HEIGHT[other] >= HEIGHT[home]:
                upward.append(f"{name} imports {module}")
    assert not sorted(upward)


def test_what_the_registry_names_is_there() -> None:
    for place in registry.TABLE.values():
        module, _, attribute = place.partition(":")
        assert isinstance(getattr(import_module(module), attribute), type), place


def test_views_name_modules_of_report_alone() -> None:
    named = STRING.findall(texts()["core/display.py"])
    assert named
    assert {package_of(each) for each in named} == {"report"}


def test_modules_make_no_cycle_when_they_are_loaded() -> None:
    """Imports at the top of modules alone: one within a function runs when both modules are whole."""
    known = modules()
    graph = {
        name: (imports(text, set(known), only_at_top=True) & set(known)) - {name}
        for name, text in known.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError
