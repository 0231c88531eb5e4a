"""Every test draws the system's randomness from a seed of its own: a test that passes today passes tomorrow.

Examples in pages and doctests cannot show a seed without teaching users to set one, and over thousands of
tests even rare bad luck is a red run. Other processes, also forked ones, draw real entropy.
"""

import gc
import os
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

for _library in ("OMP", "OPENBLAS", "MKL"):  # before numpy is loaded: threads of theirs wait in loops
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from sourdine.core.random.bits import SystemBits  # noqa: E402
from sourdine.testing import SeededBits  # noqa: E402


class OneSeedATest:
    """Stands in for the system's words in this process while a test runs that has not asked for entropy."""

    def __init__(self) -> None:
        self.entropy = SystemBits.words
        self.process = os.getpid()
        self.stream: SeededBits | None = None
        self.lock = threading.Lock()

    def words(self, system: SystemBits, count: int) -> NDArray[np.uint64]:
        if self.stream is None or self.process != os.getpid():  # no lock: a fork may have left it held
            return self.entropy(system, count)
        with self.lock:
            return self.stream.words(count)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        wanted = item.get_closest_marker("system_randomness") is None
        self.stream = SeededBits(zlib.crc32(item.nodeid.encode())) if wanted else None
        return (yield)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()  # thousands of tests are no garbage: a dry run that tidies up first would look at them all


def pytest_sessionfinish() -> None:
    gc.unfreeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--processor-times",
        metavar="FILE",
        help="write the processor time of each test; name the dear ones",
    )


def pytest_configure(config: pytest.Config) -> None:
    seeds = OneSeedATest()
    SystemBits.words = lambda self, count, /: seeds.words(self, count)  # type: ignore[method-assign]
    config.pluginmanager.register(seeds)
    if path := config.getoption("--processor-times"):
        from tests.processor_times import ProcessorTimes  # of systems that count it, and Windows does not

        config.pluginmanager.register(ProcessorTimes(config, Path(path)))
