"""Large arrays worked on by several threads: numpy lets them run beside each other.

What one does depends on no other, so answers are the same with any number of threads.
"""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

BLOCK = 1 << 16  # places: fewer, and threads wait for each other; more, and a processor's memory is too small


def processors() -> int:
    """How many this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not Linux
        return os.cpu_count() or 1


def in_blocks(work: Callable[[slice], object], size: int, block: int = BLOCK) -> None:
    """Do the work on every block of so many places; one block alone starts no thread.

    >>> in_blocks(print, 5, block=8)
    slice(0, 5, None)
    """
    parts = [slice(start, min(start + block, size)) for start in range(0, size, block)]
    threads = min(len(parts), processors())
    if threads < 2:
        for part in parts:
            work(part)
        return
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, parts))  # a list: it raises what one of them raised
