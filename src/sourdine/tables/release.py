"""Charge, count exactly, add noise, read off answers.

After a charge no error speaks with the words of an engine: they may quote records.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from sourdine.accounting.ledger import Ledger, PureBudget, Receipt
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.ledger.numbers import readable
from sourdine.accounting.release import Release
from sourdine.core.display import Figure, figure_of
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import setting
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.aggregate import MOST_GROUPS
from sourdine.frames.contributions import with_keys
from sourdine.frames.keys import TEXT, Cell, Keys
from sourdine.frames.source import Source
from sourdine.mechanisms import Laplace
from sourdine.tables.answers import Answer, Answers
from sourdine.tables.compare import Shared, compared
from sourdine.tables.crosstab import Crosstab, Sort, adds_up, crosstab_of, select
from sourdine.tables.intervals import Noisy, Reading
from sourdine.tables.measurement import ChosenKeys, Exact, Measurement, PlannedMeasurement, expect
from sourdine.tables.origin import FRAME, TableOrigin
from sourdine.tables.payment import DeclaredTable, admit, check_given, check_ledger, paid, read_again, silence
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.privacy import NoiseChoice
from sourdine.tables.quality import DataQuality, Quality, data_quality
from sourdine.tables.query import Query
from sourdine.tables.row_selection import IntervalKind, SelectedIntervals
from sourdine.tables.statistics import Statistic
from sourdine.tables.statistics.keys import ShownKeys
from sourdine.tables.statistics.quantiles import Ordered

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa


# Passes over a table: which lines of a plan share one, with which keys, and what it finds before noise.

_FEW = 1 << 13  # groups that an engine keeps as quickly as a handful
Scan = Sequence[PlannedMeasurement]


def scans(plan: ReleasePlan) -> list[Scan]:
    """The lines of a plan by the passes over the table they need.

    Lines about the same records are summed in one pass, as long as all their keys together make few groups.
    """
    passes: list[list[PlannedMeasurement]] = []
    for line in plan.lines:
        for scan in passes:
            if _together([*scan, line], plan):
                scan.append(line)
                break
        else:
            passes.append([line])
    return list(passes)


def _together(lines: Scan, plan: ReleasePlan) -> bool:
    """Whether one pass over the table may serve these lines."""
    measured = [line.measurement for line in lines]
    first = measured[0].scope
    if any(each.alone for each in measured):
        return False
    if any((each.scope.where, each.scope.open) != (first.where, first.open) for each in measured):
        return False
    if all(each.scope == first and not each.axes for each in measured):
        return True
    return math.prod(dict(size for each in measured for size in each.sizes(plan.schema)).values()) <= _FEW


def keyed(scan: Scan, source: Source, keys: Keys) -> tuple[Scan, Source]:
    """Lines that know the keys which were chosen for them, and the table with those keys."""
    scope, others = scan[0].measurement.scope, all(line.measurement.others for line in scan)
    names = tuple(source.schema.text(name).other or "" for name in scope.open)
    others = others and all(names)
    table, by = with_keys(source, scope.open, keys, others=others)
    rest = Keys.of_columns(*(np.array([name], dtype=TEXT) for name in names))
    known = ChosenKeys(names=Keys.joined([keys, rest]) if others else keys, by=by)
    return [_with_chosen(line, known) for line in scan], table


def _with_chosen(line: PlannedMeasurement, chosen: ChosenKeys) -> PlannedMeasurement:
    measured = line.measurement
    return replace(line, measurement=replace(measured, scope=replace(measured.scope, chosen=chosen)))


def most_keys(line: PlannedMeasurement, plan: ReleasePlan) -> int:
    """How many chosen keys are answered at most, so that no query has too many groups."""
    selection = line.measurement.scope.selection
    sharing = [each.measurement for each in plan.lines if each.measurement.scope.selection == selection]
    groups = max(measured.known_groups(plan.schema) for measured in sharing)
    most = max(1, MOST_GROUPS // groups - 1)  # beside the others
    return min(most, *(each.most_keys for each in sharing))


def exact_of(scan: Scan, plan: ReleasePlan, source: Source, bits: Bits) -> list[Exact]:
    """What one pass over the table finds, before noise, for each line.

    It is how many units have each key, or the values of each group in order, or totals.

    Nobody may see it. `sourdine audit plan` asks for it of made-up tables.
    """
    first, *beside = (line.measurement for line in scan)
    return first.exact(source, plan.unit, bits, beside)


_SQUARES_ADD = 0.91
"""Below it the roots of sums of squares are too short for Laplace noise, whose middle is peaked."""
_MISSING = "there is no release"
Watch = Callable[[Sequence[Scan]], Iterable[Scan]]


@dataclass(frozen=True, kw_only=True)
class TableRelease(Release):
    """A release of tables: `values` are its answers, with their intervals; `plan` says how they were made.

    `quality` tells how many records did not fit what was declared, unless the plan leaves that out.
    """

    plan: ReleasePlan
    values: Answers
    quality: DataQuality | None = None
    origin: TableOrigin = FRAME

    def __repr__(self) -> str:
        paid = "not paid" if self.receipt is None else f"paid by line {self.receipt.number} of its ledger"
        seeded = "" if self.secure else ", seeded: protects nobody"
        return f"<TableRelease {self.values.summary}, {paid}{seeded}>"

    def __getitem__(self, name: tuple[str, str] | str) -> Answer:
        """The answer with a query's name, and with a statistic's where the query asks for several."""
        return self.values[name]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.values)

    def __len__(self) -> int:
        return len(self.values)

    def to_pandas(self) -> "pd.DataFrame":
        """All answers as a tidy pandas frame."""
        return self.values.to_pandas()

    def to_polars(self) -> "pl.DataFrame":
        """All answers as a tidy Polars frame."""
        return self.values.to_polars()

    def to_arrow(self) -> "pa.Table":
        """All answers as a tidy Arrow table."""
        return self.values.to_arrow()

    @property
    def declared(self) -> dict[str, str]:
        """What was declared and what was picked by it, for the certificate."""
        return dict(self.declarations or {})

    def chart(self, query: str | None = None, statistic: str | None = None) -> Figure:
        """A query's answers with their intervals: all its statistics, or one.

        Where there is one query it need not be named.
        """
        return figure_of(self, query, statistic)

    def write(
        self,
        folder: Path | str,
        ledger: Ledger | Path | str,
        *,
        formats: str | Sequence[str] = "csv",
        report: bool = True,
    ) -> tuple[Path, ...]:
        """Publish it in a folder, as `sourdine release` does: answers, record, report and certificate.

        The ledger is the one that paid; nothing more is spent, and no record is read. All files appear at
        once, in a folder that is new or empty, or none does. `formats` are csv, json, parquet and xlsx.
        """
        from sourdine.tables.publication import Publication, Record, specification_of

        place, publication = Path(folder), Publication(self.plan, formats=formats, report=report)
        with opened(ledger) as payer:
            certificate = self.certificate(payer, self.declared)
            record = Record.of(specification_of(self.plan, self.origin, payer.path), self)
        with publication.outbox(place) as box:
            published = publication.deliver(box, self, record, certificate)
        if published.trouble is not None:
            published.trouble.add_note(f"All other files are in {place}.")
            raise published.trouble
        return published.files

    def crosstab(
        self,
        rows: str,
        columns: str,
        *,
        query: str | None = None,
        statistic: str | None = None,
        fixed: Mapping[str, Cell] = MappingProxyType({}),
        sort: Sort = "declared",
    ) -> Crosstab:
        """The answer with keys of two columns as rows and columns, with intervals and sums. It costs nothing.

        Where several answers have them, name a query and a statistic. `fixed` gives keys of further columns,
        whose sums are shown otherwise. Rows are sorted as declared, or by `value` from the largest.
        """
        answer = select(self.values.each, rows, columns, query, statistic)
        consistent = adds_up(self.plan.queries, answer)
        return crosstab_of(answer, rows, columns, fixed=fixed, sort=sort, consistent=consistent)


def release(
    plan: ReleasePlan,
    table: Source | DeclaredTable,
    ledger: Ledger | Path | str,
    *,
    purpose: str,
    bits: Bits = SYSTEM,
    watch: Watch = lambda scans: scans,
) -> TableRelease:
    """Pay for a plan from a ledger, or from the one in a file, then carry it out.

    The guarantee is the plan's: epsilon, or (epsilon, delta), for one unit under the plan's neighbours. The
    charge is on the disk before any record is read. After it nothing that is raised or shown depends on the
    data: an error of the engine is told without its words, and the charge stands.
    """
    check_given(ledger)
    source = check_source(plan, table)
    with opened(ledger) as payer:
        check_noise(plan, payer)
        with paid(plan, payer, bits, purpose=purpose, missing=_MISSING) as receipt:
            again = _note_of_repeat(payer, receipt.number)
            outcome = _carry_out(plan, source, receipt=receipt, bits=bits, watch=watch)
    return replace(outcome, notes=(*again, *outcome.notes)) if again else outcome


def _note_of_repeat(ledger: Ledger, number: int) -> tuple[str, ...]:
    """What is said where the line before paid for the same, as when a cell of a notebook is run again."""
    try:
        now, before = ledger.entry(number), ledger.entry(number - 1)
    except (SourdineError, OSError):
        return ()  # what is paid for is carried out
    if now is None or before is None or before.rule is not None:
        return ()
    if any(getattr(now, name) != getattr(before, name) for name in ("purpose", "spends", "declared_digest")):
        return ()
    return (
        f"Line {before.number} of the ledger paid for the same plan, so this is a second release of it: new "
        "noise, paid anew. Both stay published. To see answers again, keep the release: to run it again pays "
        "again.",
    )


def _carry_out(
    plan: ReleasePlan,
    source: Source,
    *,
    receipt: Receipt | None = None,
    bits: Bits = SYSTEM,
    watch: Watch = lambda scans: scans,
) -> TableRelease:
    """The answers of a plan. Without a receipt they are for rehearsals and measurements only."""
    check_source(plan, source)
    with silence(_MISSING):
        each_answer, notes, quality = _answers(plan, computing(plan, source), bits, watch)
        answers = Answers(each_answer, plan.confidence)
    return TableRelease(
        plan=plan,
        values=answers,
        quality=quality,
        intervals=tuple(
            (each.estimate.lower, each.estimate.upper) if each.bounded else None for each in answers.each
        ),
        spends=plan.spends,
        receipt=receipt,
        confidence=plan.confidence,
        secure=bool(getattr(bits, "secure", False)),
        notes=(*plan.notes, *notes, *(f"WARNING: {each}" for each in (quality.warnings if quality else ()))),
        declarations=plan.declared,
    )


def check_release(
    plan: ReleasePlan, table: Source | DeclaredTable | None = None, ledger: Ledger | None = None
) -> None:
    """Refuse whatever a release refuses before its charge, so that a plan can refuse it too.

    Of the table only names and types were looked at; of the ledger it is seen what it would pay for now.
    """
    spends = plan.spends  # noise that nothing provides is refused when it is looked for
    if table is not None:
        check_source(plan, table)
    if ledger is not None:
        check_ledger(plan, ledger)
        check_noise(plan, ledger)
        ledger.check(*spends)


def check_noise(plan: ReleasePlan, ledger: Ledger) -> None:
    """Refuse pure noise that nobody declared, from a ledger in which Gaussian noise costs less.

    At a small epsilon and delta pure noise is nearer for a single answer, and takes many times as much rho.
    """
    if plan.privacy.delta is None or isinstance(ledger.terms.budget, PureBudget):
        return
    if plan.noise is not None or plan.noise_taken is NoiseChoice.GAUSSIAN:
        return
    try:
        price, less = (
            ledger.price(*each.spends) for each in (plan, replace(plan, noise=NoiseChoice.GAUSSIAN))
        )
    except SourdineError:  # what the ledger cannot pay at all is told when it is charged
        return
    if less < price:
        symbol = ledger.terms.budget.symbol
        raise InvalidParameter(
            f"The plan's noise is pure, since that is nearer, and costs {symbol} {readable(price)} of this "
            f"ledger, where Gaussian noise costs {readable(less)}. Declare {setting('noise', 'gaussian')} to "
            f"pay that, or {setting('noise', 'nearest')} for the smaller errors."
        )


def check_source(plan: ReleasePlan, table: Source | DeclaredTable) -> Source:
    """Return the records of a table, or refuse what is not declared so or cannot be computed of it."""
    source = admit(plan, table)
    computed = computing(plan, source)
    computed.view  # noqa: B018 (what cannot be computed is refused here, and not after the charge)
    for line in plan.lines:
        line.measurement.scope.sql(computed)
        line.measurement.check_source(computed)
    return source


def computing(plan: ReleasePlan, source: Source) -> Source:
    """The table with the columns that a plan computes."""
    return source.computing(plan.schema)


def _answers(
    plan: ReleasePlan, source: Source, bits: Bits, watch: Watch
) -> tuple[tuple[Answer, ...], tuple[str, ...], DataQuality | None]:
    """Every answer in the order of the questions, what is to be noted of how they came, and data quality.

    Keys that nobody declared are chosen first. Whatever is done with those that were chosen costs nothing.
    Data quality is counted and drawn last.
    """
    quality: DataQuality | None = None
    notes: list[str] = []
    answers = _Computed({}, {})
    chosen: dict[tuple[object, ...], Keys] = {}
    statistics, context = list(plan.readings()), plan.context()
    passes = scans(plan)
    first = passes[0] if passes else None  # before it no noise is drawn
    for scan in watch(passes):
        scope, lines, table = scan[0].measurement.scope, scan, source
        if scope.selection in chosen and scope.open:
            lines, table = keyed(scan, source, chosen[scope.selection])
        read = partial(exact_of, lines, plan, table, bits)
        exact = read_again(table, read) if scan is first else read()
        for line, known, part in zip(scan, lines, exact, strict=True):
            measured = known.measurement
            own = [(query, each) for query, each, wanted in statistics if wanted is line]
            level = max((plan.confidence_of(*each) for each in own), default=plan.confidence)
            at = replace(context, confidence=level) if isinstance(measured, Ordered) else context
            reading = measured.read(part, known, at, bits)
            if isinstance(reading, ShownKeys):
                most = most_keys(line, plan)
                chosen[scope.selection] = reading.keys[:most]
                if len(reading.keys) > most:
                    notes.append(f"More {measured.label} were chosen than {most:,}: the others are left out.")
            elif isinstance(measured, Quality):
                quality = _quality(expect(Noisy, reading), measured, plan)
            for query, each in own:
                answers.add(plan, query, each, reading, measured)
    return tuple(_in_order(plan, answers)), tuple(notes), quality


@dataclass(frozen=True)
class _Computed:
    """Every answer by its query and label: with its usual intervals, and with those for all keys at once.

    Answers of queries that show all their rows have no others.
    """

    usual: dict[tuple[str, str], Answer]
    simultaneous: dict[tuple[str, str], Answer]

    def add(
        self, plan: ReleasePlan, query: Query, each: Statistic, reading: Reading, measured: Measurement
    ) -> None:
        """Read an answer off what was measured."""
        name, context = (query.name, each.label), plan.context()
        intervals = plan.intervals.get(name)
        self.usual[name] = each.answer(reading, measured, context, intervals)
        if query.show.hides:
            # never fewer than there are, should the declared size be too small
            keys = max(plan.most_rows(measured), len(self.usual[name].keys), 1)
            level = 1 - (1 - plan.confidence) / keys
            self.simultaneous[name] = each.answer(reading.at(level), measured, context)

    def shown(self, plan: ReleasePlan, query: Query, shared: Shared) -> list[Answer]:
        """The answers of a query, what is computed from them, and of these the rows that are shown."""
        labels = [each.label for each in query.ask]
        found = compared(query.compare, [self.usual[query.name, label] for label in labels], shared)
        if query.show.hides:
            wide = compared(query.compare, [self.simultaneous[query.name, label] for label in labels], shared)
            found = [
                _selected(one, other, plan.intervals.get((query.name, one.statistic)))
                for one, other in zip(found, wide, strict=True)
            ]
        return query.show.apply(found)


def _selected(usual: Answer, simultaneous: Answer, intervals: SelectedIntervals | None) -> Answer:
    """The answer whose intervals are valid although noise chose its rows."""
    if intervals is None:
        return usual
    kept = simultaneous if intervals.kind is IntervalKind.SIMULTANEOUS else usual
    return replace(kept, hidden=True, selection=intervals.note, confidence=usual.confidence)


def _in_order(plan: ReleasePlan, computed: _Computed) -> Iterator[Answer]:
    """The answers of every query in its order, with what is computed from them."""
    lines = {(query.name, each.label): line for query, each, line in plan.readings()}
    laplace = any(isinstance(line.mechanism, Laplace) for line in plan.lines)
    for query in plan.queries:
        statistics = {each.label: each for each in query.ask}

        def shared(
            one: str,
            other: str,
            over: tuple[str, ...] | None,
            name: str = query.name,
            statistics: Mapping[str, Statistic] = statistics,
        ) -> bool:
            """Groups of a query have noise of their own, and not always the keys that a statistic adds."""
            if laplace and plan.confidence < _SQUARES_ADD:
                return True
            if one != other:
                return lines[name, one] is lines[name, other]
            adds = statistics[one].adds
            return not statistics[one].disjoint and bool(adds if over is None else set(over) & set(adds))

        yield from computed.shown(plan, query, shared)


def _quality(noisy: Noisy, measured: Quality, plan: ReleasePlan) -> DataQuality:
    """How many records fit, off noisy counts."""
    return data_quality(
        noisy.numbers.tolist(),
        noisy.mechanism,
        columns=measured.columns,
        schema=plan.schema,
        unit=plan.unit,
        size=plan.size,
        confidence=plan.confidence,
    )
