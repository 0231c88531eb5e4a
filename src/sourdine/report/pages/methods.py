"""The section of a release's page that tells how its values were made."""

from sourdine.core.format import plain
from sourdine.frames.columns import LONGEST_KEY, Category, Column, Flag, Integer, Text, kind_of
from sourdine.frames.derived import DERIVED
from sourdine.frames.times.dates import Date, Datetime
from sourdine.report.pages.page import Section
from sourdine.report.table import Cell as Shown
from sourdine.report.table import TextTable
from sourdine.tables import ReleasePlan
from sourdine.tables.forecast import noise_words
from sourdine.tables.quality.exact import CHECKED_WORDS
from sourdine.tables.quality.private import value_words
from sourdine.tables.query import columns_of
from sourdine.tables.record import Record

GAP = "\N{NO-BREAK SPACE}"


def methods_section(record: Record, plan: ReleasePlan) -> Section:
    privacy = plan.privacy
    unit = plan.unit
    used = columns_of(plan.queries, plan.schema)
    columns = plan.schema.columns
    used_columns = {
        name: column for name, column in columns.items() if name in used or isinstance(column, DERIVED)
    }
    points = [_about(name, column) for name, column in used_columns.items()]
    if others := [name for name in columns if name not in used_columns]:
        points.append(f"Declared too, but nothing was asked about it: {', '.join(others)}.")
    if unit.column is None:
        points.append(f"Every record counts as one {unit.name}.")
    else:
        points.append(
            f"Records with the same '{unit.column}' belong to one {unit.name}. In each answer a {unit.name} "
            f"counts in at most {unit.max_groups:,} {_several('group', unit.max_groups)}, and in each with "
            f"as much as {unit.max_rows:,} {_several('record', unit.max_rows)} could weigh. What is beyond "
            "that is left out at random."
        )
    law = "Gaussian" if privacy.squared else "Laplace"
    chosen = bool(plan.choices)
    points += [
        "Groups are those of the declared keys, all of them, whether or not anybody is in them: which groups "
        "appear tells nothing."
        + (" Only of keys that were chosen privately, a key appears if enough have it." if chosen else ""),
        f"Sums and counts are whole numbers of grid steps. Noise follows the {law} law on whole numbers and "
        "is drawn exactly. The budget is divided by the weights of the queries.",
        f"Intervals hold {percent(plan.confidence)} of the time, one at a time. They are about the noise "
        "alone: they do not hold sampling error (these people standing for others), nor values moved to a "
        "bound, nor records left out, nor mistakes in the table.",
        *plan.notes,
        "Titles of charts compare groups only where intervals, widened so that all of a chart hold at once, "
        "do not meet.",
        "Counts and their intervals may reach below zero, where no true count can be: they are published as "
        "they came, since to cut them off would make sums of them too large. Nor do counts add up exactly "
        "between tables: every one has noise of its own. "
        "Where a table gives sums, use those, since their intervals allow for all the noises they hold.",
    ]
    return Section(
        title="How it was made",
        paragraphs=(_declared(plan, chosen),),
        points=tuple(points),
        tables=(_lines(plan),),
    )


def _declared(plan: ReleasePlan, chosen: bool) -> str:
    """Where the declarations come from."""
    if plan.checked:
        return f"{CHECKED_WORDS}."
    return "All of this was declared before the table was read, and nothing of it depends on the data" + (
        ", but which keys were chosen privately." if chosen else "."
    )


def _about(name: str, column: Column) -> str:
    missing = (
        "Where it is missing, the record is left out of what needs it."
        if column.missing == "drop"
        else f"A missing value counts as {value_words(column.missing)}."
    )
    if isinstance(column, DERIVED):
        return f"{name}: computed of each record as {column.expression.text}; {_bounds(column)}. {missing}"
    if isinstance(column, Text):
        return f"{name}: {_texts(column)}"
    if isinstance(column, Category):
        listed = ", ".join(map(str, column.keys[:12])) + (" and others" if len(column.keys) > 12 else "")
        many = f"{len(column.keys):,} declared keys ({listed})"
        return f"{name}: one of {many}; any other counts as missing. {missing}"
    if isinstance(column, Flag):
        return f"{name}: true or false. {missing}"
    if isinstance(column, Date | Datetime):
        clock = f" on the clock of {column.zone}" if column.zone else ""
        kind = "dates" if isinstance(column, Date) else "times"
        return (
            f"{name}: {kind} from {column.first} to {column.last}{clock}; others, and what is not read, "
            "are left out of what needs it."
        )
    kind = "whole numbers" if isinstance(column, Integer) else "numbers"
    step = "" if isinstance(column, Integer) else f", rounded to steps of {plain(float(column.step))}"
    return (
        f"{name}: {kind} from {value_words(column.lower)} to {value_words(column.upper)}{step}; what lies "
        f"outside is moved to the nearer bound. {missing}"
    )


def _bounds(column: Column) -> str:
    """What a computed column lies within, which follows from what is declared."""
    return f"it lies within {kind_of(column).words}"


def _texts(column: Text) -> str:
    """How keys are chosen that nobody declared, and what becomes of the others."""
    least = f" None is shown that fewer than about {column.at_least:,} have." if column.at_least else ""
    rest = "are left out" if column.other is None else f"count under '{column.other}'"
    lost = "is left out" if column.missing == "drop" else "counts there too"
    return (
        f"texts of up to {LONGEST_KEY} characters. Where a query asks by them, keys were chosen privately."
        f"{least} Records whose key is not shown {rest}. Where it is missing, the record {lost}."
    )


def _lines(plan: ReleasePlan) -> TextTable:
    rows: list[tuple[Shown, ...]] = [
        (
            line.measurement.scope.query,
            line.measurement.label,
            noise_words(line, plan),
            f"{100 * float(line.share):.3g}{GAP}%",
            line.measurement.moves(line, plan.context()),
        )
        for line in plan.lines
    ]
    return TextTable(
        name="noise",
        title="What was measured, and with what noise",
        columns=("query", "measured", "noise", "share of the budget", f"one {plan.unit.name} moves it by"),
        rows=tuple(rows),
        note="Noise and distance are in the measure of what was summed: squares where a deviation or a "
        "variance is asked for.",
    )


def percent(share: float) -> str:
    return f"{100 * share:g}{GAP}%"


def _several(noun: str, count: int) -> str:
    return noun if count == 1 else f"{noun}s"
