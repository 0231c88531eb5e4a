"""What each test costs: `pytest --processor-times FILE` writes its processor time, with its children's.

Wall-clock time hangs on what else the machine does, and a child's work is still work: that of Spark, or of
commands in a process of their own. The file gets a line for each test; the summary names, dearest first,
those above half a second that are not marked slow.
"""

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

LIMIT = 0.5  # seconds: what is dearer is made smaller or marked slow
_KEY = "processor_seconds"
_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def _running() -> float:
    """Seconds that children which have not ended have used so far; 0 where there is no /proc."""
    total = 0
    try:
        for child in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
            total += sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:15]))
    except OSError:  # it ended while we looked
        pass
    return total / _TICKS


def seconds() -> float:
    """Processor time of this process and of all its children, ended or not."""
    ended = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in ended) + _running()


class ProcessorTimes:
    """Measures tests where they run, and writes where the session is led: with -n elsewhere."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self.led = hasattr(config, "workerinput")
        self.config = config
        self.path = path
        self.before = 0.0
        self.collection: list[float] = []
        self.tests: dict[str, float] = {}
        self.slow: set[str] = set()
        if not self.led:
            path.write_text("")

    def pytest_collection_finish(self) -> None:
        spent = seconds()  # since the process began: imports too
        self.collection.append(spent)
        if self.led:
            self.config.workeroutput["collection_seconds"] = spent  # type: ignore[attr-defined]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        self.collection.append(getattr(node, "workeroutput", {}).get("collection_seconds", 0.0))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        self.before = seconds()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        if call.when == "teardown":
            item.user_properties.append((_KEY, seconds() - self.before))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self.led or report.when != "teardown":
            return
        spent = dict(report.user_properties)[_KEY]
        assert isinstance(spent, float)
        self.tests[report.nodeid] = spent
        if "slow" in report.keywords:
            self.slow.add(report.nodeid)
        with self.path.open("a") as file:
            file.write(f"{spent:.3f}\t{report.nodeid}\n")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.led:
            return
        quick = {test: spent for test, spent in self.tests.items() if test not in self.slow}
        dear = sorted((-spent, test) for test, spent in quick.items() if spent > LIMIT)
        total = sum(self.tests.values())
        terminalreporter.section("processor times")
        for spent, test in dear:
            terminalreporter.line(f"{-spent:8.2f} s  {test}")
        terminalreporter.line(
            f"{total:.0f} s in {len(self.tests)} tests, {-sum(spent for spent, _ in dear):.0f} s of it in the"
            f" {len(dear)} above {LIMIT} s; {sum(self.collection):.0f} s for imports and collection"
        )
