"""Mutants tried one by one, in a copy of the project: each in a child forked where libraries are imported.

The tests of a mutant are those that reach its lines, which one run of all tests near it tells, under
coverage: first the nearest and quickest, then the others. Nothing of the project itself is imported before.
"""

import contextlib
import importlib
import json
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from coverage import Coverage, CoverageData

from tests.mutation.mutants import Mutant

PACKAGE = Path("src/sourdine")
MODULES = (
    *("core/**/*.py", "accounting/**/*.py", "tables/statistics/*.py", "tables/measurement.py"),
    "tables/intervals.py",
)
NEAR = ("core", "mechanisms", "accounting", "tables")  # whose tests and examples are asked
SHARED = ("tests/test_contract.py", "tests/test_properties.py")
LIBRARIES = (
    *(
        "numpy",
        "scipy.special",
        "scipy.optimize",
        "scipy.stats",
        "scipy.fft",
        "scipy.signal",
        "flint",
        "mpmath",
    ),
    *("duckdb", "narwhals", "pandas", "polars", "pyarrow.parquet", "pydantic", "cryptography", "hypothesis"),
    *(
        "sqlite3",
        "typer",
        "rich.console",
        "jinja2",
        "altair",
        "fsspec",
        "unittest.mock",
        "hypothesis.strategies",
    ),
)
FIRST, THEN = 6.0, 60.0  # seconds of tests in the first child and in the second
MEMORY = 6 << 30


@dataclass(frozen=True)
class Outcome:
    """How the tests took a mutant: killed, survived, out of time, or none of them reaches it."""

    status: str
    killer: str = ""
    tests: int = 0
    seconds: float = 0.0


def areas() -> dict[str, list[str]]:
    """The modules whose mutants are tried, by the room they lie in."""
    found = defaultdict(list)
    for pattern in MODULES:
        for path in sorted(PACKAGE.glob(pattern)):
            if path.name != "__init__.py":
                found[pattern.split("/")[0]].append(path.relative_to(PACKAGE).as_posix())
    return found


def warm() -> None:
    for name in LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


class Choice:
    """A plugin that runs these tests in order, then new ones beside them, and says which failed first."""

    def __init__(self, tests: list[str], known: set[str]) -> None:
        self.rank = {test: index for index, test in enumerate(tests)}
        self.known = known
        self.failure = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        some = [one for one in items if one.nodeid in self.rank or one.nodeid not in self.known]
        items[:] = sorted(some, key=lambda one: self.rank.get(one.nodeid, len(self.rank)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failure:
            self.failure = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failure:
            self.failure = f"{report.nodeid} (import)"


class Reach:
    """A plugin that keeps which test reaches which line, and how long each takes."""

    def __init__(self, coverage: Coverage) -> None:
        self.coverage = coverage
        self.seconds: dict[str, float] = {}
        self.failures: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.coverage.switch_context(item.nodeid)
        start = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.process_time() - start
            self.coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failures.append(report.nodeid)


ARGUMENTS = (
    *("-q", "-m", "not slow", "-p", "no:randomly", "-p", "no:xdist", "-p", "no:cacheprovider"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),  # libraries are imported before
)


def reach(folder: Path) -> dict[str, Any]:
    """Run all tests near the modules, and keep what they reach in a folder."""
    paths = [f"{top}/{name}" for name in NEAR for top in ("tests", PACKAGE)]
    ignored = [f"--ignore={path}" for path in Path("tests").rglob("test_spark.py")]  # it starts Java
    include = [f"{PACKAGE}/{pattern}" for pattern in MODULES]
    coverage = Coverage(data_file=str(folder / "reach"), include=include, config_file=False)
    plugin = Reach(coverage)
    coverage.start()
    pytest.main([*ARGUMENTS, *ignored, *paths, *SHARED], plugins=[plugin])
    coverage.stop()
    coverage.save()
    told = {"seconds": plugin.seconds, "failures": plugin.failures}
    (folder / "tests.json").write_text(json.dumps(told), encoding="utf-8")
    return {}


@dataclass(frozen=True)
class End:
    """What a child said, if it came to that, the signal that ended it, or 0, and its processor time."""

    said: dict[str, Any] | None
    signal: int
    seconds: float


def forked(work: Callable[[], dict[str, Any]], seconds: float, log: Path) -> End:
    """Do this work in a child that has so much processor time."""
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 5))
            resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
            with log.open("wb") as to:
                os.dup2(to.fileno(), 1)
                os.dup2(to.fileno(), 2)
            os.write(outlet, json.dumps(work()).encode())
        finally:
            sys.stdout.flush()
            os._exit(0)
    os.close(outlet)
    status, usage = _wait(child, 5 * seconds + 60)
    os.set_blocking(inlet, False)  # children of the child may still hold the other end
    with os.fdopen(inlet, "rb") as end:
        answer = end.read()
    said = json.loads(answer) if answer else None
    return End(said, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0, usage.ru_utime + usage.ru_stime)


def _wait(child: int, patience: float) -> tuple[int, resource.struct_rusage]:
    """Wait for a child, but not for ever; its own children end with it, and all of them with us."""
    end = time.monotonic() + patience
    try:
        while time.monotonic() < end:
            ended, status, usage = os.wait4(child, os.WNOHANG)
            if ended:
                return status, usage
            time.sleep(0.02)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
    _, status, usage = os.wait4(child, 0)
    return status, usage


@dataclass(frozen=True)
class Trials:
    """The tests of a copy of the project, which is the folder that we are in."""

    folder: Path  # where the run is kept
    source: Path  # where it is kept what tests reach: the same, or that of an earlier run

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    def prepare(self) -> list[str]:
        """Find out what tests reach, unless it is known, and which fail anyway: they are left out."""
        if not (self.source / "tests.json").exists():
            forked(lambda: reach(self.source), 3600, self.log)
        return list(self._told["failures"])

    @cached_property
    def _told(self) -> dict[str, Any]:
        told: dict[str, Any] = json.loads((self.source / "tests.json").read_text(encoding="utf-8"))
        return told

    @cached_property
    def _seconds(self) -> dict[str, float]:
        return {
            test: used for test, used in self._told["seconds"].items() if test not in self._told["failures"]
        }

    @cache  # noqa: B019
    def _reached(self, module: str) -> dict[int, list[str]]:
        """The tests by line. Lines are named by the copy that the tests ran in, which is gone."""
        data = CoverageData(str(self.source / "reach"))
        data.read()
        name = f"/{(PACKAGE / module).as_posix()}"
        return next(
            (data.contexts_by_lineno(file) for file in data.measured_files() if file.endswith(name)), {}
        )

    def tests(self, mutant: Mutant, killer: str = "") -> list[str]:
        """The tests that reach a mutant, nearest and quickest first, after that which killed it before.

        A line that runs on import is reached by all tests of its module.
        """
        lines = self._reached(mutant.module)
        first, last = mutant.lines
        tests = {test for line in range(first, last + 1) for test in lines.get(line, [])}
        if tests == {""}:
            tests = {test for some in lines.values() for test in some}
        order = lambda test: (test != killer, -_nearness(test, mutant.module), self._seconds[test], test)
        return sorted((test for test in tests if test in self._seconds), key=order)

    def run(self, mutant: Mutant, place: Mutant, killer: str = "") -> Outcome:
        """Try a mutant, by the tests that reach it where it was; the copy is whole again afterwards."""
        tests = self.tests(place, killer)
        path = PACKAGE / mutant.module
        mirror = (Path("tests") / mutant.module).with_name(f"test_{path.name}")
        fresh = [str(mirror)] if self.source != self.folder and mirror.exists() else []
        if not tests and not fresh:
            return Outcome("unreached")
        source = path.read_bytes()
        spent = 0.0
        try:
            path.write_bytes(mutant.apply(source))
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
                compiled.unlink()
            for some in self._rounds(tests, killer) if tests else [[]]:
                status, killer, used = self._try(some, fresh)
                spent += used
                if status != "survived":
                    return Outcome(status, killer, len(some), round(spent, 1))
        finally:
            path.write_bytes(source)
        return Outcome("survived", "", len(tests), round(spent, 1))

    def _rounds(self, tests: list[str], killer: str) -> Iterator[list[str]]:
        rest = list(tests)
        if killer and killer == rest[0]:
            yield [rest.pop(0)]
        for most in (FIRST, THEN):
            some: list[str] = []
            total = 0.0
            while rest and (not some or total + self._seconds[rest[0]] <= most):
                total += self._seconds[rest[0]]
                some.append(rest.pop(0))
            if some:
                yield some

    def _try(self, tests: list[str], fresh: list[str]) -> tuple[str, str, float]:
        """Run these tests, and what is new in their files and in these."""
        limit = 15 + 3 * sum(self._seconds[test] for test in tests)
        end = forked(lambda: _session(tests, set(self._told["seconds"]), fresh), limit, self.log)
        if end.said is not None:
            fine = end.said["code"] in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
            return "survived" if fine else "killed", end.said["failure"], end.seconds
        if end.signal in (signal.SIGXCPU, signal.SIGKILL):
            return "out of time", "", end.seconds
        if end.signal:
            return "killed", "", end.seconds
        raise RuntimeError(f"The tests could not be run. {self.log} may say why.")

    def failures(self, tests: list[str]) -> list[str]:
        """Which of these tests fail without any mutant: they prove nothing."""
        wrong: list[str] = []
        rest = [test for test in tests if test in self._seconds]
        while rest:
            status, failure, _ = self._try(rest, [])
            if status == "survived":
                break
            wrong.append(failure)
            rest = [test for test in rest if test != failure] if failure in rest else []
        return wrong


def _session(tests: list[str], known: set[str], fresh: list[str]) -> dict[str, Any]:
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    plugin = Choice(tests, known)
    files = dict.fromkeys([*(test.split("::")[0] for test in tests), *fresh])
    code = pytest.main([*ARGUMENTS, "-x", *(file for file in files if Path(file).exists())], plugins=[plugin])
    return {"code": int(code), "failure": plugin.failure}


def _nearness(test: str, module: str) -> int:
    """How much of its path a test shares with a module; the module's own examples and tests are nearest."""
    path = PurePosixPath(test.split("::", maxsplit=1)[0])
    parts = path.parts[2:] if path.parts[0] == "src" else path.parts[1:]
    own = PurePosixPath(module)
    if parts[-1] in (own.name, f"test_{own.name}") and parts[:-1] == own.parts[:-1]:
        return 9
    shared = 0
    for one, other in zip(parts[:-1], own.parts[:-1], strict=False):
        if one != other:
            break
        shared += 1
    return shared
