"""What Spark did for a call: its jobs, the stages that ran, the shuffles among them, and what they moved."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Work:
    """The work of one call on Spark."""

    seconds: float
    jobs: int
    stages: int  # that ran; those whose outcome was there already are not counted
    shuffles: int  # stages that wrote records for others to fetch
    shuffled: int  # bytes of those records
    brought: int  # bytes that came back to the driver


def work_of(session: Any, call: Callable[[], object]) -> Work:
    """Run something that asks Spark in this thread, and say what that took."""
    context = session.sparkContext
    group = f"work {time.perf_counter_ns()}"
    context.setJobGroup(group, "measured")
    start = time.perf_counter()
    try:
        call()
        seconds = time.perf_counter() - start
    finally:
        context._jsc.clearJobGroup()
    context._jsc.sc().listenerBus().waitUntilEmpty()
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    jobs = list(tracker.getJobIdsForGroup(group))
    numbers = {stage for job in jobs for stage in tracker.getJobInfo(job).stageIds}
    known = [store.lastStageAttempt(number) for number in sorted(numbers)]
    ran = [stage for stage in known if stage.status().name() == "COMPLETE"]
    return Work(
        seconds=seconds,
        jobs=len(jobs),
        stages=len(ran),
        shuffles=sum(stage.shuffleWriteBytes() > 0 for stage in ran),
        shuffled=sum(stage.shuffleWriteBytes() for stage in ran),
        brought=sum(stage.resultSize() for stage in ran),
    )
