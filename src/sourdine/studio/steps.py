"""The fifth step: what epsilon buys. Errors of every answer, noise on a made-up table, and odds."""

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from sourdine.accounting.explain import explain_guarantee, sentences
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.numbers import readable
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import byte_count, counted, in_files, plain
from sourdine.core.random.bits import SYSTEM
from sourdine.frames.expressions import TimePeriod
from sourdine.frames.quality import mock_source
from sourdine.frames.source import Source
from sourdine.studio.desk import (
    Desk,
    Job,
    JobState,
    LedgerPayment,
    PrivateCounts,
    Sheet,
    check_again,
    payments_for,
)
from sourdine.studio.draft import block_text
from sourdine.studio.review import TYPES, Message, Suggestion, shown, suggest
from sourdine.tables import Answer, Forecast, ReleasePlan, Specification, rehearse
from sourdine.tables.bounds import bounds_purpose
from sourdine.tables.forecast import advice, forecasts, quality_forecast
from sourdine.tables.measurement import plural
from sourdine.tables.quality import NOTICE, OUTSIDE, exact_quality, told_rows
from sourdine.tables.quality_release import PURPOSE, QualityPlan, release_quality
from sourdine.tables.query import columns_of
from sourdine.tables.release import computing, exact_of
from sourdine.tables.shown_rows import EVERYTHING
from sourdine.tables.statistics import BY_KIND

SMALLEST, LARGEST = 0.01, 20.0  # of the slider
_TENFOLD = 120  # steps of the slider, so that 0.1, 1 and 10 are among them
_STEPS = round(_TENFOLD * math.log10(LARGEST / SMALLEST))


def budget_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """The forecast at the declared epsilon."""
    specification = sheet.review.specification
    if specification is None:
        left = (
            (step, sheet.review.of(step)) for step in ("table", "people", "columns", "questions", "budget")
        )
        return {"ready": False, "left": [(step, _left(messages)) for step, messages in left if messages]}
    plan = specification.plan()
    return {
        "ready": True,
        "position": position_of(float(plan.privacy.epsilon)),
        "steps": _STEPS,
        "targets": [(query.name, each.label) for query in plan.queries for each in query.ask],
        **forecast_view(plan),
    }


def _left(messages: Sequence[Message]) -> str:
    """What a step still lacks: its first mistake, or how many fields wait."""
    wrong = [each.words for each in messages if not each.blank]
    return wrong[0] if wrong else f"{counted(len(messages), 'field')} to fill in."


def position_of(epsilon: float) -> int:
    """Where the slider stands: equal steps are equal factors."""
    return round(_TENFOLD * math.log10(min(max(epsilon, SMALLEST), LARGEST) / SMALLEST))


def epsilon_at(position: float) -> float:
    """The epsilon of a place of the slider, in two digits.

    >>> epsilon_at(position_of(1.0)), epsilon_at(0)
    (1.0, 0.01)
    """
    exact = SMALLEST * 10 ** (min(max(position, 0), _STEPS) / _TENFOLD)
    return float(f"{exact:.2g}")


def at_epsilon(sheet: Sheet, epsilon: float) -> ReleasePlan:
    """The plan of a specification at another epsilon."""
    specification = sheet.review.specification
    if specification is None:
        raise InvalidParameter("Fill in the steps before this one first.")
    if not 0 < epsilon <= 1 << 20:
        raise InvalidParameter("Epsilon must be above 0.")
    return specification.plan(Fraction(repr(epsilon)))


@in_files()
def forecast_view(plan: ReleasePlan) -> dict[str, Any]:
    """The errors of every answer, and what the epsilon means; no record is read."""
    last = quality_forecast(plan)
    rows = [*forecasts(plan), *([last] if last else [])]
    explanation = explain_guarantee(
        plan.guarantee.epsilon, plan.guarantee.delta or 0, unit=plan.unit.name, neighbours=plan.neighbours
    )
    return {
        "epsilon": float(plan.privacy.epsilon),
        "rows": [_row(each) for each in rows],
        "unknown": plan.size is None and any(each.note.startswith("declare") for each in rows),
        "confidence": f"{100 * plan.confidence:g}",
        "odds": sentences(explanation),
        "words": plan.guarantee.words,
        "warning": plan.warning,
        "advice": advice(plan),
    }


def _row(each: Forecast) -> dict[str, str]:
    return {
        "query": each.query,
        "statistic": each.statistic,
        "error": each.words,
        "share": f"{100 * float(each.share):.3g} %",
        "noise": each.noise,
        "note": each.note,
    }


# The sixth step: does the data fit what is declared? Privately for a price, or exactly and marked.


EXACT, PRIVATE = "exact counts", "private counts"
_SMALL = Fraction(1, 10)


def check_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """What the private counts would see, and the exact ones if somebody asked for them."""
    specification = sheet.review.specification
    job = desk.jobs.of(sheet.name, EXACT)
    exact = desk.exact.get(sheet.name)
    view: dict[str, Any] = {
        "ready": specification is not None,
        "quality": sheet.file.blocks.get("privacy", {}).get("quality", True),
        "checked": sheet.file.blocks.get("table", {}).get("checked", False) is True,
        "notice": NOTICE,
        "outside": OUTSIDE,
        "counting": job is not None and job.running,
        "trouble": job.words if job is not None else "",
        "exact": None if exact is None else list(exact.lines())[:-1],
        "forecast": None,
        "told": desk.told.get(sheet.name),
        "private": desk.jobs.of(sheet.name, f"{PRIVATE} of {sheet.file.version}"),
        "there": False,
        "lost": [],
    }
    if specification is not None and specification.is_there:
        plan = specification.plan()
        view["forecast"], view["sized"] = quality_forecast(plan), plan.size is not None
        view["there"] = ledger_is_there(specification)
        view["small"] = QualityPlan(plan=plan, epsilon=_SMALL)
        if view["there"]:
            try:
                with specification.open_ledger() as ledger:
                    view["lost"] = lost_counts(desk, sheet, ledger)[-1:]
            except SourdineError:
                view["there"] = False
    return view


def ledger_is_there(specification: Specification) -> bool:
    """Whether there is something that can pay."""
    path = specification.ledger_path
    return path is not None and (not isinstance(path, Path) or path.exists())


def count_privately(desk: Desk, sheet: Sheet, epsilon: Fraction, *, again: object = None) -> None:
    """Pay for private counts, once for a version of the specification, and keep them for the page.

    Where the ledger paid for such counts and the page does not show them, `again` must name the line.
    """
    specification = sheet.review.specification
    if specification is None:
        raise InvalidParameter("Fill in the steps before this one first.")
    name = f"{PRIVATE} of {sheet.file.version}"
    quality = QualityPlan(plan=specification.plan(), epsilon=epsilon)
    begun = desk.jobs.of(sheet.name, name)
    if begun is None or begun.state is JobState.FAILED:
        sheet.check_reach(specification)
        if desk.jobs.running(sheet.name) is None:
            with specification.open_ledger() as ledger:
                check_again(lost_counts(desk, sheet, ledger), again, "private counts")

    def work(job: Job) -> None:
        with specification.open_ledger() as ledger:
            counts, receipt = release_quality(quality, specification.open(), ledger)
        value, low, high = counts.records
        desk.told[sheet.name] = PrivateCounts(
            rows=tuple(told_rows(counts)),
            warnings=counts.warnings,
            words=f"About {value:,.0f} records were read (between {low:,.0f} and {high:,.0f}). Paid "
            f"{receipt.currency} {readable(receipt.price)}, line {receipt.number} of the ledger.",
        )

    desk.jobs.begin(sheet.name, name, work)


def lost_counts(desk: Desk, sheet: Sheet, ledger: Ledger) -> list[LedgerPayment]:
    """What paid for private counts, if the page has none to show."""
    return [] if sheet.name in desk.told else payments_for(ledger, PURPOSE)


def count_exactly(desk: Desk, sheet: Sheet) -> None:
    """Mark the specification as checked, then count in the server; the page shows it when it is done."""
    specification = sheet.review.specification
    if specification is None:
        raise InvalidParameter("Fill in the steps before this one first.")
    sheet.check_reach(specification)

    def work(job: Job) -> None:
        plan, source = specification.plan(), specification.open()
        desk.mark(sheet.file.path)  # before anything is shown
        desk.exact[sheet.name] = exact_quality(
            source, columns_of(plan.queries, plan.schema), specification.unit
        )

    desk.exact.pop(sheet.name, None)
    desk.jobs.forget(sheet.name, EXACT)
    desk.jobs.begin(sheet.name, EXACT, work)


# The third step: what each column holds, as people know it without looking.


PUBLIC = {
    "joins": "a public table that is joined",
    "hierarchies": "a hierarchy, such as towns in regions",
}
MEANING = {
    "integer": "Numbers outside the bounds are moved to the nearer one. Wide bounds add noise.",
    "real": "Numbers outside the bounds are moved to the nearer one. Wide bounds add noise.",
    "category": "Each key is shown, whether anybody has it or not. Other values count as unknown.",
    "flag": "Both answers are shown.",
    "text": "Keys that enough units have are chosen privately. That takes a delta, and part of the budget.",
    "date": "Every period from first to last is shown. Days outside are left out.",
    "datetime": "Every period from first to last is shown. Times outside are left out.",
}


@dataclass(frozen=True)
class ColumnView:
    """A column of the table or of the specification, as the page shows it."""

    name: str
    block: Mapping[str, Any] | None
    stated: str | None
    suggestion: Suggestion | None
    derived: bool
    text: str  # as the specification has it

    @property
    def type(self) -> str:
        """The declared type; '' while it waits, 'out' if the column is left out."""
        if self.block is None:
            return "out"
        kind = self.block.get("type")
        return kind if kind in TYPES else ""

    @property
    def hints(self) -> Mapping[str, str]:
        """What a blank may be."""
        return self.suggestion.hints if self.suggestion else {}

    @property
    def meaning(self) -> str:
        """What the type means for privacy."""
        return MEANING.get(self.type, "")

    @property
    def open_suggestion(self) -> Suggestion | None:
        """What is suggested, as long as nothing is declared."""
        return self.suggestion if self.type == "" else None


def columns_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """Every column, declared, waiting or left out."""
    blocks = sheet.file.blocks.get("columns", {})
    unit = sheet.file.blocks.get("privacy", {}).get("column")
    names = list(dict.fromkeys([*sheet.header.types, *blocks]))
    columns = [
        ColumnView(
            name,
            blocks.get(name),
            sheet.header.types.get(name, ""),
            suggest(name, sheet.header.types.get(name, "")),
            "expression" in blocks.get(name, {}),
            block_text(blocks.get(name)),
        )
        for name in names
    ]
    return {
        "columns": columns,
        "types": TYPES,
        "public": [
            (kind, name, block_text(block))
            for kind in PUBLIC
            for name, block in sheet.file.blocks.get(kind, {}).items()
        ],
        "kinds": PUBLIC,
        "unit": unit,
        "can_pay": sheet.ledger is not None,
        "paid": _paid(sheet, blocks),
        "periods": [str(each) for each in TimePeriod],
        "waiting": sum(each.type == "" and not each.derived for each in columns),
        "suggested": sum(each.open_suggestion is not None for each in columns),
    }


def _paid(sheet: Sheet, blocks: Mapping[str, Mapping[str, Any]]) -> dict[str, LedgerPayment]:
    """The columns whose bounds were paid for and are not declared as found, each with the newest payment."""
    numbers = [
        name
        for name, block in blocks.items()
        if block.get("type") in ("integer", "real") and not block.get("found")
    ]
    if sheet.ledger is None or not numbers:
        return {}
    try:
        with Ledger.open(sheet.ledger) as ledger:
            paid = {name: payments_for(ledger, bounds_purpose(name)) for name in numbers}
    except SourdineError:  # it is told where the ledger is chosen
        return {}
    return {name: payments[-1] for name, payments in paid.items() if payments}


# Noise on a made-up table: one answer with noise beside none, drawn anew wherever the slider stands.
#
# The made-up table is counted once. Another epsilon changes the noise alone, so a move of the slider draws
# it.


_MOST_BARS = 24
_BELOW, _ABOVE = 0.15, 0.5  # of what is seen without noise: so much room is left on its two sides
_WITHOUT = Fraction(1 << 10)  # an epsilon whose noise nobody sees


@dataclass(frozen=True)
class NoiseBar:
    """One group of a made-up answer: without noise, with noise, and its interval, as parts of the width."""

    label: str
    exact: float
    noisy: float
    lower: float
    upper: float
    words: str


@dataclass
class MockTable:
    """The made-up table of some questions, what was counted in it, and its answers without noise."""

    plan: ReleasePlan
    source: Source
    exact: tuple[Answer, ...]
    drawn: tuple[int, ...]
    counted: list[tuple[object, Any]] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def of(cls, plan: ReleasePlan) -> "MockTable":
        """The table of a plan, and which of its answers have intervals."""
        noisy, exact = rehearse(plan).values.each, rehearse(_without_noise(plan)).values.each
        drawn = [
            number
            for number, each in enumerate(noisy)
            if each.kind in BY_KIND and each.bounded and len(exact[number].keys) == len(each.keys)
        ]
        source = computing(plan, mock_source(plan.schema, plan.unit, plan.size, plan.joins))
        return cls(plan, source, tuple(exact), tuple(drawn))

    def serves(self, plan: ReleasePlan) -> bool:
        """Whether a plan differs by its budget alone."""
        one, other = self.plan, plan
        return (one.queries, one.schema, one.unit, one.size, one.neighbours) == (
            other.queries,
            other.schema,
            other.unit,
            other.size,
            other.neighbours,
        )

    def draw(self, plan: ReleasePlan, number: int) -> Answer:
        """An answer of a plan with new noise."""
        wanted = self.exact[number]
        for query, statistic, line in plan.readings():
            if (query.name, statistic.label) != (wanted.query, wanted.statistic):
                continue
            if line.measurement.scope.open or query.compare or query.show != EVERYTHING:
                break  # which keys there are is chosen first, and answers are computed of answers
            with self.lock:
                part = next((part for known, part in self.counted if known == line.measurement), None)
                if part is None:
                    (part,) = exact_of([line], plan, self.source, SYSTEM)
                    self.counted.append((line.measurement, part))
            context = plan.context()
            reading = line.measurement.read(part, line, context, SYSTEM)
            return statistic.answer(reading, line.measurement, context)
        return rehearse(plan).values.each[number]


_NEWEST: list[MockTable] = []  # of the specification that somebody looks at


def noise_view(plan: ReleasePlan, place: int = -1) -> dict[str, Any]:
    """One answer of a made-up table, with noise beside none."""
    table = next((each for each in _NEWEST if each.serves(plan)), None)
    if table is None:
        table = MockTable.of(plan)
        _NEWEST[:] = [table]
    if not table.drawn:
        return {"bars": [], "choices": []}
    several = [number for number in table.drawn if len(table.exact[number].keys) > 1]
    chosen = place if place in table.drawn else (several or table.drawn)[0]
    exact, noisy = table.exact[chosen], table.draw(plan, chosen)
    bars, least, most = _bars(noisy, exact) if noisy.bounded else ([], 0.0, 0.0)
    return {
        "bars": bars,
        "least": plain(least),
        "most": plain(most),
        "choices": [
            (number, f"{table.exact[number].query}: {table.exact[number].statistic}", number == chosen)
            for number in table.drawn
        ],
        "title": f"{exact.query}: {exact.statistic}",
        "measure": exact.measure,
        "more": max(0, len(exact.keys) - _MOST_BARS),
    }


def _without_noise(plan: ReleasePlan) -> ReleasePlan:
    """The same plan with so much epsilon that its noise cannot be seen."""
    epsilon = _WITHOUT
    while epsilon > 1:
        try:
            made = replace(plan, privacy=replace(plan.privacy, epsilon=epsilon))
            if made.lines:
                return made
        except SourdineError:
            pass
        epsilon /= 2
    return plan


def _bars(noisy: Answer, exact: Answer) -> tuple[list[NoiseBar], float, float]:
    """The groups of an answer, and the ends of the axis they are drawn on, which no noise moves."""
    rows = list(zip(noisy.rows(), exact.rows(), strict=False))[:_MOST_BARS]
    ends = [0.0, *(other[1] for _, other in rows if math.isfinite(other[1]))]
    width = (max(ends) - min(ends)) or 1.0
    least, most = _round(min(ends) - _BELOW * width), _round(max(ends) + _ABOVE * width)
    if exact.span is not None and exact.span[0] <= 0 <= exact.span[1]:  # such as shares, none below 0
        least, most = max(least, exact.span[0]), min(most, exact.span[1])
    bars = [
        NoiseBar(
            label=", ".join(map(str, key)) or "all",
            exact=_part(other[1], least, most),
            noisy=_part(value, least, most),
            lower=_part(low, least, most),
            upper=_part(high, least, most),
            words=f"{plain(value)} ({plain(low)} to {plain(high)}); without noise about {plain(other[1])}",
        )
        for (key, value, low, high), other in rows
    ]
    return bars, least, most


def _round(number: float) -> float:
    """An end of the axis as people write it."""
    return float(f"{number:.2g}")


def _part(number: float, least: float, most: float) -> float:
    """Where a number stands, from 0 to 1000; what lies beyond stands at the edge."""
    if not math.isfinite(number):
        return 0.0 if number < 0 else 1000.0
    return round(min(max(1000 * (number - least) / (most - least), 0.0), 1000.0), 1)


# The second step: whom the release protects, and how much of one of them counts.


_MOST_DRAWN = 6


def people_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """The unit, its column, and a picture of what counts of one unit."""
    privacy = sheet.file.blocks.get("privacy", {})
    unit = privacy.get("unit") or "person"
    rows, groups = (_whole(privacy.get(name, 1)) for name in ("max_rows", "max_groups"))
    likely = [name for name in sheet.header.types if _tells_apart(name, sheet.header.types[name])]
    return {
        "unit": unit,
        "units": plural(str(unit)),
        "column": privacy.get("column") or "",
        "likely": likely,
        "names": list(sheet.header.types),
        "rows": rows,
        "groups": groups,
        "neighbours": privacy.get("neighbours", "add-remove"),
        "drawn_rows": min(rows, _MOST_DRAWN),
        "drawn_groups": min(groups, _MOST_DRAWN),
    }


def _whole(content: object) -> int:
    return content if isinstance(content, int) and content >= 1 else 1


def _tells_apart(name: str, stated: str | None) -> bool:
    """Whether a name reads like that of a column which tells units apart."""
    suggestion = suggest(name, stated)
    return suggestion is not None and suggestion.block is None and "apart" in suggestion.why


# The fourth step: what is asked, of which records, by which groups, and with how much of the budget.


KINDS = {
    "count": "how many records",
    "units": "how many units",
    "sum": "sum",
    "mean": "mean",
    "variance": "variance",
    "deviation": "standard deviation",
    "proportion": "share of records with",
    "quantiles": "quantiles",
    "histogram": "histogram",
    "contingency": "crosstab of",
    "top": "most frequent keys",
    "weighted_mean": "weighted mean",
    "weighted_sum": "weighted sum",
    "covariance": "covariance",
    "correlation": "correlation",
    "regression": "regression line",
}
LABELS = {
    "levels": "shares below, such as 0.25, 0.5",
    "edges": "edges of the bins, such as 0, 20, 40",
    "at_least": "at least",
    "below": "below",
    "of": "keys, separated by commas",
    "k": "how many keys",
    "other": "with the column",
    "on": "on the column",
    "weight": "weighted by the column",
}
EXTRAS = {"proportion": ("at_least", "below", "of")}  # others are as the example of the statistic has them
COLUMNS = ("other", "on", "weight")  # fields that name a column
_NUMBERS, _KEYS = ("integer", "real"), ("category", "flag", "text", "date", "datetime", "integer")
_OF_KEYS = ("contingency", "top")
_CONDITIONS = {
    "integer": ("at_least", "below"),
    "real": ("at_least", "below"),
    "category": ("of",),
    "flag": (),
}


@dataclass(frozen=True)
class AskView:
    """One statistic of a question, as the page shows it."""

    kind: str
    column: object
    extras: Mapping[str, object]

    @property
    def several(self) -> bool:
        """Whether it is about two columns of keys."""
        return self.kind == "contingency"

    @property
    def bare(self) -> bool:
        """Whether it is about no column."""
        return self.kind in BY_KIND and BY_KIND[self.kind].bare

    @property
    def columns(self) -> list[str]:
        """The columns that it is about."""
        held = self.column if isinstance(self.column, list) else [self.column]
        return [str(each) for each in held if each]


@dataclass(frozen=True)
class QuestionView:
    """One question, as the page shows it; `text` if it is asked in SQL."""

    place: int
    name: str
    asks: tuple[AskView, ...]
    by: tuple[str, ...]
    where: tuple[tuple[str, str, str], ...]
    weight: str
    sql: str | None
    plain: bool  # whether the page can show all of it
    text: str  # as the specification has it


def questions_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """Every question, and what can be asked of which column."""
    queries = sheet.file.blocks.get("queries", [])
    schema = sheet.review.schema
    columns = schema.columns if schema else {}
    types = {name: str(getattr(column, "type", "")) for name, column in columns.items()}
    return {
        "questions": [_view(place, block) for place, block in enumerate(queries)],
        "kinds": KINDS,
        "labels": LABELS,
        "column_fields": COLUMNS,
        "numbers": [name for name, kind in types.items() if kind in _NUMBERS],
        "keys": [name for name, kind in types.items() if kind in _KEYS],
        "names": list(types),
        "of_keys": _OF_KEYS,
        "proportions": {name: _CONDITIONS.get(kind, EXTRAS["proportion"]) for name, kind in types.items()},
        "unit": sheet.file.blocks.get("privacy", {}).get("unit", "person"),
        "waiting": bool(sheet.review.of("columns")),
        "example": _example(sheet.stem.rsplit("/", 1)[-1], types),
    }


def _example(table: str, types: Mapping[str, str]) -> str:
    """A question in SQL about columns that are declared, if there are such."""
    number = next((sql_name(name) for name, kind in types.items() if kind in _NUMBERS), None)
    key = next((sql_name(name) for name, kind in types.items() if kind in ("category", "flag")), None)
    asked = [*([key] if key else []), "COUNT(*)", *([f"AVG({number})"] if number else [])]
    groups = ["GROUP BY", key] if key else []
    return " ".join(["SELECT", ", ".join(asked), "FROM", sql_name(table), *groups])


def sql_name(name: str) -> str:
    """A name as SQL takes it."""
    plain = name.isascii() and name.replace("_", "").isalnum() and not name[0].isdecimal()
    return name if plain else '"' + name.replace('"', '""') + '"'


def _view(place: int, block: Any) -> QuestionView:
    if not isinstance(block, Mapping):
        return QuestionView(place, "", (), (), (), "", None, False, "")
    asks = [ask_view(each) for each in listed(block.get("ask"))]
    by = listed(block.get("by"))
    where = where_rows(block.get("where", {}))
    known = {"name", "ask", "by", "where", "weight", "sql"}
    plain = (
        set(block) <= known
        and None not in asks
        and where is not None
        and all(isinstance(each, str) for each in by)
    )
    return QuestionView(
        place=place,
        name=shown(block.get("name")),
        asks=tuple(each for each in asks if each is not None),
        by=tuple(map(str, by)),
        where=tuple(where or ()),
        weight=shown(block.get("weight", 1)),
        sql=str(block["sql"]) if "sql" in block else None,
        plain=plain,
        text=block_text({name: each for name, each in block.items() if name not in ("name", "weight")}),
    )


def listed(content: Any) -> list[Any]:
    """A list, also where one thing stands alone."""
    return [] if content is None else list(content) if isinstance(content, list) else [content]


def ask_view(item: Any) -> AskView | None:
    """A statistic as the page shows it, None if it cannot."""
    if isinstance(item, str):
        return AskView(item, "", {}) if item in KINDS else None
    if not isinstance(item, Mapping) or not item or "kind" in item:
        return None
    kind, column = next(iter(item.items()))
    rest = {name: content for name, content in item.items() if name != kind}
    if kind not in KINDS or not set(rest) <= set(extras_of(kind)) or isinstance(column, Mapping):
        return None
    return AskView(kind, column, {name: rest.get(name) for name in extras_of(kind)})


def extras_of(kind: str) -> tuple[str, ...]:
    """The fields that a statistic has beside its column."""
    return EXTRAS.get(kind, tuple(BY_KIND[kind].example)[1:] if kind in BY_KIND else ())


def where_rows(where: Any) -> list[tuple[str, str, str]] | None:
    """Conditions as column, word and value; None if the page cannot show them."""
    if not isinstance(where, Mapping):
        return None
    rows: list[tuple[str, str, str]] = []
    for name, condition in where.items():
        if isinstance(condition, list):
            rows.append((name, "of", ", ".join(map(shown, condition))))
        elif isinstance(condition, bool):
            rows.append((name, "of", shown(condition)))
        elif isinstance(condition, Mapping) and set(condition) <= {"at_least", "below"}:
            rows.extend((name, word, shown(each)) for word, each in condition.items())
        else:
            return None
    return rows


# The first step: which file, and the names of its columns.


def table_step(desk: Desk, sheet: Sheet) -> dict[str, Any]:
    """The file, its columns, and their types where the format states them."""
    source = sheet.file.blocks.get("table", {}).get("source", "")
    return {
        "source": source if isinstance(source, str) else ", ".join(map(str, source)),
        "bytes": byte_count(sheet.header.size),
        "columns": sheet.header.types,
        "count": counted(len(sheet.header.types), "column"),
        "states_types": sheet.header.states_types,
        "trouble": sheet.header.trouble,
    }
