"""Runs the measures, the libraries in turn, and keeps the best of several rounds."""

import platform
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import spearmanr

from benchmarks.noise.cases import CASES, LIBRARIES, SINGLES, SOURDINE, TIMED, TIMING_CASES, Case, Library
from benchmarks.peers import Answer, Worker

LARGEST = (100, 1000)  # one noise in so many is called large

Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Noises a second of one mechanism, in its best repetition."""

    library: str
    mechanism: str
    case: str
    draws: int
    repetitions: int
    rate: float


@dataclass(frozen=True, kw_only=True)
class Timing:
    """The rank correlation between the time of a single draw and the size of its noise."""

    library: str
    mechanism: str
    case: str
    calls: int
    microseconds: float
    correlation: float
    largest: dict[
        int, float
    ]  # a rank correlation is blind to rare large noises, so their time is compared too


@dataclass(frozen=True, kw_only=True)
class Results:
    machine: str = field(default_factory=platform.platform)
    python: str = field(default_factory=platform.python_version)
    versions: dict[str, dict[str, str]]
    first: dict[str, float]
    speeds: list[Speed]
    timings: list[Timing]

    def best(self, library: Library, case: Case) -> Speed | None:
        """The fastest mechanism of a library for a case."""
        found = (s for s in self.speeds if (s.library, s.case) == (library.name, case.label))
        return max(found, key=lambda speed: speed.rate, default=None)


def measure(quick: bool, progress: Progress) -> Results:
    """All measures; `progress` is told what runs now."""
    for library in LIBRARIES:
        if not library.environment.ready:
            progress(f"making the environment of {library.name}")
            library.environment.prepare()
    with ExitStack() as stack:
        workers = {
            library.name: stack.enter_context(library.environment.start(library.module))
            for library in LIBRARIES
        }
        return Results(
            versions={name: worker.ask({"measure": "versions"}) for name, worker in workers.items()},
            first={case.label: _first(case, progress) for case in CASES},
            speeds=_speeds(workers, quick, progress),
            timings=_timings(workers, quick, progress),
        )


def _first(case: Case, progress: Progress) -> float:
    """Seconds until Sourdine's first noise, in a fresh process, after its import."""
    progress(f"first call: {case.label}")
    (mechanism,) = SOURDINE.mechanisms[case.law]
    question = {"measure": "first", "mechanism": mechanism, "size": str(case.size)}
    return float(SOURDINE.environment.ask_once(SOURDINE.module, question)["seconds"])


def _speeds(workers: dict[str, Worker], quick: bool, progress: Progress) -> list[Speed]:
    entries = [
        (library, mechanism, case, library.count(case, quick))
        for case in CASES
        for library in LIBRARIES
        for mechanism in library.mechanisms[case.law]
        if library.count(case, quick)
    ]
    seconds: dict[tuple[str, str, str], list[float]] = {}
    rounds = 2 if quick else 5
    for turn in range(rounds + 1):
        for library, mechanism, case, draws in entries:
            warm_up = turn == 0
            stage = "warm-up" if warm_up else f"round {turn} of {rounds}"
            progress(f"speed, {stage}: {case.label}, {library.name}")
            question = {
                "measure": "many",
                "mechanism": mechanism,
                "size": str(case.size),
                "count": max(1, draws // 20) if warm_up and library.repetitions == 1 else draws,
                "repetitions": 1 if warm_up else library.repetitions,
            }
            answer = workers[library.name].ask(question)
            if not warm_up:
                seconds.setdefault((library.name, mechanism, case.label), []).extend(answer["seconds"])
    return [
        Speed(
            library=library.name,
            mechanism=mechanism,
            case=case.label,
            draws=draws,
            repetitions=len(seconds[library.name, mechanism, case.label]),
            rate=draws / min(seconds[library.name, mechanism, case.label]),
        )
        for library, mechanism, case, draws in entries
    ]


def _timings(workers: dict[str, Worker], quick: bool, progress: Progress) -> list[Timing]:
    timings = []
    for case in TIMING_CASES:
        for library in TIMED:
            calls = SINGLES // 4 if quick else SINGLES
            for mechanism in library.mechanisms[case.law]:
                progress(f"time of single draws: {case.label}, {library.name}")
                question = {"measure": "one", "mechanism": mechanism, "size": str(case.size), "calls": calls}
                answer = workers[library.name].ask(question)
                timings.append(_timing(library, mechanism, case, answer))
    return timings


def _timing(library: Library, mechanism: str, case: Case, answer: Answer) -> Timing:
    times = np.array(answer["nanoseconds"], dtype=np.float64)
    noise = np.abs(np.array(answer["noise"]))
    order = np.argsort(noise, kind="stable")
    return Timing(
        library=library.name,
        mechanism=mechanism,
        case=case.label,
        calls=len(times),
        microseconds=float(np.median(times)) / 1000,
        correlation=float(spearmanr(times, noise).statistic),
        largest={
            rarity: float(np.median(times[order[-(len(order) // rarity) :]]) / np.median(times))
            for rarity in LARGEST
        },
    )
