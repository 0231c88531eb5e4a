"""How often the intervals of a release hold the truth, over many releases with seeds of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sourdine as sd
from benchmarks.asking.cases import Case
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.duckdb import NOTHING, AnswerTable, SideTables, TableEngine
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RememberedEngine:
    """An engine that is asked the same question once: only the noise differs from release to release."""

    base: TableEngine
    answers: dict[object, Any] = field(default_factory=dict)

    @property
    def dialect(self) -> Dialect:
        return self.base.dialect

    @property
    def name(self) -> str:
        return self.base.name

    @property
    def names(self) -> Sequence[str]:
        return self.base.names

    @property
    def types(self) -> Mapping[str, str]:
        return self.base.types

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        return self.base.failures

    def connect(self) -> None:
        self.base.connect()

    def digest(self) -> str:
        return self.base.digest()

    def ask(self, sql: str, side_tables: SideTables = NOTHING) -> list[tuple[Any, ...]]:
        return self._once("ask", sql, side_tables)

    def columns(self, sql: str, side_tables: SideTables = NOTHING) -> dict[str, NDArray[Any]]:
        return dict(self._once("columns", sql, side_tables))

    def keep(self, sql: str, side_tables: SideTables = NOTHING) -> AnswerTable:
        return self.base.keep(sql, side_tables)

    def _once(self, way: str, sql: str, side_tables: SideTables) -> Any:
        text = repr({name: {k: v.tolist() for k, v in table.items()} for name, table in side_tables.items()})
        if (way, sql, text) not in self.answers:
            self.answers[way, sql, text] = getattr(self.base, way)(sql, side_tables)
        return self.answers[way, sql, text]


@dataclass
class Cover:
    """What was seen of one answer: in how many releases each group held the truth, and how wide it was."""

    label: str
    truth: Floats
    hits: NDArray[np.int64]
    widths: list[Floats]

    @property
    def least(self) -> float:
        """The coverage of the group that is covered least."""
        return float(self.hits.min() / len(self.widths))

    @property
    def mean(self) -> float:
        """The coverage of all groups."""
        return float(self.hits.mean() / len(self.widths))

    @property
    def width(self) -> float:
        """The median width over all groups and releases."""
        return float(np.median(np.concatenate(self.widths)))

    @property
    def unbounded(self) -> float:
        """The share of intervals without an end."""
        return float(np.mean(~np.isfinite(np.concatenate(self.widths))))


def covers(case: Case, *, epsilon: float, delta: float | None, runs: int) -> list[Cover]:
    """The intervals of so many releases of all queries of a case."""
    table = sd.Table(case.table, unit="person", columns=case.columns, size=case.table.num_rows)
    noise = None if delta is None else "gaussian"
    plan = table.plan(*case.queries, epsilon=epsilon, delta=delta, quality=False, noise=noise)
    source = replace(table.source, engine=RememberedEngine(table.source.engine))
    found: dict[tuple[str, str], Cover] = {}
    for run in range(runs):
        for answer in _carry_out(plan, source, bits=SeededBits(run)).values:
            held, name = answer.estimate, (answer.query, answer.statistic)
            if name not in found:
                truth = case.truth(answer.statistic, answer.columns, list(answer.keys))
                found[name] = Cover(answer.statistic, truth, np.zeros(truth.shape, np.int64), [])
            cover = found[name]
            near = 1e-9 * np.abs(cover.truth)  # of sums in another order
            cover.hits += (held.lower <= cover.truth + near) & (cover.truth - near <= held.upper)
            with np.errstate(over="ignore"):
                cover.widths.append(held.upper - held.lower)
    return list(found.values())
