"""Replay of neighbouring tables through a plan: do its exact numbers move by no more than is paid for?"""

import tempfile
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sourdine.audit.plans.batched import NUMBER, BatchedSource, numbered
from sourdine.audit.plans.cells import BIGINT
from sourdine.audit.plans.engines import ENGINES, AuditedEngine, Workplace
from sourdine.audit.plans.movement import flaw, movements
from sourdine.audit.plans.walk import Layout, Walk, WalkStep, some_keys
from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.serialization import written
from sourdine.frames.joins import Join, open_joined
from sourdine.frames.source import Source
from sourdine.tables.answers import Answers
from sourdine.tables.measurement import Exact, PlannedMeasurement
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.release import _carry_out, check_source, exact_of, keyed, scans
from sourdine.tables.shown_rows import EVERYTHING
from sourdine.tables.statistics import Chart, style_of
from sourdine.testing import SeededBits

MOST_PAIRS = 10**7
_AT_ONCE = 500  # pairs of one walk
_UNTIL_FOUND = 100  # and where it ends at the first violation
_ALONE = 50  # of so many tables one is also asked on its own
_ON_DEMAND = "it takes long to start: name it among the engines"
_RELEASED = 5  # of so many of those one is also released, and its neighbour asked on its own too
Stretch = tuple[AuditedEngine, int, int]  # an engine, the seed of a walk, and how many pairs of it
Watch = Callable[[Sequence[Stretch]], Iterable[Stretch]]


@dataclass(frozen=True, kw_only=True)
class Violation:
    """A pair of tables whose numbers say that a claim is false, and how to see it again."""

    query: str
    line: str
    engine: str
    fault: str
    claimed: str = ""
    amount: str = field(default="", metadata=written("seen"))
    seed: int
    pair: int

    @property
    def words(self) -> str:
        """All of it in one sentence."""
        figures = f" (declared {self.claimed}, seen {self.amount})" if self.claimed else ""
        return (
            f"{self.line} in '{self.query}' on {self.engine}: {self.fault}{figures}. "
            f"Replay: --seed {self.seed} --pairs {self.pair} --engine {self.engine}"
        )


@dataclass
class LineAudit:
    """What was seen of one line of a plan: how many pairs, and the farthest that one moved its numbers."""

    line: PlannedMeasurement
    pairs: int = 0
    still: int = 0
    moved: int = 0
    ratio: float = 0.0


@dataclass
class PlanAudit:
    """What a replay found: line by line, with all violations, and which engines were left out and why."""

    plan: ReleasePlan
    lines: list[LineAudit]
    joins: tuple[Join, ...] = ()
    engines: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether nothing moved farther than is paid for, and nothing else told about records."""
        return not self.violations


def audit_plan(
    plan: ReleasePlan,
    *,
    joins: Sequence[Join] = (),
    pairs: int = 300,
    engines: Sequence[str] | None = None,
    seed: int = 1,
    watch: Watch = lambda stretches: stretches,
    until_found: bool = False,
    alone: int = _ALONE,
) -> PlanAudit:
    """Replay made-up neighbouring tables through a plan, on the engines named or on all installed ones.

    The exact numbers of each line, before noise and with the same secret, must be within the line's distance;
    those of a query must not move when records come that it leaves out; their shape must not depend on
    records, and no record may raise an error. Tables are made up from declarations: no real one is read.
    Where an engine takes many tables at once, one in so many is also asked `alone`.

    >>> from sourdine.tables import Privacy, Query
    >>> from sourdine.frames import Schema
    >>> schema = Schema.read({"sex": {"type": "category", "keys": ["f", "m"]}})
    >>> query = Query.read({"name": "people", "ask": ["count"], "by": ["sex"]})
    >>> plan = ReleasePlan(schema=schema, queries=(query,), privacy=Privacy(epsilon=1))
    >>> found = audit_plan(plan, pairs=50, engines=["duckdb"])
    >>> found.good, found.lines[0].ratio
    (True, 1.0)
    """
    pairs = check.integer("audit_plan", "pairs", pairs, 1, MOST_PAIRS)
    seed = check.integer("audit_plan", "seed", seed, 0, 1 << 62)
    alone = check.integer("audit_plan", "alone", alone, 1, MOST_PAIRS)
    audit = PlanAudit(plan, [LineAudit(line) for line in plan.lines], tuple(joins))
    stretches: list[Stretch] = []
    for engine in _engines(engines):
        if why := engine.lacks or (engines is None and not engine.together and _ON_DEMAND):
            audit.skipped[engine.name] = why
            continue
        few = pairs if engine.together else max(1, pairs // 100)
        audit.engines[engine.name] = few
        most = _UNTIL_FOUND if until_found else _AT_ONCE
        stretches += [(engine, seed + at, min(most, few - at * most)) for at in range(-(-few // most))]
    for engine, start, many in watch(stretches):
        with tempfile.TemporaryDirectory() as folder:
            _Replay(audit, engine, start, Workplace(Path(folder)), until_found, alone).run(many)
        if until_found and audit.violations:
            break
    return audit


def _engines(names: Sequence[str] | None) -> list[AuditedEngine]:
    unknown = [name for name in names or () if name not in ENGINES]
    if unknown:
        raise check.fail("audit_plan", "engines", f"be among {', '.join(ENGINES)}", unknown[0])
    if names is None:
        return [each for each in ENGINES.values() if not each.variant]
    return [ENGINES[name] for name in names]


@dataclass
class _Replay:
    """One walk on one engine."""

    audit: PlanAudit
    engine: AuditedEngine
    seed: int
    place: Workplace
    until_found: bool = False
    spacing: int = _ALONE
    shape: object = None

    def run(self, pairs: int) -> None:
        """All tables at once, then some of them each on its own, and some pairs with a whole release."""
        walk = Walk(self.audit.plan, self.seed, self.engine.text, self.engine.wide, self.audit.joins)
        steps = walk.steps(pairs)
        try:
            check_source(self.audit.plan, self._open(walk.layout, steps[0].rows))
        except InvalidParameter as refused:  # by declarations and types alone, before any record is read
            self.audit.engines.pop(self.engine.name, None)
            self.audit.skipped[self.engine.name] = f"the plan is refused there ({refused})"
            return
        if self.engine.together:
            exact = self._together(walk.layout, steps)
            if self.until_found and self.audit.violations:
                return
            for place in range(0, len(exact), self.spacing):
                self._same(walk.layout, steps, place, exact[place])
        else:
            self._in_turn(walk.layout, steps)
        every = _RELEASED * self.spacing
        for place in range((len(steps) - 2) % every, len(steps) - 1, every):
            self._alone(walk.layout, steps, place)

    def _together(
        self, layout: Layout, steps: Sequence[WalkStep]
    ) -> list[dict[int, tuple[PlannedMeasurement, Exact]]]:
        """All pairs by one question for all tables; what was found of each, nothing after an error."""
        wide = Layout((*layout.names, NUMBER), (*layout.kinds, BIGINT))
        rows = numbered([step.rows for step in steps])
        try:
            tables = BatchedSource(self._open(wide, rows, NUMBER), len(steps))
            exact = [self._exact(tables.table(number)) for number in range(len(steps))]
        except Exception as problem:  # whatever it is, a record has caused it
            self._violate(None, f"records raised {type(problem).__name__}", pair=len(steps) - 1)
            return []
        for place, step in enumerate(steps[1:], 1):
            self._compare(step, exact[place - 1], exact[place], place)
        return exact

    def _in_turn(self, layout: Layout, steps: Sequence[WalkStep]) -> None:
        """All pairs, each table by questions of its own."""
        before = None
        for place, step in enumerate(steps):
            try:
                after = self._exact(self._open(layout, step.rows))
            except Exception as problem:
                self._violate(None, f"records raised {type(problem).__name__}", pair=max(place, 1))
                return
            if before is not None:
                self._compare(step, before, after, place)
            before = after

    def _same(
        self,
        layout: Layout,
        steps: Sequence[WalkStep],
        place: int,
        among: dict[int, tuple[PlannedMeasurement, Exact]],
    ) -> None:
        """A table alone must give what it gives among others: else what an engine knows of it decides."""
        try:
            alone = self._exact(self._open(layout, steps[place].rows))
        except Exception as problem:
            self._violate(None, f"records raised {type(problem).__name__}", pair=max(place, 1))
            return
        plan = self.audit.plan
        for number, (line, exact) in among.items():
            moved = movements(line, exact, alone[number][1], plan.schema)[0]
            if moved.amount:
                fault = "the engine counts a table otherwise than the same records among others"
                self._violate(line, fault, max(place, 1), "0", _short(moved.amount))

    def _alone(self, layout: Layout, steps: Sequence[WalkStep], place: int) -> None:
        """A pair, each table opened for itself, and a whole release of the first."""
        try:
            sources = [self._open(layout, step.rows) for step in steps[place : place + 2]]
            before, after = map(self._exact, sources)
            release = _carry_out(self.audit.plan, sources[0], bits=SeededBits(self.seed))
        except Exception as problem:
            self._violate(None, f"records raised {type(problem).__name__}", pair=place + 1)
            return
        self._compare(steps[place + 1], before, after, place + 1)
        open_keys = {
            line.measurement.scope.query for line in self.audit.plan.lines if line.measurement.scope.open
        }
        # noise chooses keys that nobody declared, and which rows HAVING, ORDER BY and LIMIT show
        unknown = {query.name for query in self.audit.plan.queries if query.show != EVERYTHING} | open_keys
        shape = _shape(release.values, unknown), release.quality and _shape(release.quality.answers)
        if self.shape not in (None, shape):
            self._violate(None, "the shape of the answers depends on records", pair=place + 1)
        self.shape = shape

    def _open(self, layout: Layout, rows: Sequence[tuple[object, ...]], *others: str) -> Source:
        plan = self.audit.plan
        unit = [] if plan.unit.column is None else [plan.unit.column]
        table = self.engine.make(layout, rows, self.place)  # type: ignore[arg-type]
        return open_joined(table, plan.schema, self.audit.joins, [*unit, *others])

    def _exact(self, source: Source) -> dict[int, tuple[PlannedMeasurement, Exact]]:
        """The exact numbers of each line, before noise, always with the same secret.

        Keys that a release would choose are fixed here: the others pay for themselves whatever was chosen.
        """
        plan, bits, numbers_of = self.audit.plan, SeededBits(self.seed), {}
        places = {id(line): place for place, line in enumerate(plan.lines)}
        for scan in scans(plan):
            measured, lines, table = scan[0].measurement, scan, source
            if measured.scope.open and measured.answer:
                lines, table = keyed(scan, source, some_keys(len(measured.scope.open)))
            exact = exact_of(lines, plan, table, bits)
            for line, known, numbers in zip(scan, lines, exact, strict=True):
                numbers_of[places[id(line)]] = known, numbers
        return numbers_of

    def _compare(
        self,
        step: WalkStep,
        before: dict[int, tuple[PlannedMeasurement, Exact]],
        after: dict[int, tuple[PlannedMeasurement, Exact]],
        pair: int,
    ) -> None:
        schema = self.audit.plan.schema
        for place, record in enumerate(self.audit.lines):
            (_, one), (line, other) = before[place], after[place]
            if wrong := flaw(line, other, schema):
                self._violate(line, wrong, pair)
                continue
            first, *rest = movements(line, one, other, schema)
            # keys are chosen, and records that fit are counted, by other records than a query counts
            alone = line.measurement.answer
            if step.nobody or (alone and line.measurement.scope.query in step.still):
                record.still += 1
                if first.amount:
                    self._violate(line, "records that do not count moved it", pair, "0", _short(first.amount))
            if step.neighbour:
                record.pairs += 1
                record.moved += bool(first.amount)
                record.ratio = max(record.ratio, first.ratio)
                for each in (first, *rest):
                    if each.amount > each.claimed:
                        self._violate(line, each.fault, pair, _short(each.claimed), _short(each.amount))
                        break

    def _violate(
        self, line: PlannedMeasurement | None, fault: str, pair: int, claimed: str = "", amount: str = ""
    ) -> None:
        measured = None if line is None else line.measurement
        self.audit.violations.append(
            Violation(
                query="" if measured is None else measured.scope.query,
                line="the plan" if measured is None else measured.label,
                engine=self.engine.name,
                fault=fault,
                claimed=claimed,
                amount=amount,
                seed=self.seed,
                pair=pair,
            )
        )


def _shape(answers: Answers, unknown: Collection[str] = ()) -> object:
    """What of an answer must not depend on records; keys that noise chooses may, and are paid for."""
    return [
        (
            each.query,
            each.statistic,
            each.columns,
            each.keys if each.query not in unknown and style_of(each.kind).chart is not Chart.LIST else None,
            each.whole,
            each.bounded,
            None if each.query in unknown else each.estimate.value.shape,
            str(each.estimate.value.dtype),
        )
        for each in answers.each
    ]


def _short(far: object) -> str:
    return f"{float(far):g}"  # type: ignore[arg-type]
