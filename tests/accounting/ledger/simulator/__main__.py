"""Run schedules by their seeds: `python -m tests.accounting.ledger.simulator FIRST COUNT`."""

import argparse
import ctypes
import gc
import os
import sys
import tempfile
import warnings
from pathlib import Path

from sourdine.core.errors import LedgerWait
from tests.accounting.ledger.simulator import actor, server
from tests.accounting.ledger.simulator.mends import MENDS
from tests.accounting.ledger.simulator.processes import Links
from tests.accounting.ledger.simulator.world import STYLES, empty_ledgers, one_schedule

_SUBREAPER = 36
_kept: list[object] = []  # till the end: threads that hang listen to it


def main() -> int:
    """Run them, with a server if there is to be one."""
    options = _options()
    ground = server.Ground.start() if options.server else None
    try:
        return _run(options, ground)
    finally:
        if ground is not None:
            ground.server.remove()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.accounting.ledger.simulator", description=__doc__)
    parser.add_argument("first", type=int, help="the first seed")
    parser.add_argument("count", type=int, help="how many seeds")
    parser.add_argument("--without", default="", choices=MENDS, help="a mend to take out")
    parser.add_argument("--style", default="", choices=STYLES, help="what they are about")
    parser.add_argument("--patience", type=float, default=60, help="seconds without a word: it hangs")
    parser.add_argument("--show", action="store_true", help="tell what happens in each")
    parser.add_argument("--server", action="store_true", help="on a PostgreSQL server")
    return parser.parse_args()


def _run(options: argparse.Namespace, ground: "server.Ground | None") -> int:
    watched = actor.watch()
    if not watched.install():
        print("SQLite cannot be watched here.")
        return 3
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)  # children of children that are killed are ours
    actor.install(MENDS[options.without])
    warnings.simplefilter("ignore", LedgerWait)
    shared = Path("/dev/shm")  # in memory: what a disk does is made up anyway
    links = Links(options.patience)
    _kept.append(links)
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        empty = empty_ledgers(Path(folder))
        gc.freeze()
        gc.disable()  # a finalizer must not come when it likes
        for seed in range(options.first, options.first + options.count):
            if ground is not None:
                log, wrong = server.one_schedule(Path(folder), seed, links, watched, ground, options.style)
            else:
                log, wrong = one_schedule(Path(folder), seed, links, watched, empty, options.style)
            if seed % 100 == 99:
                gc.collect()
            if wrong or options.show:
                print(*log, sep="\n", flush=True)
            if wrong:
                print(wrong)
                return 1
    print(f"{options.count} schedules, 0 faults")
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads that hang are left behind
